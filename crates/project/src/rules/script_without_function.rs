use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a script that does not return a function
    ///
    /// A call runs the function that the script returns. A script that only defines a function returns nothing.
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

/// `returned`: for example `a table`.
pub(crate) fn finding(at: Location, tool: &str, returned: &str) -> Diagnostic {
    let message = format!("expected the script of `{tool}` to return a function, found {returned}");
    Diagnostic::new(&SCRIPT_WITHOUT_FUNCTION, at, message)
}
