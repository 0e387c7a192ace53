use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// parameters to import that allow arbitrary arguments
    ///
    /// A tool in a spec accepts only the arguments that it declares; deftool rejects a call with any other argument. A
    /// tool that needs arbitrary arguments can declare an argument of type object.
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

/// `additionalProperties` is at `location`.
pub(crate) fn finding(location: Location) -> Diagnostic {
    let message = "a tool in a spec accepts only declared arguments; additional arguments are ignored";
    Diagnostic::new(&OPEN_ARGUMENTS, location, message)
}
