use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a duplicate name in a list
    ///
    /// The duplicate has no effect. Often a different name was intended.
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
    Diagnostic::new(&REPEATED_ITEM, at, format!("duplicate \"{item}\" in `:{key}`"))
        .with_label_at(first, "first used here")
}
