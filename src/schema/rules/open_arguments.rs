use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// parameters to import that allow arguments of any name
    ///
    /// A spec's tool takes the arguments that it names, in order, and no others; deftool refuses a call with further ones. A tool that needs them takes an argument of
    /// type object.
    ///
    /// ```json fails
    /// {"name": "tag", "description": "Tag it.", "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": true}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "tag", "description": "Tag it.", "input_schema": {"type": "object", "properties": {"id": {"type": "string"},
    ///   "tags": {"type": "object", "additionalProperties": true}}}}
    /// ```
    pub(crate) OPEN_ARGUMENTS, "DT609", "open-arguments", Warning
}

/// `additionalProperties` stands at `location`.
pub(crate) fn finding(location: Location) -> Diagnostic {
    let message = "a spec's tool takes only the arguments that it names; the others that this allows are left out";
    Diagnostic::new(&OPEN_ARGUMENTS, location, message)
}
