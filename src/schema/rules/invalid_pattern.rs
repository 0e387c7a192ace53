use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :pattern that does not compile
    ///
    /// The pattern is sent as it is. OpenAI and llama.cpp refuse a request with one that they cannot read, and deftool does not enforce it.
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

pub(in crate::schema) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&INVALID_PATTERN, at, "the pattern does not compile as a regular expression of ECMA-262")
        .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it")
}
