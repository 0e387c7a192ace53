//! The programs of child processes.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program that child processes of this process run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperProgram {
    /// A program that serves this process when it is started with `arguments`.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
}

impl HelperProgram {
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
