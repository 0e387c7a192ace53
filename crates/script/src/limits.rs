//! Limits that several parts of the runtime share.

use std::time::Duration;

/// Default time limit of a call, if neither the caller nor the spec sets one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default memory limit of a call, in bytes, if the spec sets none.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// Maximum length of a source, in bytes. The compiler cannot be interrupted, and its memory is not limited.
pub const MAX_SOURCE: usize = 1 << 20;
/// CPU time limit of a script's top level. Time while the thread waits for a processor does not count.
pub const TOP_LEVEL_LIMIT: Duration = Duration::from_millis(250);
/// Time limit of one compilation.
pub(super) const COMPILE_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of a child process for one compilation. Much longer than its own limit: on a busy machine it waits for a
/// processor, and a source that is not compiled for this reason would be reported as faulty.
pub(super) const CHILD_COMPILE_LIMIT: Duration = Duration::from_secs(30);
/// Stack size of a script thread, in bytes. Luau limits its own depth of C calls to 200.
pub(super) const STACK_SIZE: usize = 4 << 20;
/// Maximum number of log and progress lines of a call. Further lines are counted and dropped.
pub(super) const MAX_EVENTS: u32 = 1_000;
/// Maximum length of a log or progress line, in characters.
pub(super) const MAX_LINE: usize = 2_000;
