use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::quoted;
use crate::text::Location;

rule! {
    /// a :$ref that leads nowhere
    ///
    /// A reference is read from the root of the tool's parameters, where an argument `x` is `#/properties/x`: its `:$defs` are `#/properties/x/$defs`. Nothing
    /// is fetched from elsewhere, by no API. One that leads back to itself has no end.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :$ref "#/$defs/id" :$defs (:id (:type integer)))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :$ref "#/properties/x/$defs/id" :$defs (:id (:type integer)))))
    /// ```
    pub(crate) UNRESOLVED_REFERENCE, "DT242", "unresolved-reference", Warning
}

/// `found` is where the reference should lead, if that is known.
pub(in crate::schema) fn finding(at: Location, target: &str, found: Option<&str>) -> Diagnostic {
    let message = if target.starts_with('#') {
        format!("`{target}` leads nowhere in the parameters of this tool")
    } else {
        format!("`{target}` leads out of this tool, and nothing is fetched")
    };
    let finding = Diagnostic::new(&UNRESOLVED_REFERENCE, at, message)
        .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it");
    match found {
        Some(path) => finding.meant(at.span, quoted(path)),
        None => finding,
    }
}

/// The reference leads to itself.
pub(in crate::schema) fn endless(at: Location, target: &str) -> Diagnostic {
    let message = format!("`{target}` leads back to itself and says nothing");
    Diagnostic::new(&UNRESOLVED_REFERENCE, at, message)
        .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it")
}
