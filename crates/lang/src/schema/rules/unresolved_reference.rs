use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::quoted;
use crate::text::Location;

rule! {
    /// a :$ref without a target
    ///
    /// References are resolved from the root of the tool's parameters, where an argument `x` is `#/properties/x` and
    /// its `:$defs` are `#/properties/x/$defs`. No API fetches external references. A reference must not lead back to
    /// itself.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :$ref "#/$defs/id" :$defs (:id (:type integer)))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :$ref "#/properties/x/$defs/id" :$defs (:id (:type integer)))))
    /// ```
    pub(crate) UNRESOLVED_REFERENCE, "DT242", "unresolved-reference", Error
}

/// `found` is the likely intended reference, if known.
pub(in crate::schema) fn finding(at: Location, target: &str, found: Option<&str>) -> Diagnostic {
    let message = if target.starts_with('#') {
        format!("unresolved reference `{target}`")
    } else {
        format!("external reference `{target}` is not fetched")
    };
    let finding = Diagnostic::new(&UNRESOLVED_REFERENCE, at, message)
        .note("it is sent unchanged, but deftool does not enforce it, and some APIs reject it");
    match found {
        Some(path) => finding.did_you_mean(at.span, quoted(path)),
        None => finding,
    }
}

/// The reference leads back to itself.
pub(in crate::schema) fn cyclic(at: Location, target: &str) -> Diagnostic {
    let message = format!("cyclic reference `{target}`");
    Diagnostic::new(&UNRESOLVED_REFERENCE, at, message)
        .note("it is sent unchanged, but deftool does not enforce it, and some APIs reject it")
}
