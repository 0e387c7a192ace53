use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script that uses what its spec does not allow
    ///
    /// Nothing is allowed that the spec does not list. A host function without its permission ends the call whenever it is
    /// reached, in the script and in the modules that it requires.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Read the notes of today.")
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// return function() return fs.read("notes/today.md") end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "today" :description "Read the notes of today." :allow (:read ["notes/"]))
    /// ```
    ///
    /// ```lua scripts/today.lua repaired
    /// return function() return fs.read("notes/today.md") end
    /// ```
    pub(crate) MISSING_PERMISSION, "DT422", "missing-permission", Warning
}

/// `function`: as in `fs.read`; `key`: as in `read`.
pub(in crate::project) fn finding(at: Location, tool: &str, function: &str, key: &str) -> Diagnostic {
    let what = match key {
        "net" => "[\"api.example.org\"]",
        "read" => "[\"notes/\"]",
        "write" => "[\"out/\"]",
        "run" => "[\"program\"]",
        _ => "[\"NAME\"]",
    };
    Diagnostic::new(
        &MISSING_PERMISSION,
        at,
        format!("`{function}` is refused: the spec of `{tool}` has no `:{key}` in `:allow`"),
    )
    .note(format!("add what it may use to the spec, as in `:allow (:{key} {what})`"))
}
