use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a script with a syntax error
    ///
    /// Every call would fail. Scripts are Luau: Lua 5.1 with `+=`, `continue`, types and string interpolation, but
    /// without `goto`.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function( return 1 end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// return function() return 1 end
    /// ```
    pub(crate) SCRIPT_DOES_NOT_COMPILE, "DT402", "script-does-not-compile", Error
}

pub(crate) fn finding(at: Location, tool: &str, problem: &str) -> Diagnostic {
    let message = format!("the script of `{tool}` does not compile: {problem}");
    Diagnostic::new(&SCRIPT_DOES_NOT_COMPILE, at, message)
}
