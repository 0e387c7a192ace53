use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a closing parenthesis or bracket that closes nothing
    ///
    /// Mostly a form before it was closed one parenthesis too early, and its last keys stand outside of it, where nothing
    /// reads them.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the current time.")
    ///  :timeout "5s")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time."
    ///  :timeout "5s")
    /// ```
    pub(crate) STRAY_CLOSER, "DT002", "stray-closer", Error
}

/// `before`: where the form before it ends.
pub(in crate::syntax) fn finding(at: Location, closer: char, before: Option<Span>) -> Diagnostic {
    let finding = Diagnostic::new(&STRAY_CLOSER, at, format!("`{closer}` closes nothing"));
    match before {
        Some(end) => finding.and_at(end, "the form before it ends here"),
        None => finding,
    }
}
