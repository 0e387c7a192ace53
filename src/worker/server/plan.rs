//! What is started, by which guard, and how it ended.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which program the guards of managed servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram {
    /// A program that calls [`guard_server`](super::guard_server) when it is started with `arguments`.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The program that asks, started with `arguments`: the very file that runs now, also if another has taken its
    /// place since.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn this_program(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> std::io::Result<Self> {
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() { own } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// What is started, every placeholder filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// How long it has between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself or by a signal.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// It never began.
    NotStarted(String),
    /// Its guard was lost, and the server was killed.
    Unguarded,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { code: Some(code), .. } => write!(f, "ended with exit code {code}"),
            Self::Exited { signal: Some(signal), .. } => match name_of(*signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Exited { code: None, signal: None } => f.write_str("ended"),
            Self::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Self::Unguarded => f.write_str("was killed, because the process that guards it was lost"),
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

/// What a server's guard tells.
#[derive(Debug)]
pub(super) enum News {
    /// The server has a number.
    Started,
    /// The server ended.
    Ended(Ending),
}
