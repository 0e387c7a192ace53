use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::text::Location;

rule! {
    /// a :pattern that is no regular expression of ECMA-262
    ///
    /// Patterns are regular expressions of ECMA-262. Flags as `(?i)`, `(?P<name>…)` and `a++` are of Python and PCRE. The pattern is sent as it
    /// is; OpenAI and llama.cpp refuse a request with one that they cannot read.
    ///
    /// A note: it is legal, but deftool cannot read it and does not enforce it.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "[a-z")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "[a-z]")))
    /// ```
    pub(crate) INVALID_PATTERN, "DT226", "invalid-pattern", Warning
}

/// `problem`: what is wrong with it, in a clause.
pub(in crate::schema) fn finding(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&INVALID_PATTERN, at, format!("in the pattern {problem}"))
        .note("patterns are of ECMA-262; it is sent as it is, some APIs refuse it and others take it for something else")
}

/// Legal, and more than the validator knows.
pub(in crate::schema) fn unread(at: Location) -> Diagnostic {
    let mut finding = Diagnostic::new(&INVALID_PATTERN, at, "deftool cannot read this pattern and does not enforce it")
        .note("ECMA-262 allows it; some APIs refuse it all the same");
    finding.severity = Severity::Note;
    finding
}
