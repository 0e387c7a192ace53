use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a duplicate member of a JSON object to import
    ///
    /// The last value is used, as in most JSON parsers. The earlier values have no effect.
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

/// `key` occurs at `location` and earlier at `first`.
pub(crate) fn finding(location: Location, key: &str, first: Span) -> Diagnostic {
    let message = format!("duplicate member `{key}`; the last value is used");
    Diagnostic::new(&REPEATED_MEMBER, location, message).with_label_at(first, "first defined here")
}
