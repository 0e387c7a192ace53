use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::Placeholder;
use deftool_lang::text::Location;

rule! {
    /// an unknown placeholder in a BIOS
    ///
    /// The placeholders of a BIOS are `{worker}`, `{time}`, `{zone}`, `{budget}`, `{exit_tools}` and
    /// `{call_convention}`. Other words in braces are sent unchanged. To send braces on purpose, double them:
    /// `{{city}}` sends `{city}`. JSON is not affected, and neither are braces after `$`, a backslash or a word, as in
    /// `${HOME}` and `\emph{it}`.
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

/// A word in braces that is not a placeholder and is sent unchanged.
pub(crate) struct UnknownPlaceholder<'t> {
    /// The line, starting at 1.
    pub(crate) line: usize,
    pub(crate) word: &'t str,
    /// The most similar placeholder, if any.
    pub(crate) meant: Option<&'static str>,
}

pub(crate) fn finding(at: Location, file: &str, unknown: &UnknownPlaceholder<'_>) -> Diagnostic {
    let UnknownPlaceholder { line, word, meant } = unknown;
    let message = format!("{file}:{line}: unknown placeholder `{{{word}}}` is sent unchanged");
    let finding = Diagnostic::new(&BIOS_PLACEHOLDER, at, message);
    match meant {
        Some(meant) => finding.labelled(format!("did you mean `{{{meant}}}`?")),
        None => finding.note(format!(
            "placeholders are {}; to send `{{{word}}}`, write `{{{{{word}}}}}`",
            Placeholder::ALL.map(|known| format!("`{{{}}}`", known.as_str())).join(", ")
        )),
    }
}
