use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a module path that is not a literal
    ///
    /// Modules are found by reading the script's text and are loaded with it. A path that is computed while the script
    /// runs works only if another `require` names the same module.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// local name = "dates"
    /// local dates = require("./lib/" .. name)
    /// return function() return dates.today() end
    /// ```
    ///
    /// ```lua scripts/lib/dates.lua fails
    /// return { today = function() return "Friday" end }
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
    pub(crate) COMPUTED_REQUIRE, "DT414", "computed-require", Warning
}

pub(crate) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&COMPUTED_REQUIRE, at, "expected a literal path, as in `require(\"./lib/dates\")`")
        .note("modules are loaded before the script runs")
}
