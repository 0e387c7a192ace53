//! The isolation of calls.

use deftool_process::HelperProgram;

/// The isolation of the calls of a [`ScriptRunner`](crate::ScriptRunner).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Threads,
    /// In child processes, which can be killed. They run this program, which calls
    /// [`serve_isolated`](super::serve_isolated) when it is started with these arguments.
    Processes(HelperProgram),
}
