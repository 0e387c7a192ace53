use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a member of :params that the engine sets itself
    ///
    /// Messages, tools and streaming are what the loop is made of; a request that had others could not be followed.
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
    let message = format!("`:{key}` is set by the engine and cannot stand in `:params`");
    let finding = Diagnostic::new(&RESERVED_PARAM, at, message);
    if key == "model" { finding.note("write `:model` beside `:params`") } else { finding }
}
