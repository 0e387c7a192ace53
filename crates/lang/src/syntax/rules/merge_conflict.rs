use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// an unresolved merge conflict
    ///
    /// Emacs reads the conflict markers of git as symbols, and both versions would be used. deftool reads the first
    /// version only.
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
    pub MERGE_CONFLICT, "DT013", "merge-conflict", Error
}

/// `last` is the marker at the end of the conflict.
pub(in crate::syntax) fn finding(at: Location, last: Span) -> Diagnostic {
    Diagnostic::new(&MERGE_CONFLICT, at, "unresolved merge conflict")
        .with_label_at(last, "the conflict ends here")
}
