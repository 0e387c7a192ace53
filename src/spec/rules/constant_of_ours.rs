use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a constant that Emacs does not write
    ///
    /// gptel gives Emacs `:json-false` and `:null` for false and null. `:false` and `:json-null` mean the same to deftool, and to Emacs nothing: the
    /// request ends in an error.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "a" :function #'ignore :description "Do a." :args '((:name "x" :description "An x." :type boolean :optional t :default :false)))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "a" :function #'ignore :description "Do a." :args '((:name "x" :description "An x." :type boolean :optional t :default :json-false)))
    /// ```
    pub(crate) CONSTANT_OF_OURS, "DT256", "constant-of-ours", Warning
}

/// The constant of Emacs that `word` is, where Emacs has another.
fn of_emacs(word: &str) -> Option<&'static str> {
    match word {
        ":false" => Some(":json-false"),
        ":json-null" => Some(":null"),
        _ => None,
    }
}

pub(in crate::spec) fn check(at: Location, word: &str) -> Option<Diagnostic> {
    let known = of_emacs(word)?;
    let finding = Diagnostic::new(&CONSTANT_OF_OURS, at, format!("Emacs does not write `{word}`; it has `{known}`"));
    Some(finding.fixed_by(format!("write `{known}`"), at.span, known))
}
