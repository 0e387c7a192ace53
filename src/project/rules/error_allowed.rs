use crate::diagnostic::{Diagnostic, Label, rule};
use crate::text::Location;

rule! {
    /// an allow of an error
    ///
    /// Errors are what some API refuses or what cannot mean what was written: a tool with one is not compiled and not offered to
    /// a model, whatever is said about it. Only warnings and notes can be silenced.
    ///
    /// ```eld fails
    /// (deflint :allow [invalid-name])
    /// ```
    ///
    /// ```eld repaired
    /// (deflint :allow [missing-description])
    /// ```
    pub(crate) ERROR_ALLOWED, "DT127", "error-allowed", Warning
}

/// `error`: where it is, if it is there.
pub(in crate::project) fn finding(at: Location, word: &str, error: Option<Location>) -> Diagnostic {
    let message = format!("`{word}` is an error, and errors cannot be allowed");
    let mut finding = Diagnostic::new(&ERROR_ALLOWED, at, message);
    if let Some(location) = error {
        finding.labels.push(Label { location, message: String::from("this stays an error") });
    }
    finding.note("the tool would not be sent all the same")
}
