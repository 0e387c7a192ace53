use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// two scripts for one tool
    ///
    /// If both `NAME.lua` and `NAME.luau` exist, the first one is run, and edits of the other one have no effect.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function() return "noon" end
    /// ```
    ///
    /// ```lua scripts/now.luau fails
    /// return function() return "midnight" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.luau repaired
    /// return function() return "midnight" end
    /// ```
    pub(crate) TWIN_SCRIPTS, "DT410", "twin-scripts", Warning
}

pub(crate) fn finding(at: Location, tool: &str, used: &str, other: &str) -> Diagnostic {
    Diagnostic::new(&TWIN_SCRIPTS, at, format!("`{tool}` has two scripts: {used} is used, {other} is ignored"))
}
