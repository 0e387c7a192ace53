use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a tool without a description
    ///
    /// Based on the description, the model decides whether to call a tool. Gemini rejects a function without one.
    ///
    /// ```eld fails
    /// (deftool :name "now")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the current time.")
    /// ```
    pub(crate) MISSING_DESCRIPTION, "DT112", "missing-description", Warning
}

pub(in crate::spec) fn finding(at: Location, name: &str, is_empty: bool) -> Diagnostic {
    let what = if is_empty { "an empty" } else { "no" };
    let message = format!("`{name}` has {what} `:description`, so the model has to guess when to use it");
    Diagnostic::new(&MISSING_DESCRIPTION, at, message)
}
