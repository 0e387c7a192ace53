//! Restrictions that a child process places on itself before it runs anything. They are never applied to a process that
//! embeds the engine: scripts on threads leave their process unchanged.
//!
//! A script host leads its own session, so that Ctrl-C on the terminal does not reach it. It writes no core file, and
//! other processes of its user cannot trace it. A guard leads its own session too, cannot be traced, and is the subreaper
//! of its program: it becomes the parent of orphaned descendants.
//!
//! The process's memory limit backs up the limits of calls. It applies to data, not to address space, of which an
//! allocator reserves far more than it uses. Programs that a script runs would inherit it, so children that may run
//! programs have no such limit.

#![cfg_attr(not(target_os = "linux"), allow(unused_variables))]

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory limit of a process in addition to [`PER_CALL`] times a call's limit, in bytes.
#[cfg(unix)]
const BASE: u64 = 512 << 20;
/// Bytes of a process's limit for each byte of a call's limit: a result exists as Lua values, as JSON and as text.
#[cfg(unix)]
const PER_CALL: u64 = 4;

/// Makes this process a session leader that writes no core file and that other processes cannot trace.
pub fn begin_session() {
    #[cfg(unix)]
    {
        // Fails only if this process already leads a process group, for example when a shell started it.
        let _ = rustix::process::setsid();
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
    forbid_tracing();
}

/// Makes this process a session leader and subreaper.
#[cfg(unix)]
pub(crate) fn begin_guard() {
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Keeps other processes of the user from tracing this one.
pub(crate) fn forbid_tracing() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Limits this process to the memory that calls with a limit of `memory` bytes may need. `None` restores the original
/// limit.
pub fn limit_memory(memory: Option<u64>) {
    #[cfg(unix)]
    {
        let maximum = getrlimit(Resource::Data).maximum;
        let wanted = memory.map(|memory| memory.saturating_mul(PER_CALL).saturating_add(BASE));
        let current = wanted.map(|wanted| maximum.map_or(wanted, |most| most.min(wanted))).or(maximum);
        // Systems without this limit rely on the limits of calls.
        let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
    }
}

/// Moves this thread, and the processes that it starts, into a Landlock domain. They cannot trace processes outside the
/// domain, and so cannot read their environment or memory. Since Linux 6.12 they cannot send signals to them either.
/// Set-user-ID programs gain no rights in a domain, and root loses the two capabilities that bypass the memory check.
/// Does nothing if Landlock is not available.
#[cfg(unix)]
pub(crate) fn enter_domain() {
    #[cfg(target_os = "linux")]
    {
        use landlock::{
            AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
            RulesetCreatedAttr, RulesetError, Scope,
        };

        drop_memory_capabilities();
        let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        // Linux 6.12. A domain that has only scopes does not forbid mounting.
        let scoped = || -> Result<RestrictionStatus, RulesetError> {
            strict().scope(Scope::Signal)?.create()?.restrict_self()
        };
        // Linux 5.19. A domain must handle some access right: moving files between directories, which is then allowed
        // everywhere.
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

/// Forbids this thread, and the processes that it starts, to change the resource limits of other processes. Set-user-ID
/// programs gain no rights. Does nothing if system call filters are not available.
#[cfg(unix)]
pub(crate) fn forbid_limits_of_others() {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = crate::limits_filter::install();
}

/// Drops the capabilities that allow reading the memory of other processes despite all security modules:
/// `perfmon_capable` in `mm_access` (`kernel/fork.c`, Linux 6.18).
#[cfg(target_os = "linux")]
fn drop_memory_capabilities() {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    };

    // Only root has them, and only root can drop them permanently.
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
