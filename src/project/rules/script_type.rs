use crate::diagnostic::rule;

rule! {
    /// a script whose types do not fit (`check --types`)
    ///
    /// What Luau's type checker says of a script, where the parameters have the types that the spec gives the arguments and the
    /// host tables those of `deftool types`. Told by `deftool check --types` alone, and only of what is known: arguments, host
    /// tables, libraries. `--!strict` in a script's first line asks for everything that the checker says, `--!nocheck` for
    /// nothing.
    pub(crate) SCRIPT_TYPE, "DT427", "script-type", Warning
}

pub(in crate::project) fn finding(at: crate::text::Location, message: &str) -> crate::diagnostic::Diagnostic {
    crate::diagnostic::Diagnostic::new(&SCRIPT_TYPE, at, message)
}
