use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// parameters to import with a schema that is not of type object
    ///
    /// In every API and in a spec, arguments are the members of one object. A schema of a different type does not
    /// describe arguments.
    ///
    /// ```json fails
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "string"}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    /// ```
    pub(crate) PARAMETERS_NOT_AN_OBJECT, "DT604", "parameters-not-an-object", Error
}

/// `found` describes the actual type.
pub(crate) fn finding(location: Location, found: &str) -> Diagnostic {
    let message = format!("expected parameters of type `object`, found {found}");
    Diagnostic::new(&PARAMETERS_NOT_AN_OBJECT, location, message)
}
