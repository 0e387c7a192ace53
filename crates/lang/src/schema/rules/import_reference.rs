use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a `$ref` to import that cannot be inlined
    ///
    /// A spec has no `$defs` next to its arguments, so a reference to a definition is replaced by the definition. This
    /// is not possible if the definition is missing, refers to itself, or becomes too large.
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
    pub(crate) IMPORT_REFERENCE, "DT605", "import-reference", Error
}

/// `why` is a clause that explains why the reference cannot be inlined.
pub(crate) fn finding(location: Location, reference: &str, why: &str) -> Diagnostic {
    Diagnostic::new(&IMPORT_REFERENCE, location, format!("`{reference}` {why}"))
}
