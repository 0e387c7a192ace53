use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script that returns no function
    ///
    /// The function that a script returns is what a call calls. A script that only defines one returns nothing.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// local function now() return "noon" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// local function now() return "noon" end
    /// return now
    /// ```
    pub(crate) SCRIPT_WITHOUT_FUNCTION, "DT406", "script-without-function", Error
}

/// `returned`: as in `a table`.
pub(in crate::project) fn finding(at: Location, tool: &str, returned: &str) -> Diagnostic {
    let message = format!("the script of `{tool}` returns {returned}; it must return a function");
    Diagnostic::new(&SCRIPT_WITHOUT_FUNCTION, at, message)
}
