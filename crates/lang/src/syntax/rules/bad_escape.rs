use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a backslash escape that Emacs cannot read
    ///
    /// Emacs stops reading the whole file at such an escape. Regular expressions and Windows paths need two
    /// backslashes for each literal one.
    ///
    /// ```eld fails
    /// (deftool :name "clean" :description "Remove what stands in C:\users\temp.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "clean" :description "Remove what stands in C:\\users\\temp.")
    /// ```
    pub(crate) BAD_ESCAPE, "DT005", "bad-escape", Error
}

/// `problem` is the error message.
pub(in crate::syntax) fn finding(at: Location, problem: String) -> Diagnostic {
    Diagnostic::new(&BAD_ESCAPE, at, problem).note("write `\\\\` for a literal backslash")
}
