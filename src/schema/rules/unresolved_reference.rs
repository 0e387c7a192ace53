use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a `$ref` to import that cannot be written out
    ///
    /// A spec has no place for `$defs` beside its arguments, so a reference into them is replaced by what it refers to. That cannot be done where the
    /// definition is missing, refers to itself, or becomes boundless when it is written out.
    ///
    /// ```json fails
    /// {"name": "tree", "description": "Plant it.", "input_schema": {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}},
    ///   "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "tree", "description": "Plant it.", "input_schema": {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}},
    ///   "$defs": {"Node": {"type": "object", "properties": {"next": {"type": "string"}}}}}}
    /// ```
    pub(crate) UNRESOLVED_REFERENCE, "DT605", "unresolved-reference", Error
}

/// `why` it cannot be written out.
pub(crate) fn finding(location: Location, reference: &str, why: &str) -> Diagnostic {
    Diagnostic::new(&UNRESOLVED_REFERENCE, location, format!("`{reference}` {why}"))
}
