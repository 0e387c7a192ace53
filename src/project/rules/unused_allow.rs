use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an allow that silences nothing
    ///
    /// What it was written for is mended, or it stands in the wrong place: on a line of its own it is about the form that
    /// follows, at the end of a line about what starts on that line. Left there it would hide a mistake that is made later.
    ///
    /// ```eld fails
    /// ;; deftool: allow(missing-description)
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// ;; deftool: allow(missing-description)
    /// (deftool :name "now")
    /// ```
    pub(crate) UNUSED_ALLOW, "DT126", "unused-allow", Note
}

pub(in crate::project) fn finding(at: Location, word: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_ALLOW, at, format!("there is no `{word}` here to allow"))
}
