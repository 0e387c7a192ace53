use crate::diagnostic::{Diagnostic, rule};
use crate::project::bios::Unknown;
use crate::spec::Placeholder;
use crate::text::Location;

rule! {
    /// a word in braces that is no placeholder
    ///
    /// A BIOS may hold `{worker}`, `{time}`, `{zone}`, `{budget}`, `{exit_tools}` and `{call_convention}`. Other words in braces
    /// are sent as they are. Where that is meant, twice the braces say so: `{{city}}` sends `{city}`. JSON is no word, and braces
    /// after a `$`, a backslash or a word, as in `${HOME}` and `\emph{it}`, are those of some code.
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

pub(in crate::project) fn finding(at: Location, file: &str, unknown: &Unknown<'_>) -> Diagnostic {
    let Unknown { line, word, meant } = unknown;
    let message = format!("{file}:{line}: `{{{word}}}` is no placeholder and is sent as it is");
    let finding = Diagnostic::new(&BIOS_PLACEHOLDER, at, message);
    match meant {
        Some(meant) => finding.labelled(format!("did you mean `{{{meant}}}`?")),
        None => finding.note(format!(
            "placeholders are {}; to send `{{{word}}}`, write `{{{{{word}}}}}`",
            Placeholder::ALL.map(|known| format!("`{{{}}}`", known.as_str())).join(", ")
        )),
    }
}
