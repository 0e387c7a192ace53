use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a keyword in the spelling of another language
    ///
    /// JSON Schema keywords are case-sensitive and use camel case. `:min_length` or `:any-of` is sent as an unknown
    /// key.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :min_length 1)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :minLength 1)))
    /// ```
    pub(crate) KEYWORD_SPELLING, "DT219", "keyword-spelling", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str, known: &str) -> Diagnostic {
    let message = format!("unknown keyword `:{key}`; the correct spelling is `:{known}`");
    Diagnostic::new(&KEYWORD_SPELLING, at, message)
        .note(format!("it is sent as the JSON key \"{key}\", which APIs do not support"))
        .fixed_by(format!("write `:{known}`"), at.span, format!(":{known}"))
}
