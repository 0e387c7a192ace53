use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script that no tool runs
    ///
    /// Scripts are found by the names of tools. One that is left over from a tool that was renamed or removed is never called.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function() return "noon" end
    /// ```
    ///
    /// ```lua scripts/old.lua fails
    /// return function() return "midnight" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// return function() return "noon" end
    /// ```
    pub(crate) UNUSED_SCRIPT, "DT408", "unused-script", Note
}

/// `stem`: the file's name without its extension.
pub(in crate::project) fn finding(at: Location, stem: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_SCRIPT, at, "no tool runs this script")
        .note(format!("a tool called `{stem}` would, or one that names the file in `:script`"))
}
