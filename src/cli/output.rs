//! Writing to a terminal, a file or a pipe.
//!
//! What cannot be written to stdout is remembered and told once, at the end; a reader that went away is no error, as
//! in `deftool check | head`. Where both streams go to one place, what is said begins a line of its own.

use std::borrow::Cow;
use std::io::{BufWriter, ErrorKind, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use serde::Serialize;

use super::args::Color;
use super::spinner;
use crate::diagnostic::{Diagnostic, Summary, render};
use crate::text::{Sources, count, is_control};

/// The first error of writing to stdout.
static STDOUT_ERROR: OnceLock<std::io::Error> = OnceLock::new();

/// Whether the last that [`print`] wrote was no line end; changed by who holds stdout.
static IS_MID_LINE: AtomicBool = AtomicBool::new(false);

/// How many threads write.
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// Whether something is being written: perhaps to a reader that stands still, for as long as that does.
pub(super) fn is_writing() -> bool {
    WRITING.load(Ordering::Relaxed) > 0
}

fn writing<T>(write: impl FnOnce() -> T) -> T {
    WRITING.fetch_add(1, Ordering::Relaxed);
    let written = write();
    WRITING.fetch_sub(1, Ordering::Relaxed);
    written
}

fn note(written: std::io::Result<()>) {
    if let Err(error) = written {
        STDOUT_ERROR.get_or_init(|| error);
    }
}

/// Settles for both streams whether there are colours.
pub(super) fn choose_color(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Whether something could not be written to stdout.
pub(super) fn stdout_failed() -> bool {
    STDOUT_ERROR.get().is_some()
}

/// The error by which the command's result was lost; a reader that went away wanted no more of it.
pub(super) fn stdout_error() -> Option<&'static std::io::Error> {
    STDOUT_ERROR.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Writes to stdout, as it is.
pub(super) fn print(text: &str) {
    print_to(&mut std::io::stdout().lock(), text);
}

fn print_to(out: &mut StdoutLock<'_>, text: &str) {
    if let Some(last) = text.as_bytes().last() {
        IS_MID_LINE.store(*last != b'\n', Ordering::Relaxed);
    }
    note(writing(|| out.write_all(text.as_bytes()).and_then(|()| out.flush())));
}

/// Ends the line on stdout, if one has begun.
pub(super) fn end_line() {
    let mut out = std::io::stdout().lock();
    if IS_MID_LINE.load(Ordering::Relaxed) {
        print_to(&mut out, "\n");
    }
}

/// Whether what is said now would stand behind text on stdout.
pub(super) fn is_mid_line() -> bool {
    IS_MID_LINE.load(Ordering::Relaxed) && *STREAMS_MEET
}

/// What is said next begins a line. Where stdout goes elsewhere, nothing of it is changed.
pub(super) fn begin_line() {
    if *STREAMS_MEET {
        end_line();
    }
}

/// Whether stdout and stderr go to one place: a terminal, or one pipe or file.
static STREAMS_MEET: LazyLock<bool> = LazyLock::new(|| {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    (out.is_terminal() && err.is_terminal()) || is_one_file(&out, &err)
});

#[cfg(unix)]
fn is_one_file(out: &Stdout, err: &Stderr) -> bool {
    let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    match (rustix::fs::fstat(out), rustix::fs::fstat(err)) {
        (Ok(out), Ok(err)) => place(out) == place(err),
        (Ok(_) | Err(_), _) => false,
    }
}

/// What std tells of files there does not tell.
#[cfg(not(unix))]
fn is_one_file(_: &Stdout, _: &Stderr) -> bool {
    false
}

/// Writes one text after the other to stdout, a good many at a time.
pub(super) fn print_all(texts: impl Iterator<Item = String>) {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for text in texts {
        let written = out.write_all(text.as_bytes());
        let failed = written.is_err();
        note(written);
        if failed {
            // What waits in the buffer fails as well.
            drop(out.into_parts());
            return;
        }
    }
    note(out.flush());
}

/// Writes painted text to stdout; without its colours where they have no place, and with nothing in it that a CI runner
/// would obey.
pub(super) fn print_painted(text: &str) {
    let mut out = anstream::stdout().lock();
    note(out.write_all(inert(text).as_bytes()).and_then(|()| out.flush()));
}

/// Writes lines for people to stdout, with nothing in them that a CI runner would obey.
pub(super) fn print_lines(text: &str) {
    print(&inert(text));
}

/// `text` without what a CI runner takes for a command, whoever wrote it.
///
/// GitHub's runner obeys a line that begins with `::NAME::` after blanks, and `##[NAME]` anywhere in a line; others obey
/// `##vso[…]` and `##teamcity[…]`. (`ActionCommand.cs` of actions/runner, read 2026-11: lines are trimmed first, so blanks
/// before a command do not help.) A bar is put before the first, and the second `#` of the others is replaced as control
/// characters are.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut inert = String::with_capacity(text.len() + 16);
    for line in without_markers(text, "\u{FFFD}").split_inclusive(['\n', '\r']) {
        let rest = line.trim_start();
        inert.push_str(line.strip_suffix(rest).unwrap_or_default());
        if rest.starts_with("::") {
            inert.push_str("| ");
        }
        inert.push_str(rest);
    }
    Cow::Owned(inert)
}

/// `text` with `instead` in place of the second `#` of every `##[` and `##name[`.
fn without_markers(text: &str, instead: &str) -> String {
    let mut parts = String::with_capacity(text.len());
    let mut done = 0;
    for (bracket, _) in text.match_indices('[') {
        let before = text.get(done..bracket).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        if let Some(kept) = before.strip_suffix("##") {
            parts.extend([kept, "#", instead]);
            done += before.len();
        }
    }
    parts.push_str(text.get(done..).unwrap_or_default());
    parts
}

/// Writes a line to stderr, with nothing in it that a CI runner would obey.
pub(super) fn say(text: &str) {
    let text = inert(text);
    begin_line();
    writing(|| {
        spinner::aside(|| {
            let mut err = anstream::stderr().lock();
            let _ = writeln!(err, "{text}");
        });
    });
}

/// Says an error in one line, and what follows it.
pub(super) fn say_error(text: &str) {
    say(&format!("{} {}", paint("error:", anstyle::AnsiColor::Red), clean(text)));
}

/// `text` in a colour, bold; the stream takes it away again where colours have no place.
pub(super) fn paint(text: &str, color: anstyle::AnsiColor) -> String {
    let style = color.on_default().bold();
    format!("{style}{text}{style:#}")
}

/// Writes findings, as people read them, to stdout.
pub(super) fn print_findings(findings: &[Diagnostic], sources: &Sources) {
    let mut out = anstream::stdout().lock();
    note(write_findings(&mut out, findings, sources));
}

/// Writes findings, as people read them, to stderr.
pub(super) fn say_findings(findings: &[Diagnostic], sources: &Sources) {
    begin_line();
    let mut err = anstream::stderr().lock();
    let _ = write_findings(&mut err, findings, sources);
}

fn write_findings(out: &mut impl Write, findings: &[Diagnostic], sources: &Sources) -> std::io::Result<()> {
    for finding in findings.iter().take(MAX_FINDINGS) {
        writeln!(out, "{}\n", inert(&render::render_human(finding, sources, true)))?;
    }
    if let Some(more) = describe_more(findings.len()) {
        writeln!(out, "{more}")?;
    }
    out.flush()
}

/// The most findings that people are shown: nobody reads more, and each has several lines.
pub(super) const MAX_FINDINGS: usize = 1_000;

/// What is said of those that are not shown.
pub(super) fn describe_more(findings: usize) -> Option<String> {
    let more = findings.checked_sub(MAX_FINDINGS).filter(|more| *more > 0)?;
    Some(format!(
        "and {}, not shown here; `--format concise` of `check` lists all",
        count(more, "more finding")
    ))
}

/// Writes a unified diff to stdout: for a terminal without what it would obey, for a program byte for byte, since it is to
/// be applied.
pub(super) fn print_diff(diff: &str) {
    let has_colors = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    if !stdout_is_terminal() && !has_colors {
        return print(diff);
    }
    let mut out = anstream::stdout().lock();
    for line in diff.split_inclusive('\n') {
        let color = match line.as_bytes() {
            [b'+', ..] => anstyle::AnsiColor::Green.on_default(),
            [b'-', ..] => anstyle::AnsiColor::Red.on_default(),
            [b'@', ..] => anstyle::AnsiColor::Cyan.on_default(),
            _ => anstyle::Style::new(),
        };
        let text = line.trim_end_matches('\n');
        let text = if stdout_is_terminal() { clean(text) } else { text.to_owned() };
        note(write!(
            out,
            "{color}{text}{color:#}{}",
            line.get(line.trim_end_matches('\n').len()..).unwrap_or_default()
        ));
    }
    note(out.flush());
}

/// `2 errors, 1 warning`; `None` where there is nothing to count.
pub(super) fn describe_summary(summary: &Summary) -> Option<String> {
    let counts = [(summary.errors, "error"), (summary.warnings, "warning"), (summary.notes, "note")];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| count(number, word))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Whether progress may be drawn on stderr.
pub(super) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether what is on stdout is obeyed by a terminal.
pub(super) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Says a failure: `error[kind]: message`, on one line.
pub(super) fn say_kind(kind: &str, message: &str) {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    say(&format!("{} {}", paint(&format!("error[{kind}]:"), anstyle::AnsiColor::Red), clean(first)));
    for line in lines {
        say(&format!("  {}", clean(line)));
    }
}

/// Writes a model's text to stdout. On a terminal its control characters are made harmless.
pub(super) fn print_text(text: &str) {
    if stdout_is_terminal() {
        print(&clean(text));
    } else {
        print(text);
    }
}

/// Writes JSON and a line end to stdout; `is_pretty`: over many lines.
pub(super) fn print_json(value: &impl Serialize, is_pretty: bool) {
    let json = if is_pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    print(&format!("{}\n", harmless(json.unwrap_or_default())));
}

/// JSON with what a terminal or a CI runner obeys written as escapes, and the characters at which some readers end a line
/// (U+0085, U+2028, U+2029: Python's `splitlines`, JavaScript before 2019): to a JSON parser it is the same.
pub(super) fn harmless(json: String) -> String {
    let is_harmful = |c: char| (is_control(c) && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}');
    let json = if json.contains("##") { without_markers(&json, "\\u0023") } else { json };
    if !json.contains(is_harmful) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_harmful(c) {
            // All of them lie in strings, and none beyond the first 65,536.
            let _ = std::fmt::Write::write_fmt(&mut text, format_args!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

/// `text` without characters that a terminal obeys, line ends and tabs excepted.
pub(super) fn clean(text: &str) -> String {
    let is_harmful = |c: char| is_control(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_harmful) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The first `limit` characters.
pub(super) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_ci_runner_obeys_is_left() {
        for (text, expected) in [
            ("plain: a::b # c ## d", "plain: a::b # c ## d"),
            ("::error::x", "| ::error::x"),
            (" \t\u{a0}::error::x", " \t\u{a0}| ::error::x"),
            (
                "a\n::stop-commands::t\r::add-mask::m\r\n  ::x::",
                "a\n| ::stop-commands::t\r| ::add-mask::m\r\n  | ::x::",
            ),
            ("a ##[error]x ##[group]", "a #\u{FFFD}[error]x #\u{FFFD}[group]"),
            ("##vso[task.setvariable]x", "#\u{FFFD}vso[task.setvariable]x"),
            ("####[error]", "###\u{FFFD}[error]"),
            ("::x::##[error]\n## [title]", "| ::x::#\u{FFFD}[error]\n## [title]"),
        ] {
            assert_eq!(inert(text), expected, "{text:?}");
            assert_eq!(inert(&inert(text)), expected, "{text:?} again");
        }
        let json = harmless(String::from("[\"##[error]\", \"## Title [1]\"]"));
        assert_eq!(json, "[\"#\\u0023[error]\", \"## Title [1]\"]");
    }
}
