use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a spec file with nothing in it
    ///
    /// Not even a comment: mostly a file that was cut off when it was written, and its tools are gone without a word.
    ///
    /// ```eld fails
    /// ```
    ///
    /// ```eld repaired
    /// ; tools of the next project
    /// ```
    pub(crate) EMPTY_FILE, "DT407", "empty-file", Note
}

/// `at`: any place of the file, whose text is `text`.
pub(in crate::project) fn check(at: Location, text: &str) -> Option<Diagnostic> {
    let at = Location { span: Span::new(0, 0), ..at };
    text.trim().is_empty().then(|| Diagnostic::new(&EMPTY_FILE, at, "the file is empty"))
}
