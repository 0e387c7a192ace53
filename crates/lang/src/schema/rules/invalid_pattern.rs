use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::text::Location;

rule! {
    /// a :pattern that is not a valid ECMA-262 regular expression
    ///
    /// Patterns are ECMA-262 regular expressions. `(?i)`, `(?P<name>…)` and `a++` are Python and PCRE syntax. The
    /// pattern is sent unchanged; OpenAI and llama.cpp reject a request with a pattern that they cannot parse.
    ///
    /// If the finding is a note, the pattern is valid, but deftool does not support it and does not enforce it.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "[a-z")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "[a-z]")))
    /// ```
    pub INVALID_PATTERN, "DT226", "invalid-pattern", Warning
}

/// `problem` is a clause that describes the error.
pub(in crate::schema) fn finding(at: Location, problem: &str) -> Diagnostic {
    Diagnostic::new(&INVALID_PATTERN, at, format!("invalid pattern: {problem}"))
        .note("patterns use ECMA-262 syntax; this one is sent unchanged, and some APIs reject or misinterpret it")
}

/// The pattern is valid, but the validator does not support it.
pub(in crate::schema) fn unsupported(at: Location) -> Diagnostic {
    let mut finding = Diagnostic::new(&INVALID_PATTERN, at, "unsupported pattern; deftool does not enforce it")
        .note("it is valid in ECMA-262, but some APIs reject it");
    finding.severity = Severity::Note;
    finding
}
