use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an unknown property in `required` of a definition to import
    ///
    /// A spec marks each argument as required or optional, so a required name must be one of the properties. Such a
    /// name is often left over from a renamed argument.
    ///
    /// ```json fails
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["txt"]}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}
    /// ```
    pub(crate) UNKNOWN_REQUIRED, "DT610", "unknown-required", Warning
}

/// `required` contains the unknown property `name`.
pub(crate) fn finding(location: Location, name: &str) -> Diagnostic {
    let message = format!("unknown property `{name}` in `required`; ignored");
    Diagnostic::new(&UNKNOWN_REQUIRED, location, message)
}

/// `required` is not an array of names.
pub(crate) fn no_names(location: Location) -> Diagnostic {
    let message = "expected an array of property names in `required`; ignored";
    Diagnostic::new(&UNKNOWN_REQUIRED, location, message)
}
