use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a worker with an unusable BIOS file
    ///
    /// `:bios` names a file whose text is sent as the first system message. If the file cannot be read, the worker does not
    /// start. A file outside of the project is not checked.
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

pub(crate) fn finding(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&BIOS_FILE, at, why)
}
