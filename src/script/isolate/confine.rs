//! What a child process does to itself before it runs anything, and how all that it started is ended with it.
//!
//! A child leads a session of its own: a Ctrl-C on the terminal does not reach it, and what its scripts start is
//! found by that session, in whatever groups it is. A program that makes a session of its own escapes; it was allowed
//! by name.
//!
//! The hard memory limit lies beneath the calls' own and is there for what those miss. It is on data rather than on
//! addresses, of which an allocator reserves far more than it uses. The programs that a script runs would inherit it,
//! so children that may run programs have none.

#![cfg_attr(not(unix), allow(unused_variables))]

#[cfg(unix)]
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// What a process may have beyond [`PER_CALL`] times a call's memory, in bytes.
#[cfg(unix)]
const BASE: u64 = 512 << 20;
/// How much a process may have for each byte of a call's limit: a result is held as Lua values, as JSON and as text.
#[cfg(unix)]
const PER_CALL: u64 = 4;
/// How often a session is looked through for what was started meanwhile.
#[cfg(target_os = "linux")]
const SWEEPS: usize = 3;

/// Makes this process the leader of a session and has it leave no core file.
pub(super) fn begin_session() {
    #[cfg(unix)]
    {
        // Fails only for a process that leads a group already, as one started from a shell does.
        let _ = rustix::process::setsid();
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

/// Lets this process have what calls of `memory` bytes may need, and no more; `None`: what it could have at first.
pub(super) fn limit_memory(memory: Option<u64>) {
    #[cfg(unix)]
    {
        let maximum = getrlimit(Resource::Data).maximum;
        let wanted = memory.map(|memory| memory.saturating_mul(PER_CALL).saturating_add(BASE));
        let current = wanted.map(|wanted| maximum.map_or(wanted, |most| most.min(wanted))).or(maximum);
        // A system without this limit has the calls' own.
        let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
    }
}

/// Kills what is left of the session of the process `id`, which is dead. Looks through `/proc`.
pub(super) fn kill_session(id: u32) {
    #[cfg(unix)]
    if let Some(leader) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        sweep(leader, None);
    }
}

/// Kills what is left of this process's own session, but for itself.
pub(super) fn kill_started() {
    #[cfg(unix)]
    {
        let own = rustix::process::getpid();
        // In the session of another, as after a start by hand, there is more than what was started here.
        if rustix::process::getsid(None) == Ok(own) {
            sweep(own, Some(own));
        }
    }
}

#[cfg(target_os = "linux")]
fn sweep(session: Pid, spared: Option<Pid>) {
    for _ in 0..SWEEPS {
        let Ok(entries) = std::fs::read_dir("/proc") else { return };
        let mut found = false;
        for entry in entries.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Some(process) = Pid::from_raw(id).filter(|id| Some(*id) != spared) else { continue };
            let Ok(about) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            if session_of(&about) == Some(session.as_raw_nonzero().get()) {
                found = true;
                let _ = kill_process(process, Signal::KILL);
            }
        }
        if !found {
            return;
        }
    }
}

/// The session that a line of `/proc/N/stat` tells; `None` for one that is dead and only waits to be told so.
#[cfg(target_os = "linux")]
fn session_of(about: &str) -> Option<i32> {
    // The name stands in brackets and may hold anything.
    let mut fields = about.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(2)?.parse().ok() }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn sweep(session: Pid, spared: Option<Pid>) {
    // There is no list of a session's processes to ask for; those that stayed in its leader's group are known.
    if spared.is_none() {
        let _ = rustix::process::kill_process_group(session, Signal::KILL);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_session_whatever_its_name() {
        assert_eq!(session_of("12 (sleep) S 1 12 7 0 -1"), Some(7));
        assert_eq!(session_of("12 (a) Z 9 (b) S 1 12 8 0 -1"), Some(8));
        assert_eq!(session_of("12 (sleep) Z 1 12 7 0 -1"), None);
        assert_eq!(session_of("12 (sleep"), None);
    }
}
