//! Processes that deftool starts, and files that it shares with other processes.
//!
//! ```
//! use deftool_process::{process, processes};
//!
//! # if cfg!(target_os = "linux") {
//! let own = process(std::process::id()).unwrap();
//! assert!(processes().any(|other| other.id == own.id));
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `processes` | the processes of this machine, and the descendants of this process |
//! | `guard` | programs that run under a guard, which ends them and their descendants |
//! | [`frame`] | messages to and from script hosts and guards |
//! | `peer` | a child process that answers lines of JSON |
//! | [`confine`] | restrictions that a child process places on itself |
//! | [`files`] | private files and their locks, atomic replacement, temporary files that a killed process leaves behind |
//!
//! Nothing here depends on tools, projects or requests.

pub mod confine;
pub mod files;
pub mod frame;
mod guard;
mod helper;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod limits_filter;
mod peer;
mod processes;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
pub use guard::{Child, KillHandle, LaunchPlan, Supervision};
pub use guard::{has_guard, kill_programs, serve_guard, set_guard};
pub use helper::HelperProgram;
pub use peer::Peer;
pub use processes::{Descendants, Stat, is_dead, is_stopped, process, processes};

/// Locks a mutex even if a thread panicked while holding it: no invariant of deftool spans its locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
