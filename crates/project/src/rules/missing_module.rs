use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_script::MAX_MODULES;
use deftool_lang::text::Location;

rule! {
    /// a module that does not exist
    ///
    /// `require` takes a path without extension, relative to the requiring file. The module must be below
    /// `scripts/lib`. Otherwise the call fails at the `require`. A script can have at most 200 modules.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// local dates = require("./lib/date")
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
    pub(crate) MISSING_MODULE, "DT411", "missing-module", Error
}

/// `path`: the path as written. `advice`: the reason and a suggestion.
pub(crate) fn finding(at: Location, path: &str, advice: &str) -> Diagnostic {
    Diagnostic::new(&MISSING_MODULE, at, format!("cannot require `{path}`: {advice}"))
}

/// The finding for a module above the limit, whether it exists or not.
pub(crate) fn too_many(at: Location, path: &str) -> Diagnostic {
    let advice =
        format!("a script can have at most {MAX_MODULES} modules, including indirect ones");
    finding(at, path, &advice)
}
