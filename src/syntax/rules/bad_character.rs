use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a character literal that Emacs does not read
    ///
    /// `?a` is the number of one character. What looks like a word with a question mark before it is not Lisp.
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

/// `problem`: what is wrong with it, in a clause.
pub(in crate::syntax) fn finding(at: Location, problem: String) -> Diagnostic {
    Diagnostic::new(&BAD_CHARACTER, at, problem)
}
