use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// an unresolved merge conflict
    ///
    /// Emacs reads git's conflict markers as symbols and would use both versions. deftool reads only the first version.
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

/// `last` is the marker at the end of the conflict.
pub(in crate::syntax) fn finding(at: Location, last: Span) -> Diagnostic {
    Diagnostic::new(&MERGE_CONFLICT, at, "unresolved merge conflict")
        .with_label_at(last, "the conflict ends here")
}
