use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :type written as a string
    ///
    /// Both are sent as the same string; the symbol is how gptel's documentation writes it.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type "string")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) TYPE_AS_STRING, "DT217", "type-as-string", Note
}

pub(in crate::spec) fn finding(at: Location, word: &str) -> Diagnostic {
    let message = format!("`:type \"{word}\"` is written `:type {word}`");
    Diagnostic::new(&TYPE_AS_STRING, at, message).fixed_by(format!("write `{word}`"), at.span, word)
}
