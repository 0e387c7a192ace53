use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a dot that is not before the last element of a list
    ///
    /// A dot with a blank on either side makes a pair; Emacs reads it nowhere else. In prose it belongs into a string.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time" . :timeout "5s")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :timeout "5s")
    /// ```
    pub(crate) BAD_DOT, "DT004", "bad-dot", Error
}

pub(in crate::syntax) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&BAD_DOT, at, "a dot belongs before the last element of a list")
}
