use crate::diagnostic::{Diagnostic, rule};
use crate::script::MAX_MODULES;
use crate::text::Location;

rule! {
    /// a module that is not there
    ///
    /// `require` takes a path without extension, relative to the file that it stands in, to a file beneath `scripts/lib`. Scripts
    /// reach no other file this way. The call would fail where the module is required. A script has 200 modules at most.
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

/// `wanted`: what is required, as it is written; `advice`: why not, and what to do.
pub(in crate::project) fn finding(at: Location, wanted: &str, advice: &str) -> Diagnostic {
    Diagnostic::new(&MISSING_MODULE, at, format!("cannot require `{wanted}`: {advice}"))
}

/// It may be there, and is one more than a script may have.
pub(in crate::project) fn too_many(at: Location, wanted: &str) -> Diagnostic {
    let advice =
        format!("a script has {MAX_MODULES} modules at most, those that its modules require among them");
    finding(at, wanted, &advice)
}
