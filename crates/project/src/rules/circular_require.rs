use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// modules that require each other
    ///
    /// A module has a value only after its file has run. If two modules require each other at the top level, neither
    /// can run first. Move the shared code to a third module.
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
    /// local names = require("./names")
    /// return { today = function() return names.of(5) end, most = 7 }
    /// ```
    ///
    /// ```lua scripts/lib/names.lua fails
    /// local dates = require("./dates")
    /// return { of = function(day) return "day " .. day .. " of " .. dates.most end }
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
    /// local names = require("./names")
    /// return { today = function() return names.of(5) end }
    /// ```
    ///
    /// ```lua scripts/lib/names.lua repaired
    /// return { of = function(day) return "day " .. day .. " of 7" end }
    /// ```
    pub(crate) CIRCULAR_REQUIRE, "DT413", "circular-require", Warning
}

/// `files`: the files of the cycle. Each requires the next, and the last one, at `at`, requires the first.
pub(crate) fn finding(at: Location, files: &[String]) -> Diagnostic {
    let message = match files {
        [one] => format!("{one} requires itself"),
        [first, .., last] => format!("circular dependency: {last} requires {first}"),
        [] => String::from("modules require each other"),
    };
    let finding = Diagnostic::new(&CIRCULAR_REQUIRE, at, message);
    if files.len() > 2 { finding.note(format!("dependency cycle: {}", files.join(" → "))) } else { finding }
}
