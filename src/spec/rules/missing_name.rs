use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a form without :name
    ///
    /// The name is what a model writes to call a tool and what an argument is called in the JSON; no API takes either without.
    ///
    /// ```eld fails
    /// (deftool :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) MISSING_NAME, "DT109", "missing-name", Error
}

/// `what`: with its article, as in `a tool`.
pub(in crate::spec) fn finding(at: Location, what: &str) -> Diagnostic {
    let finding = Diagnostic::new(&MISSING_NAME, at, format!("{what} needs a `:name`"));
    if what == "a tool" { finding.note("add `:name \"…\"`, up to 64 of A-Z a-z 0-9 _ -") } else { finding }
}

/// A key that is none and was meant to be the name.
pub(in crate::spec) fn misspelt(at: Location, key: &str) -> Diagnostic {
    Diagnostic::new(&MISSING_NAME, at, format!("a tool needs a `:name`, found `:{key}`"))
        .meant(at.span, ":name")
}
