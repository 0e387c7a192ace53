use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// parameters to import whose schema is not that of an object
    ///
    /// Arguments are the members of one object, for every API and in a spec. A schema of anything else describes no arguments.
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

/// `found` is what stands there.
pub(crate) fn finding(location: Location, found: &str) -> Diagnostic {
    let message = format!("the parameters of a tool are a schema of type `object`, found {found}");
    Diagnostic::new(&PARAMETERS_NOT_AN_OBJECT, location, message)
}
