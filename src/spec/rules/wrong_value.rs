use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a value of the wrong kind for its key
    ///
    /// What stands there cannot mean what the key is for: a number where a text belongs, a word that is none of the known
    /// ones, a duration without its unit.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :timeout 5)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :timeout "5s")
    /// ```
    pub(crate) WRONG_VALUE, "DT113", "wrong-value", Error
}

/// `found`: its kind, as in `a string`, or itself in backquotes.
pub(in crate::spec) fn finding(at: Location, key: &str, expected: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, format!("`:{key}` takes {expected}, found {found}"))
}

/// What stands there may be a key: it is not repeated.
pub(in crate::spec) fn key_variable(at: Location) -> Diagnostic {
    Diagnostic::new(&WRONG_VALUE, at, "`:api-key-env` takes the name of an environment variable")
        .note("a key does not belong in a file; export it and name the variable")
}
