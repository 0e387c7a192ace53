use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a keyword of an argument's schema that is taken by the spec itself
    ///
    /// In the plist of an argument `:name` is its name and `:optional` says that it may be left out. JSON Schema has neither keyword, but a schema may carry
    /// them; they are left out. Deeper inside they are kept.
    ///
    /// ```json fails
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string", "optional": true}}}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    /// ```
    pub(crate) ARGUMENT_KEY, "DT608", "argument-key", Warning
}

/// `key` is `name` or `optional`.
pub(crate) fn finding(location: Location, key: &str) -> Diagnostic {
    let message = format!("`{key}` is no keyword of JSON Schema, and an argument's `:{key}` says something else; left out");
    Diagnostic::new(&ARGUMENT_KEY, location, message)
}
