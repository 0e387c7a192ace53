use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a JSON constant that Emacs does not support
    ///
    /// gptel uses `:json-false` and `:null` for false and null. deftool also accepts `:false` and `:json-null`, but
    /// Emacs does not: the request fails.
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

/// Returns the Emacs constant for `word`, if Emacs uses another name.
fn of_emacs(word: &str) -> Option<&'static str> {
    match word {
        ":false" => Some(":json-false"),
        ":json-null" => Some(":null"),
        _ => None,
    }
}

pub(in crate::spec) fn check(at: Location, word: &str) -> Option<Diagnostic> {
    let known = of_emacs(word)?;
    let finding = Diagnostic::new(&CONSTANT_OF_OURS, at, format!("Emacs does not support `{word}`; use `{known}`"));
    Some(finding.fixed_by(format!("write `{known}`"), at.span, known))
}
