use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an unused permission
    ///
    /// A tool should have only the permissions that it needs, because users who review or trust the spec rely on them.
    /// Reported if neither the script nor its modules use a host function that requires the permission.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Tell the date." :allow (:read ["notes/"]))
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// return function() return time.format("%F") end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua repaired
    /// return function() return time.format("%F") end
    /// ```
    pub(crate) UNUSED_PERMISSION, "DT423", "unused-permission", Note
}

/// `key`: for example `read`.
pub(crate) fn finding(at: Location, tool: &str, key: &str, table: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_PERMISSION, at, format!("unused permission `:{key}` of `{tool}`"))
        .note(format!("`:{key}` is for functions of `{table}`; remove it from `:allow` if it is not needed"))
}
