use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an argument to import that accepts no value
    ///
    /// The schema of an argument is an object, or `true`. The schema `false` accepts no value, so such an argument can
    /// never be passed.
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

/// The schema of the argument `name` is at `location`.
pub(crate) fn finding(location: Location, name: &str) -> Diagnostic {
    let message = format!("the schema of the argument `{name}` accepts no value");
    Diagnostic::new(&NOT_A_SCHEMA, location, message)
}

/// `properties` at `location` has the type `found`.
pub(crate) fn no_properties(location: Location, found: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_SCHEMA, location, format!("expected an object of schemas in `properties`, found {found}"))
}
