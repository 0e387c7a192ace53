//! Programs that run under a guard: a process between this one and the program, which ends the program and all
//! processes that it leaves behind, also when this process is killed.
//!
//! Each program has its own guard, which runs [`serve_guard`] in the program that [`set_guard`] names, usually this
//! executable. [`Child`] is the owner's side. The guard's stdin is a socket, over which it receives the program's three
//! standard streams and one request ([`messages`]). It sends a reply when the program starts and another when the
//! program has ended. When the owner closes the socket, or dies, the guard ends the program as its [`Supervision`] says.
//!
//! - *No terminal.* The guard leads its own session, which has no terminal. The program leads a process group in it.
//! - *No processes left behind.* The guard is a subreaper on Linux: a descendant of the program becomes the guard's
//!   child when its parent ends, regardless of its process group and session. When the program ends, the guard kills
//!   them all. On other systems it kills the program's process group.
//! - *No access to the owner*, for a confined program. On Linux it starts in a Landlock domain. It cannot trace a
//!   process outside the domain, and so cannot read `/proc/N/environ` or `/proc/N/mem`. Since Linux 6.12 it cannot send
//!   signals to such a process. A system call filter keeps it from the resource limits of other processes. Both apply to
//!   a thread and its children, so the guard itself stays outside the domain and out of the program's reach.
//! - *No server without a guard.* On Linux a server has a parent death signal (`PR_SET_PDEATHSIG`), so it is killed
//!   together with its guard. A process can set this signal only for itself, so another process of the guard's program
//!   sets it and then executes the server. On other systems only the owner can kill it.
//!
//! If owner, guard and server are killed at the same time, processes that the server started remain.

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod messages;
#[cfg(unix)]
mod serve;
#[cfg(not(unix))]
mod unsupported;

#[cfg(unix)]
pub use child::{Child, KillHandle, LaunchPlan, has_guard, kill_programs, set_guard};
#[cfg(unix)]
pub use messages::Supervision;
#[cfg(unix)]
pub use serve::serve_guard;
#[cfg(not(unix))]
pub use unsupported::{has_guard, kill_programs, serve_guard, set_guard};
