use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a backslash escape that Emacs does not read
    ///
    /// Emacs gives up on the whole file at such an escape. A regular expression or a Windows path needs two backslashes for
    /// each one that is meant.
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

/// `problem`: what is wrong with it, in a clause.
pub(in crate::syntax) fn finding(at: Location, problem: String) -> Diagnostic {
    Diagnostic::new(&BAD_ESCAPE, at, problem).note("for a backslash itself write two: `\\\\`")
}
