use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an unclosed parenthesis, bracket or string
    ///
    /// Everything after the opening character belongs to the unclosed form, so the rest of the file has a different
    /// meaning. The reader resumes at the next parenthesis in the first column and uses the indentation to find the
    /// unclosed list. The broken form is skipped; all other forms are checked as usual.
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
    pub UNCLOSED, "DT001", "unclosed", Error
}

/// `opener` is the text at `at`; the label shows how far it is open.
pub(in crate::syntax) fn finding(at: Location, opener: &str, label: String) -> Diagnostic {
    Diagnostic::new(&UNCLOSED, at, format!("unclosed `{opener}`")).labelled(label)
}
