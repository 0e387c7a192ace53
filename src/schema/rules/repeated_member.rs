use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a member of a JSON object to import that is given twice
    ///
    /// The last counts, as for most readers of JSON, and the first was written for nothing.
    ///
    /// ```json fails
    /// {"name": "now", "description": "Tell the date.", "description": "Tell the time."}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "now", "description": "Tell the time."}
    /// ```
    pub(crate) REPEATED_MEMBER, "DT611", "repeated-member", Warning
}

/// `key` stands at `location`, and stood at `first`.
pub(crate) fn finding(location: Location, key: &str, first: Span) -> Diagnostic {
    let message = format!("`{key}` is given twice; the last counts");
    Diagnostic::new(&REPEATED_MEMBER, location, message).and_at(first, "first given here")
}
