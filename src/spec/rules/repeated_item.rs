use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a name that stands twice in a list
    ///
    /// The second changes nothing; mostly another one was meant.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now" "now"])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now"])
    /// ```
    pub(crate) REPEATED_ITEM, "DT123", "repeated-item", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str, item: &str, first: Span) -> Diagnostic {
    Diagnostic::new(&REPEATED_ITEM, at, format!("\"{item}\" stands twice in `:{key}`"))
        .and_at(first, "first given here")
}
