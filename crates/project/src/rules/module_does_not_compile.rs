use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a module or test script with a syntax error
    ///
    /// No script that requires the module can run.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// local dates = require("./lib/dates")
    /// return function() return dates.today() end
    /// ```
    ///
    /// ```lua scripts/lib/dates.lua fails
    /// return { today = function( return "Friday" end }
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua repaired
    /// local dates = require("./lib/dates")
    /// return function() return dates.today() end
    /// ```
    ///
    /// ```lua scripts/lib/dates.lua repaired
    /// return { today = function() return "Friday" end }
    /// ```
    pub(crate) MODULE_DOES_NOT_COMPILE, "DT412", "module-does-not-compile", Error
}

pub(crate) fn finding(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&MODULE_DOES_NOT_COMPILE, at, format!("the module does not compile: {problem}"))
}

/// Reports a test script.
pub(crate) fn test(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&MODULE_DOES_NOT_COMPILE, at, format!("the test script does not compile: {problem}"))
}
