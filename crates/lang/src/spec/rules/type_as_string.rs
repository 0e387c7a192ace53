use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a :type written as a string
    ///
    /// Both notations are sent as the same string; the gptel documentation uses the symbol. There is one finding per
    /// file.
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
    let message = format!("write `:type {word}` instead of `:type \"{word}\"`");
    Diagnostic::new(&TYPE_AS_STRING, at, message).fixed_by(format!("write `{word}`"), at.span, word)
}
