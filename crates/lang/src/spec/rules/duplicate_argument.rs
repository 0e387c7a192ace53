use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// two arguments with the same name
    ///
    /// An argument is a key of a JSON object. Emacs writes both keys, and the API or its parser keeps one of them, but
    /// the function still expects two arguments.
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
    let message = format!("duplicate argument `{name}`");
    Diagnostic::new(&DUPLICATE_ARGUMENT, at, message).with_label_at(first, "first defined here")
}
