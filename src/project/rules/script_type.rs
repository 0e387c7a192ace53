use crate::diagnostic::rule;

rule! {
    /// a type error in a script (`check --types`)
    ///
    /// Luau's type checker reported an error. Parameters have the types of the arguments in the spec, and host tables
    /// the types of `deftool types`. Only `deftool check --types` reports type errors, and only where types are known:
    /// arguments, host tables, libraries. `--!strict` in the first line of a script enables all checks, `--!nocheck`
    /// disables them.
    pub(crate) SCRIPT_TYPE, "DT427", "script-type", Warning
}

pub(in crate::project) fn finding(at: crate::text::Location, message: &str) -> crate::diagnostic::Diagnostic {
    crate::diagnostic::Diagnostic::new(&SCRIPT_TYPE, at, message)
}
