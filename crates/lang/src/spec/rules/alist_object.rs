use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::Severity;
use crate::text::Location;

rule! {
    /// an alist instead of a plist
    ///
    /// Emacs writes an alist with symbol keys and the equivalent plist as the same JSON object. But gptel converts the
    /// symbol of a `:type` to a string only in plists, and Emacs cannot write the symbol as JSON.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties ((id . (:type "integer"))))))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :description "Do a." :args '((:name "x" :description "An x." :type object :properties (:id (:type integer)))))
    /// ```
    pub(crate) ALIST_OBJECT, "DT248", "alist-object", Warning
}

pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&ALIST_OBJECT, at, "expected a plist `(:key value …)`, found an alist")
        .note("Emacs writes both as the same object, but gptel converts `:type` symbols to strings only in plists")
}

/// Reports a `:type` symbol in an alist, which gptel does not convert.
pub(in crate::spec) fn symbol(at: Location, word: &str) -> Diagnostic {
    let message = format!("gptel does not convert the symbol `{word}` in an alist, and Emacs cannot write it as JSON");
    let mut finding = Diagnostic::new(&ALIST_OBJECT, at, message)
        .note("write a plist instead of the alist, or the type as a string");
    finding.severity = Severity::Error;
    finding.maybe_fixed_by("write a string", at.span, super::quoted(word))
}
