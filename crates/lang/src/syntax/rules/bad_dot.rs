use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a dot that is not before the last element of a list
    ///
    /// A dot with whitespace around it makes a dotted pair, and Emacs accepts it only before the last element of a
    /// list. A dot in prose belongs in a string.
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
    Diagnostic::new(&BAD_DOT, at, "a dot is only allowed before the last element of a list")
}
