use deftool_lang::diagnostic::rule;

rule! {
    /// a type error in a script (`check --types`)
    ///
    /// Luau's type checker reported an error. Parameters have the types of the arguments in the spec, and host tables
    /// the types of `deftool types`. Only `deftool check --types` and the language server report type errors, and only
    /// where types are known: arguments, host tables, libraries. `--!strict` in the first line of a script enables all
    /// checks, `--!nocheck` disables them.
    pub(crate) SCRIPT_TYPE, "DT427", "script-type", Warning
}

pub(crate) fn finding(at: deftool_lang::text::Location, message: &str) -> deftool_lang::diagnostic::Diagnostic {
    deftool_lang::diagnostic::Diagnostic::new(&SCRIPT_TYPE, at, message)
}
