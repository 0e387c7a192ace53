use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a permission that the script does not use
    ///
    /// What a tool may do should be what it needs: whoever reads the spec, or is asked to trust it, takes each grant for a
    /// use. Told where neither the script nor a module that it requires uses a host function of that permission.
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

/// `key`: as in `read`.
pub(in crate::project) fn finding(at: Location, tool: &str, key: &str, table: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_PERMISSION, at, format!("`{tool}` allows `:{key}`, and its script does not use it"))
        .note(format!("`:{key}` is for functions of `{table}`; take it out of `:allow` if it is not needed"))
}
