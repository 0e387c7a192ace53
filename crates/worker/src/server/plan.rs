//! The launch plan of a server, and how a server ended.

use std::path::PathBuf;
use std::time::Duration;

/// The process to start, with all placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// The way in which a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Termination {
    /// The process exited or was terminated by a signal.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// The program could not be started.
    NotStarted(String),
    /// The guard exited unexpectedly, and the server was killed.
    GuardLost,
}

impl std::fmt::Display for Termination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { code: Some(code), .. } => write!(f, "exited with code {code}"),
            Self::Exited { signal: Some(signal), .. } => match name_of(*signal) {
                Some(name) => write!(f, "was terminated by signal {signal} ({name})"),
                None => write!(f, "was terminated by signal {signal}"),
            },
            Self::Exited { code: None, signal: None } => f.write_str("ended"),
            Self::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Self::GuardLost => f.write_str("was killed because its guard process exited unexpectedly"),
        }
    }
}

#[cfg(unix)]
fn name_of(signal: i32) -> Option<String> {
    let name = format!("{:?}", rustix::process::Signal::from_named_raw(signal)?);
    Some(format!("SIG{}", name.trim_matches('"').trim_start_matches("Signal::").to_uppercase()))
}

#[cfg(not(unix))]
fn name_of(_: i32) -> Option<String> {
    None
}

/// An event of a server process.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    /// The server started and has a process id.
    Started,
    /// The server ended.
    Ended(Termination),
}
