use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key of an argument schema that has a different meaning in a spec
    ///
    /// In the plist of an argument, `:name` is the argument's name and `:optional` makes it optional. Neither is a JSON
    /// Schema keyword, but an imported schema may contain these keys. They are ignored at the top level of an argument
    /// and kept in nested schemas.
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
    let message = format!("`{key}` is not a JSON Schema keyword, and `:{key}` has another meaning in a spec; ignored");
    Diagnostic::new(&ARGUMENT_KEY, location, message)
}
