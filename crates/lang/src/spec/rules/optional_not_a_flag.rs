use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::DatumKind;
use crate::text::Location;

rule! {
    /// :optional with a value other than t or nil
    ///
    /// For Emacs every value but nil is true: `:optional :json-false` and `:optional "no"` make the argument optional.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :optional :json-false)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) OPTIONAL_NOT_A_FLAG, "DT241", "optional-not-a-flag", Warning
}

pub(in crate::spec) fn finding(at: Location, found: &DatumKind) -> Diagnostic {
    let no = match found {
        DatumKind::Keyword(word) => word == ":json-false" || word == ":false" || word == ":null",
        DatumKind::String(word) => matches!(word.as_str(), "false" | "no" | "nil" | ""),
        DatumKind::Symbol(word) => matches!(word.as_str(), "false" | "no"),
        _ => false,
    };
    if no {
        let message = "every value but nil makes an argument optional, including this one";
        Diagnostic::new(&OPTIONAL_NOT_A_FLAG, at, message).maybe_fixed_by("write `nil`", at.span, "nil")
    } else {
        Diagnostic::new(&OPTIONAL_NOT_A_FLAG, at, "`:optional` takes t or nil; this value counts as t")
            .fixed_by("write `t`", at.span, "t")
    }
}
