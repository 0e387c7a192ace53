use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key that has no effect on an exit tool
    ///
    /// An exit tool is a signal: its call is recorded with its arguments, and nothing is executed. A script, a timeout
    /// or a permission has no effect.
    ///
    /// ```eld fails
    /// (defexit :name "done" :description "Say that the task is done." :script "scripts/done.lua")
    /// ```
    ///
    /// ```eld repaired
    /// (defexit :name "done" :description "Say that the task is done.")
    /// ```
    pub USELESS_ON_EXIT, "DT122", "useless-on-exit", Warning
}

/// Keys for the execution of a script.
pub(in crate::spec) const KEYS: [&str; 15] = [
    "script", "command", "stdin", "dash", "cwd", "ok-codes", "timeout", "memory", "max-result", "allow", "base", "async", "effect", "returns", "function",
];

pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    Diagnostic::new(
        &USELESS_ON_EXIT,
        at,
        format!("`:{key}` has no effect on an exit tool, which executes nothing"),
    )
    .note("use `deftool` for a tool that is executed")
}
