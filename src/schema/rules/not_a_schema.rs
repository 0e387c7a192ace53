use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an argument to import that no value can be
    ///
    /// The schema of an argument is an object, or `true`. The schema `false` allows nothing: an argument that must never be given is no argument.
    ///
    /// ```json fails
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}, "legacy": false}}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    /// ```
    pub(crate) NOT_A_SCHEMA, "DT614", "not-a-schema", Error
}

/// `what` should have been a schema.
pub(crate) fn finding(location: Location, what: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_SCHEMA, location, format!("{what} has no schema that a value could fit"))
}
