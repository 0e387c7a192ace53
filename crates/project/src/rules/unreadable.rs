use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an unreadable script or spec file
    ///
    /// The path is a folder, a pipe, a file without read permission, or a link out of the project. Every call of the
    /// tool would fail.
    pub(crate) UNREADABLE, "DT404", "unreadable", Error
}

pub(crate) fn finding(at: Location, message: &str) -> Diagnostic {
    Diagnostic::new(&UNREADABLE, at, message)
}
