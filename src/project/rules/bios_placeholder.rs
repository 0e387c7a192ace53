use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a word in braces that is nearly a placeholder
    ///
    /// A BIOS may hold `{worker}`, `{time}`, `{zone}`, `{budget}`, `{exit_tools}` and `{call_convention}`. Other words in braces
    /// are sent as they are.
    ///
    /// ```eld fails
    /// (defworker :name "local" :bios "bios.txt")
    /// ```
    ///
    /// ```text bios.txt fails
    /// Tool iterations left: {bugdet}.
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :bios "bios.txt")
    /// ```
    ///
    /// ```text bios.txt repaired
    /// Tool iterations left: {budget}.
    /// ```
    pub(crate) BIOS_PLACEHOLDER, "DT321", "bios-placeholder", Warning
}

/// `line`: where in the file, from 1.
pub(in crate::project) fn finding(at: Location, file: &str, line: usize, word: &str, meant: &str) -> Diagnostic {
    let message = format!("{file}:{line}: `{{{word}}}` is no placeholder and is sent as it is");
    Diagnostic::new(&BIOS_PLACEHOLDER, at, message).labelled(format!("did you mean `{{{meant}}}`?"))
}
