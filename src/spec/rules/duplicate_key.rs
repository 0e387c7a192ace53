use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a key that is given twice; the first counts
    ///
    /// Emacs takes the first of two, JSON readers take the last: what a server makes of it cannot be known. deftool sends the
    /// first and drops the second.
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
    let finding = Diagnostic::new(&DUPLICATE_KEY, at, format!("`:{key}` is given twice; the first counts"));
    finding.and_at(first, "first given here")
}
