use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a required parameter to import that is none of the properties
    ///
    /// A spec says of each argument whether it may be left out, so what is required must be there. Most such names are left over from an argument that was
    /// renamed.
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

/// `required` names what is not there; left out.
pub(crate) fn finding(location: Location, name: &str) -> Diagnostic {
    let message = format!("`required` names `{name}`, which `properties` does not have; left out");
    Diagnostic::new(&UNKNOWN_REQUIRED, location, message)
}

/// `required` is no array of names; left out.
pub(crate) fn no_names(location: Location) -> Diagnostic {
    let message = "`required` is an array of property names; what this says is left out";
    Diagnostic::new(&UNKNOWN_REQUIRED, location, message)
}
