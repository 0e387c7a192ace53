use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::text::Location;

rule! {
    /// an allow for an error
    ///
    /// An error means that an API rejects the tool or that the definition is ambiguous. Such a tool is not compiled or
    /// offered to a model. Only warnings and notes can be silenced.
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

/// `error`: the location of an error that the allow would silence, if any.
pub(crate) fn finding(at: Location, word: &str, error: Option<Location>) -> Diagnostic {
    let message = format!("cannot allow `{word}`, which is an error");
    let mut finding = Diagnostic::new(&ERROR_ALLOWED, at, message);
    if let Some(location) = error {
        finding.labels.push(Label { location, message: String::from("error reported here") });
    }
    finding.note("a tool with an error is never sent")
}
