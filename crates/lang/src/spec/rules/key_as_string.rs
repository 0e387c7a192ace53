use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key written as a string
    ///
    /// Keys are keywords, not strings as in JSON. Emacs signals an error if a plist has a string in the position of a
    /// key.
    ///
    /// ```eld fails
    /// (deftool :name "now" "description" "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) KEY_AS_STRING, "DT115", "key-as-string", Error
}

pub(in crate::spec) fn finding(at: Location, key: &str) -> Diagnostic {
    Diagnostic::new(&KEY_AS_STRING, at, format!("the key `:{key}` is written as a string")).maybe_fixed_by(
        format!("write `:{key}`"),
        at.span,
        format!(":{key}"),
    )
}
