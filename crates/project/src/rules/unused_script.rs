use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a script that no tool uses
    ///
    /// Scripts are found by tool name. The script of a renamed or removed tool is never called.
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

/// `stem`: the file name without extension.
pub(crate) fn finding(at: Location, stem: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_SCRIPT, at, "no tool uses this script")
        .note(format!("name a tool `{stem}`, or set `:script` of a tool to this file"))
}
