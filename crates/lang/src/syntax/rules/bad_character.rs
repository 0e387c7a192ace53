use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a character literal that Emacs cannot read
    ///
    /// `?a` is the number of a single character. A word after a question mark is a syntax error.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "sep" :description "Split a text." :function (lambda () (string ?ab)))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "sep" :description "Split a text." :function (lambda () (string ?a ?b)))
    /// ```
    pub(crate) BAD_CHARACTER, "DT006", "bad-character", Error
}

/// `problem` is the error message.
pub(in crate::syntax) fn finding(at: Location, problem: String) -> Diagnostic {
    Diagnostic::new(&BAD_CHARACTER, at, problem)
}
