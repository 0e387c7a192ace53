use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::{Location, Span};

rule! {
    /// an empty spec file
    ///
    /// The file does not even contain a comment. It was probably truncated while it was written, and its tools are
    /// lost.
    ///
    /// ```eld fails
    /// ```
    ///
    /// ```eld repaired
    /// ; tools of the next project
    /// ```
    pub(crate) EMPTY_FILE, "DT407", "empty-file", Note
}

/// `at`: any location in the file. `text`: its text.
pub(crate) fn check(at: Location, text: &str) -> Option<Diagnostic> {
    let at = Location { span: Span::new(0, 0), ..at };
    text.trim().is_empty().then(|| Diagnostic::new(&EMPTY_FILE, at, "the file is empty"))
}
