use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a form without :name
    ///
    /// The model calls a tool by its name, and the name of an argument is its JSON key. Every API requires both.
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

/// `what` is a noun with its article, such as `a tool`.
pub(in crate::spec) fn finding(at: Location, what: &str) -> Diagnostic {
    let finding = Diagnostic::new(&MISSING_NAME, at, format!("missing `:name` for {what}"));
    if what == "a tool" { finding.note("add `:name \"…\"`, up to 64 of A-Z a-z 0-9 _ -") } else { finding }
}

/// Reports a name without its key; `word` is the first element of the form.
pub(in crate::spec) fn without_key(at: Location, word: &str) -> Diagnostic {
    let name = super::quoted(word);
    Diagnostic::new(&MISSING_NAME, at, format!("missing `:name` for a tool, found {name} without the key"))
        .note("a tool is a plist: `(deftool :name \"…\" :description \"…\" :args (…))`")
        .maybe_fixed_by(format!("write `:name {name}`"), at.span, format!(":name {name}"))
}

/// Reports an unknown key that was probably meant to be the name.
pub(in crate::spec) fn misspelt(at: Location, what: &str, key: &str) -> Diagnostic {
    Diagnostic::new(&MISSING_NAME, at, format!("missing `:name` for {what}, found `:{key}`"))
        .did_you_mean(at.span, ":name")
}
