use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an opening parenthesis, bracket or string that is never closed
    ///
    /// Everything after it belongs to it, so the rest of the file is read as something else. Reading starts anew at the next
    /// parenthesis in the first column, and indentation says which list was meant to end: the broken form is left out, the
    /// others are as they were.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the current time."
    ///
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time.")
    ///
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    pub(crate) UNCLOSED, "DT001", "unclosed", Error
}

/// `opener` stands at `at`; the label says until where it is open.
pub(in crate::syntax) fn finding(at: Location, opener: &str, label: String) -> Diagnostic {
    Diagnostic::new(&UNCLOSED, at, format!("`{opener}` is never closed")).labelled(label)
}
