use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a module whose path is computed
    ///
    /// What a script requires is read off its text and loaded with it. A path that is known only when the script runs finds a
    /// module only where another `require` names it.
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

pub(in crate::project) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&COMPUTED_REQUIRE, at, "expected a literal path, as in `require(\"./lib/dates\")`")
        .note("modules are loaded with their script, before it runs")
}
