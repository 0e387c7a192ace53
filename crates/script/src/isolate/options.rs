//! The isolation of calls.

use std::ffi::OsString;
use std::path::PathBuf;

/// The isolation of the calls of a [`ScriptRunner`](crate::ScriptRunner).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Threads,
    /// In child processes, which can be killed.
    Processes(ProcessOptions),
}

/// The program that children run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOptions {
    /// A program that calls [`serve_isolated`](super::serve_isolated) when it is started with `arguments`.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
}

impl ProcessOptions {
    /// Returns the program of this process, to be started with `arguments`. On Linux this is the file that runs now,
    /// even if it was replaced since.
    ///
    /// # Errors
    /// When the path of the program is unknown.
    pub fn this_program(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> std::io::Result<Self> {
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() { own } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}
