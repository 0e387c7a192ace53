//! A system call filter: a program may not change the resource limits of other processes. With a limit of CPU time, it
//! could end any process of its user, because Landlock does not cover `prlimit`.
//!
//! A filter sees numbers, not processes. So a program may change the limits only of the process 0, which is the caller,
//! as `setrlimit` and `ulimit` do. Reading limits is allowed. The filter covers each kind of system calls that the
//! processor's kernel accepts. Source: `seccomp(2)`, `syscalls(2)`, and the tables of Linux 6.18.

use seccompiler::sock_filter;

/// The number of `prlimit64` in each kind of system calls, with its identifier (`AUDIT_ARCH_…` of `linux/audit.h`).
#[cfg(target_arch = "x86_64")]
const ABIS: [(u32, u32); 3] = [
    (0xC000_003E, 302),
    // x32: the same identifier, and a bit of the number.
    (0xC000_003E, 0x4000_0000 + 302),
    // 32-bit programs.
    (0x4000_0003, 340),
];
#[cfg(target_arch = "aarch64")]
const ABIS: [(u32, u32); 2] = [
    (0xC000_00B7, 261),
    // 32-bit programs.
    (0x4000_0028, 369),
];

/// Offsets in `seccomp_data`, on little-endian processors.
const NUMBER: u32 = 0;
const ABI: u32 = 4;
const PROCESS: u32 = 16;
const NEW_LIMIT: u32 = 32;

/// Instructions (`linux/bpf_common.h`): load a part of `seccomp_data`, compare it with a value, end with an action.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const END: u16 = 0x06;

/// Actions (`linux/seccomp.h`): run the system call, or let it fail with `EPERM`.
const ALLOW: u32 = 0x7FFF_0000;
const REFUSE: u32 = 0x0005_0000 | 1;

/// Number of instructions for one kind of system calls.
const BLOCK: u8 = 4;

/// Installs the filter for this thread, and for the processes that it starts. Set-user-ID programs gain no rights.
///
/// # Errors
/// When the system has no system call filters.
pub(super) fn install() -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(&instructions())
}

fn instructions() -> Vec<sock_filter> {
    let load = |offset| sock_filter { code: LOAD, jt: 0, jf: 0, k: offset };
    // Each jump skips a number of the following instructions.
    let jump_if_equal =
        |value, then, otherwise| sock_filter { code: JUMP_IF_EQUAL, jt: then, jf: otherwise, k: value };
    let end = |action| sock_filter { code: END, jt: 0, jf: 0, k: action };
    let (mut blocks, mut following) = (Vec::new(), 0);
    for (abi, number) in ABIS {
        // The last jump skips the following blocks and the end below.
        blocks.push([
            load(ABI),
            jump_if_equal(abi, 0, 2),
            load(NUMBER),
            jump_if_equal(number, following + 1, 0),
        ]);
        following += BLOCK;
    }
    let mut filter: Vec<sock_filter> = blocks.into_iter().rev().flatten().collect();
    filter.extend([
        end(ALLOW),
        load(PROCESS),
        jump_if_equal(0, 4, 0),
        // Without a new limit, the call only reads. The pointer has two halves.
        load(NEW_LIMIT),
        jump_if_equal(0, 0, 3),
        load(NEW_LIMIT + 4),
        jump_if_equal(0, 0, 1),
        end(ALLOW),
        end(REFUSE),
    ]);
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel does.
    fn result(abi: u32, number: u32, process: u32, new_limit: u64) -> u32 {
        let filter = instructions();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            at += 1;
            match code {
                LOAD => {
                    loaded = match k {
                        NUMBER => number,
                        ABI => abi,
                        PROCESS => process,
                        NEW_LIMIT => new_limit as u32,
                        36 => (new_limit >> 32) as u32,
                        other => panic!("{other}"),
                    }
                }
                JUMP_IF_EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
                _ => return k,
            }
        }
    }

    #[test]
    fn only_limits_of_other_processes_are_refused() {
        for (abi, number) in ABIS {
            for new_limit in [8, 1 << 40] {
                assert_eq!(result(abi, number, 7, new_limit), REFUSE);
                assert_eq!(result(abi, number, 0, new_limit), ALLOW);
                assert_eq!(result(abi, number + 1, 7, new_limit), ALLOW);
                assert_eq!(result(abi ^ 1, number, 7, new_limit), ALLOW);
            }
            assert_eq!(result(abi, number, 7, 0), ALLOW);
        }
    }
}
