//! What a child process does to itself before it runs anything. None of it is done to a process that the engine is a
//! guest in: scripts on threads leave their process as it is.
//!
//! A script host leads a session of its own, so that a Ctrl-C on the terminal does not reach it, leaves no core file and
//! cannot be traced by other processes of its user. The guard of a program leads a session, too, cannot be traced, and
//! becomes the parent of all that its program leaves behind.
//!
//! The hard memory limit lies beneath the calls' own and is there for what those miss. It is on data rather than on
//! addresses, of which an allocator reserves far more than it uses. The programs that a script runs would inherit it,
//! so children that may run programs have none.

#![cfg_attr(not(unix), allow(unused_variables))]

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process may have beyond [`PER_CALL`] times a call's memory, in bytes.
#[cfg(unix)]
const BASE: u64 = 512 << 20;
/// How much a process may have for each byte of a call's limit: a result is held as Lua values, as JSON and as text.
#[cfg(unix)]
const PER_CALL: u64 = 4;

/// Makes this process the leader of a session, one that leaves no core file and that others may not trace.
pub(in crate::script) fn begin_session() {
    #[cfg(unix)]
    {
        // Fails only for a process that leads a group already, as one started from a shell does.
        let _ = rustix::process::setsid();
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
    refuse_tracers();
}

/// Makes this process the leader of a session that may not be traced and to which orphans fall.
#[cfg(unix)]
pub(super) fn begin_guard() {
    let _ = rustix::process::setsid();
    refuse_tracers();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

fn refuse_tracers() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Lets this process have what calls of `memory` bytes may need, and no more; `None`: what it could have at first.
pub(in crate::script) fn limit_memory(memory: Option<u64>) {
    #[cfg(unix)]
    {
        let maximum = getrlimit(Resource::Data).maximum;
        let wanted = memory.map(|memory| memory.saturating_mul(PER_CALL).saturating_add(BASE));
        let current = wanted.map(|wanted| maximum.map_or(wanted, |most| most.min(wanted))).or(maximum);
        // A system without this limit has the calls' own.
        let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
    }
}

/// Puts this thread, and what it starts, into a Landlock domain: it may not trace processes outside, which is what
/// reading their environment or memory takes. Nothing else is taken away but, since Linux 6.12, signals to processes
/// outside, the rights of set-user-ID programs, which no domain leaves, and of root's rights the two that let it read
/// memory past any domain. Without Landlock there is no domain.
#[cfg(unix)]
pub(super) fn enter_domain() {
    #[cfg(target_os = "linux")]
    {
        use landlock::{
            AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
            RulesetCreatedAttr, RulesetError, Scope,
        };

        drop_observers();
        let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        // Linux 6.12. A domain of scopes alone leaves mounting allowed.
        let scoped = || -> Result<RestrictionStatus, RulesetError> {
            strict().scope(Scope::Signal)?.create()?.restrict_self()
        };
        // Linux 5.19. A domain has to restrict something: moving files between folders, allowed everywhere.
        let linked = || -> Result<RestrictionStatus, Box<dyn std::error::Error>> {
            let created = strict().handle_access(AccessFs::Refer)?.create()?;
            let rules = created.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?;
            Ok(rules.restrict_self()?)
        };
        if scoped().is_err() {
            let _ = linked();
        }
    }
}

/// Drops the capabilities that read the memory of other processes past every security module: `perfmon_capable` in
/// `mm_access` (`kernel/fork.c`, Linux 6.18).
#[cfg(target_os = "linux")]
fn drop_observers() {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    };

    // Only root has them, and only root may drop them for good.
    for capability in [CapabilitySet::SYS_ADMIN, CapabilitySet::PERFMON] {
        let _ = remove_capability_from_bounding_set(capability);
        if let Ok(CapabilitySets { effective, permitted, inheritable }) = capabilities(None) {
            let without = |set: CapabilitySet| set.difference(capability);
            let (effective, permitted, inheritable) =
                (without(effective), without(permitted), without(inheritable));
            let _ = set_capabilities(None, CapabilitySets { effective, permitted, inheritable });
        }
    }
}

/// Kills all that descends from this process, a guard, in whatever groups and sessions it is. Elsewhere than on Linux
/// there is no list to ask for.
#[cfg(unix)]
pub(super) fn kill_descendants() {
    #[cfg(target_os = "linux")]
    descendants::kill();
}

#[cfg(target_os = "linux")]
mod descendants {
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, getpid, kill_process};

    /// How long is looked for what was started meanwhile, and for the killed to be gone.
    const LIMIT: Duration = Duration::from_millis(1_500);
    /// Between two looks.
    const PAUSE: Duration = Duration::from_millis(2);

    /// A process: its parent, and whether it is dead and only waits to be told so.
    type Process = (i32, bool);

    pub(super) fn kill() {
        let begun = Instant::now();
        loop {
            let found = living(&processes(), getpid().as_raw_nonzero().get());
            for id in found.iter().filter_map(|id| Pid::from_raw(*id)) {
                let _ = kill_process(id, Signal::KILL);
            }
            if found.is_empty() || begun.elapsed() > LIMIT {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn processes() -> HashMap<i32, Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            // A name need not be text.
            let about = std::fs::read(entry.path().join("stat")).ok()?;
            Some((id, process(&String::from_utf8_lossy(&about))?))
        });
        processes.collect()
    }

    /// What a line of `/proc/N/stat` says.
    fn process(about: &str) -> Option<Process> {
        // The name stands in brackets and may hold anything.
        let mut fields = about.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        Some((fields.next()?.parse().ok()?, matches!(state, "Z" | "X")))
    }

    /// The living descendants of `root`. A dead one between keeps its children until it is reaped.
    fn living(all: &HashMap<i32, Process>, root: i32) -> Vec<i32> {
        let descends = |id: i32| {
            // Parents are followed at most once each: numbers may be given again while they are read.
            let mut ancestors = std::iter::successors(Some(id), |id| Some(all.get(id)?.0)).skip(1);
            ancestors.by_ref().take(all.len()).any(|id| id == root)
        };
        let living = all.iter().filter(|(_, (_, is_dead))| !is_dead).map(|(id, _)| *id);
        living.filter(|id| *id != root && descends(*id)).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn descendants_are_found_through_the_dead_whatever_their_names() {
            let lines = [
                (5, "5 (guard) S 1 5"),
                (6, "6 (a) S 9 (b) Z 5 6"),
                (7, "7 (sleep) S 6 7"),
                (8, "8 (x\n) S 7 8"),
                (9, "9 (other) S 1 9"),
                (10, "10 (circle) S 11 1"),
                (11, "11 (circle) S 10 1"),
            ];
            let all = lines.into_iter().map(|(id, line)| (id, process(line).unwrap())).collect();
            let mut found = living(&all, 5);
            found.sort_unstable();
            assert_eq!(found, [7, 8]);
            assert_eq!(process("12 (sleep"), None);
        }
    }
}
