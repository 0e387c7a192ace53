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

/// `word` stands where the first key does.
pub(in crate::spec) fn without_key(at: Location, word: &str) -> Diagnostic {
    let name = super::quoted(word);
    Diagnostic::new(&MISSING_NAME, at, format!("a tool needs a `:name`, found {name} without the key"))
        .note("a tool is a plist: `(deftool :name \"…\" :description \"…\" :args (…))`")
        .maybe_fixed_by(format!("write `:name {name}`"), at.span, format!(":name {name}"))
}

/// A key that is none and was meant to be the name.
pub(in crate::spec) fn misspelt(at: Location, what: &str, key: &str) -> Diagnostic {
    Diagnostic::new(&MISSING_NAME, at, format!("{what} needs a `:name`, found `:{key}`"))
        .meant(at.span, ":name")
}
