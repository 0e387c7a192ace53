use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// two arguments of one name
    ///
    /// An argument is a key of a JSON object. Emacs writes both, and the API or its parser keeps one of them; the function still takes two.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string) (:name "x" :description "A y." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string) (:name "y" :description "A y." :type string)))
    /// ```
    pub(crate) DUPLICATE_ARGUMENT, "DT202", "duplicate-argument", Error
}

pub(in crate::spec) fn finding(at: Location, name: &str, first: Span) -> Diagnostic {
    let message = format!("two arguments called `{name}`");
    Diagnostic::new(&DUPLICATE_ARGUMENT, at, message).and_at(first, "first given here")
}
