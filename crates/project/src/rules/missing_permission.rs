use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a use of a permission that the spec does not list
    ///
    /// A script has only the permissions in its spec. A call ends with an error when the script or one of its modules
    /// calls a host function without its permission.
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

/// `function`: for example `fs.read`. `key`: for example `read`.
pub(crate) fn finding(at: Location, tool: &str, function: &str, key: &str) -> Diagnostic {
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
        format!("`{function}` requires a permission: missing `:{key}` in the `:allow` of `{tool}`"),
    )
    .note(format!("add the permission to the spec, for example `:allow (:{key} {what})`"))
}
