use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script that cannot be read
    ///
    /// It is a folder, a pipe, or a file that this user may not read. Every call of the tool would fail.
    pub(crate) UNREADABLE, "DT404", "unreadable", Error
}

pub(in crate::project) fn finding(at: Location, message: &str) -> Diagnostic {
    Diagnostic::new(&UNREADABLE, at, message)
}
