use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a module that returns nothing
    ///
    /// `require` returns the module's return value, usually a table of functions. Globals that the module assigns are
    /// not shared.
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
    /// local dates = { today = function() return "Friday" end }
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
    /// local dates = { today = function() return "Friday" end }
    /// return dates
    /// ```
    pub(crate) MODULE_WITHOUT_VALUE, "DT415", "module-without-value", Error
}

pub(crate) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&MODULE_WITHOUT_VALUE, at, "expected the module to return a value, for example a table of functions")
}
