use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a duplicate key; the first one is used
    ///
    /// Emacs uses the first of two equal keys, but most JSON parsers use the last one, so the behaviour of a server is
    /// undefined. deftool sends the first one and drops the others.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :description "Tell the date.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) DUPLICATE_KEY, "DT106", "duplicate-key", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str, first: Span) -> Diagnostic {
    let finding =
        Diagnostic::new(&DUPLICATE_KEY, at, format!("duplicate key `:{key}`; the first one is used"));
    finding.with_label_at(first, "first used here")
}
