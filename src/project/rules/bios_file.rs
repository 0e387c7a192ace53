use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a worker whose BIOS cannot be read
    ///
    /// `:bios` names a file inside of the project, whose text is sent as the first system message. Without it the worker does
    /// not start.
    ///
    /// ```eld fails
    /// (defworker :name "local" :bios "bios.txt")
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :bios "bios.txt")
    /// ```
    ///
    /// ```text bios.txt repaired
    /// You are {worker}. Tool iterations left: {budget}.
    /// ```
    pub(crate) BIOS_FILE, "DT320", "bios-file", Error
}

pub(in crate::project) fn finding(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&BIOS_FILE, at, why)
}
