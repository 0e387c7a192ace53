use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// text to import that is no JSON
    ///
    /// `deftool import` reads JSON as RFC 8259 has it: double quotes, no comments, no comma after the last member. It stops where the text is none, for what
    /// follows would be a guess; what stands before is imported.
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

/// The text is no JSON from `location` on.
pub(crate) fn finding(location: Location, message: String) -> Diagnostic {
    Diagnostic::new(&INVALID_JSON, location, message)
}
