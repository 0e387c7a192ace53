//! Writing to a terminal or a pipe. A reader that went away is no error.

use std::io::{IsTerminal, Write};

use crate::diagnostic::{Diagnostic, Summary, render};
use crate::text::Sources;

/// Writes to stdout, as it is.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a line to stderr.
pub(super) fn say(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{text}");
}

/// Says an error in one line, and what follows it.
pub(super) fn say_error(text: &str) {
    say(&format!("{} {text}", paint("error:", anstyle::AnsiColor::Red)));
}

/// `text` in a colour, bold; the stream takes it away again where colours have no place.
pub(super) fn paint(text: &str, color: anstyle::AnsiColor) -> String {
    let style = color.on_default().bold();
    format!("{style}{text}{style:#}")
}

/// Writes findings, as people read them, to stdout.
pub(super) fn print_findings(findings: &[Diagnostic], sources: &Sources) {
    let mut out = anstream::stdout().lock();
    let _ = write_findings(&mut out, findings, sources);
}

/// Writes findings, as people read them, to stderr.
pub(super) fn say_findings(findings: &[Diagnostic], sources: &Sources) {
    let mut err = anstream::stderr().lock();
    let _ = write_findings(&mut err, findings, sources);
}

fn write_findings(out: &mut impl Write, findings: &[Diagnostic], sources: &Sources) -> std::io::Result<()> {
    for finding in findings {
        writeln!(out, "{}\n", render::render_human(finding, sources, true))?;
    }
    out.flush()
}

/// `2 errors, 1 warning`; `None` where there is nothing to count.
pub(super) fn describe_summary(summary: &Summary) -> Option<String> {
    let counts = [(summary.errors, "error"), (summary.warnings, "warning"), (summary.notes, "note")];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Whether progress may be drawn on stderr.
pub(super) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
