use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key without effect with or without :command
    ///
    /// `:stdin`, `:dash`, `:cwd` and `:ok-codes` belong to `:command`. `:async` and `:memory` are for Lua scripts and have no effect on a
    /// program.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :command ["date"] :memory "64MiB")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :command ["date"])
    /// ```
    pub(crate) COMMAND_KEY, "DT141", "command-key", Warning
}

pub(in crate::spec) fn without_command(at: Location, key: &str) -> Diagnostic {
    Diagnostic::new(&COMMAND_KEY, at, format!("`:{key}` has no effect without `:command`"))
}

pub(in crate::spec) fn with_command(at: Location, key: &str) -> Diagnostic {
    Diagnostic::new(&COMMAND_KEY, at, format!("`:{key}` has no effect on a program that `:command` runs"))
}
