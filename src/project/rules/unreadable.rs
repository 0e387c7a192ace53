use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script or spec file that cannot be read
    ///
    /// It is a folder, a pipe, a file that this user may not read, or a link that leads out of the project. Every call of
    /// the tool would fail.
    pub(crate) UNREADABLE, "DT404", "unreadable", Error
}

pub(in crate::project) fn finding(at: Location, message: &str) -> Diagnostic {
    Diagnostic::new(&UNREADABLE, at, message)
}
