use crate::diagnostic::{Diagnostic, rule};
use crate::diagnostic::Severity;
use crate::text::Location;

rule! {
    /// an alist where a plist belongs
    ///
    /// Emacs writes an alist with symbols as keys as the same JSON object, but gptel looks into plists only: a `:type` symbol in an alist stays a
    /// symbol, which Emacs cannot write. A plist does what is meant.
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
    Diagnostic::new(&ALIST_OBJECT, at, "an alist, where a plist `(:key value …)` belongs")
        .note("Emacs writes both as the same object; gptel makes strings of `:type` symbols in plists only")
}

/// A `:type` symbol in it, which gptel does not send.
pub(in crate::spec) fn symbol(at: Location, word: &str) -> Diagnostic {
    let message = format!("in an alist gptel leaves the symbol `{word}` as it is, and Emacs cannot write it");
    let mut finding = Diagnostic::new(&ALIST_OBJECT, at, message)
        .note("write a plist in place of the alist, or the type as a string");
    finding.severity = Severity::Error;
    finding.maybe_fixed_by("write a string", at.span, super::quoted(word))
}
