use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a member of :params that the engine sets
    ///
    /// The request loop controls messages, tools and streaming; they cannot be overridden.
    ///
    /// ```eld fails
    /// (defworker :name "local" :params (:temperature 0 :stream t))
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :params (:temperature 0))
    /// ```
    pub(crate) RESERVED_PARAM, "DT303", "reserved-param", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    let message = format!("`:{key}` is set by the engine and not allowed in `:params`");
    let finding = Diagnostic::new(&RESERVED_PARAM, at, message);
    if key == "model" { finding.note("set `:model` on the worker instead") } else { finding }
}
