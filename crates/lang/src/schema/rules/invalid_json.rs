use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a list of tools that is not valid JSON
    ///
    /// `deftool import` and `deftool check` read JSON as specified by RFC 8259: double quotes, no comments, no trailing
    /// commas. They stop at the first error. Everything before the error is imported.
    ///
    /// ```json fails
    /// {"name": "now", "description": "Tell the time.",}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "now", "description": "Tell the time."}
    /// ```
    pub(crate) INVALID_JSON, "DT601", "invalid-json", Error
}

/// The text is not valid JSON at `location`.
pub(crate) fn finding(location: Location, message: String) -> Diagnostic {
    Diagnostic::new(&INVALID_JSON, location, message)
}
