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

/// The schema of the argument `name` stands at `location`.
pub(crate) fn finding(location: Location, name: &str) -> Diagnostic {
    let message = format!("the argument `{name}` has no schema that a value could fit");
    Diagnostic::new(&NOT_A_SCHEMA, location, message)
}

/// `properties` at `location` are `found`.
pub(crate) fn no_properties(location: Location, found: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_SCHEMA, location, format!("`properties` is an object of schemas, found {found}"))
}
