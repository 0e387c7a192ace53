use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a merge that was not settled
    ///
    /// The markers that git leaves where two versions disagree are words to Emacs, and both versions would count. The first one
    /// is read here.
    ///
    /// ```eld fails
    /// <<<<<<< HEAD
    /// (deftool :name "now" :description "Tell the time.")
    /// =======
    /// (deftool :name "now" :description "Tell the current time.")
    /// >>>>>>> times
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time.")
    /// ```
    pub(crate) MERGE_CONFLICT, "DT013", "merge-conflict", Error
}

/// `last`: the marker that ends it.
pub(in crate::syntax) fn finding(at: Location, last: Span) -> Diagnostic {
    Diagnostic::new(&MERGE_CONFLICT, at, "an unsettled merge starts here").and_at(last, "and ends here")
}
