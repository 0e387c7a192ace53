//! Writing to stdout and stderr: `print` functions write to stdout, `eprint` functions to stderr.
//!
//! The first write error on stdout is stored and reported once, at the end of the command. A closed pipe is not an
//! error, as in `deftool check | head`. If stdout and stderr share a terminal, pipe or file, each stderr message starts
//! on a new line.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{BufWriter, ErrorKind, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use deftool_engine::Notices;
use deftool_lang::diagnostic::{Diagnostic, Summary, render};
use deftool_lang::text::{Sources, count, is_readable};
use serde::Serialize;

use super::{spinner, width};

pub(in crate::cli) use deftool_lang::text::{cut, readable as clean};

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Color {
    Auto,
    Always,
    Never,
}

/// The first write error on stdout.
static STDOUT_ERROR: OnceLock<std::io::Error> = OnceLock::new();

/// Whether the last output of [`print`] did not end with a line feed. Changed only while stdout is locked.
static IS_MID_LINE: AtomicBool = AtomicBool::new(false);

/// The number of threads that are writing.
static ACTIVE_WRITERS: AtomicUsize = AtomicUsize::new(0);

/// Returns whether a thread is writing. The write may be blocked because the reader of a pipe does not read.
pub(in crate::cli) fn is_writing() -> bool {
    ACTIVE_WRITERS.load(Ordering::Relaxed) > 0
}

/// Runs `write` and counts this thread as writing.
fn while_writing<T>(write: impl FnOnce() -> T) -> T {
    ACTIVE_WRITERS.fetch_add(1, Ordering::Relaxed);
    let written = write();
    ACTIVE_WRITERS.fetch_sub(1, Ordering::Relaxed);
    written
}

/// Stores the first write error on stdout.
fn store_error(written: std::io::Result<()>) {
    if let Err(error) = written {
        STDOUT_ERROR.get_or_init(|| error);
    }
}

/// Sets whether both streams use colours.
pub(in crate::cli) fn choose_color(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
}

/// Whether progress and summaries are hidden.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether progress and summaries are hidden.
pub(in crate::cli) fn set_quiet(is_quiet: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Returns whether progress and summaries are hidden.
pub(in crate::cli) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Returns whether a write to stdout failed.
pub(in crate::cli) fn stdout_failed() -> bool {
    STDOUT_ERROR.get().is_some()
}

/// Returns the first write error on stdout. A closed pipe is not an error.
pub(in crate::cli) fn stdout_error() -> Option<&'static std::io::Error> {
    STDOUT_ERROR.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Writes `text` to stdout without changes.
pub(in crate::cli) fn print(text: &str) {
    print_to(&mut std::io::stdout().lock(), text);
}

/// Like [`print`], but does not block the runtime while a pipe is full or a terminal is stopped.
pub(in crate::cli) async fn print_without_blocking(mut text: &str) {
    while !text.is_empty() {
        wait_until_writable(std::io::stdout()).await;
        let mut end = text.len().min(SMALL_WRITE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = text.split_at(end);
        print(piece);
        text = rest;
    }
}

/// Waits until a short message can be written to stderr without blocking the runtime.
pub(in crate::cli) async fn wait_for_stderr() {
    wait_until_writable(std::io::stderr()).await;
}

/// Maximum number of bytes that a writable pipe accepts without blocking: Linux's `PIPE_BUF`.
const SMALL_WRITE: usize = 4 << 10;

/// Waits until a stream accepts [`SMALL_WRITE`] bytes.
#[cfg(unix)]
async fn wait_until_writable(stream: impl std::os::fd::AsFd + Send + 'static) {
    use std::os::fd::BorrowedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // An error is reported by the write.
    let wait = |stream: BorrowedFd<'_>, limit: Option<&Timespec>| {
        poll(&mut [PollFd::from_borrowed_fd(stream, PollFlags::OUT)], limit).is_ok_and(|ready| ready > 0)
    };
    if !wait(stream.as_fd(), Some(&Timespec::default())) {
        let wait = move || while_writing(|| wait(stream.as_fd(), None));
        // The thread only fails if it panics.
        let _ = tokio::task::spawn_blocking(wait).await;
    }
}

/// Does nothing: std cannot wait on this platform.
#[cfg(not(unix))]
async fn wait_until_writable<S>(_: S) {}

fn print_to(out: &mut StdoutLock<'_>, text: &str) {
    if let Some(last) = text.as_bytes().last() {
        IS_MID_LINE.store(*last != b'\n', Ordering::Relaxed);
    }
    store_error(while_writing(|| out.write_all(text.as_bytes()).and_then(|()| out.flush())));
}

/// Ends an unfinished line on stdout.
pub(in crate::cli) fn end_line() {
    let mut out = std::io::stdout().lock();
    if IS_MID_LINE.load(Ordering::Relaxed) {
        print_to(&mut out, "\n");
    }
}

/// Returns whether a message on stderr would continue an unfinished line of stdout.
pub(in crate::cli) fn is_mid_line() -> bool {
    IS_MID_LINE.load(Ordering::Relaxed) && *SHARED_DESTINATION
}

/// Ends an unfinished line on stdout if both streams share a destination.
pub(in crate::cli) fn begin_line() {
    if *SHARED_DESTINATION {
        end_line();
    }
}

/// Whether stdout and stderr share a destination: a terminal, a pipe or a file.
static SHARED_DESTINATION: LazyLock<bool> = LazyLock::new(|| {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    (out.is_terminal() && err.is_terminal()) || is_same_file(&out, &err)
});

#[cfg(unix)]
fn is_same_file(out: &Stdout, err: &Stderr) -> bool {
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    match (rustix::fs::fstat(out), rustix::fs::fstat(err)) {
        (Ok(out), Ok(err)) => identity(out) == identity(err),
        (Ok(_) | Err(_), _) => false,
    }
}

/// Returns false: std has no file identity on this platform.
#[cfg(not(unix))]
fn is_same_file(_: &Stdout, _: &Stderr) -> bool {
    false
}

/// Writes several texts to stdout, buffered.
pub(in crate::cli) fn print_all(texts: impl Iterator<Item = String>) {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for text in texts {
        let written = out.write_all(text.as_bytes());
        let failed = written.is_err();
        store_error(written);
        if failed {
            // Writing the rest of the buffer would also fail.
            drop(out.into_parts());
            return;
        }
    }
    store_error(out.flush());
}

/// Writes styled text to stdout and escapes commands of CI runners. Removes the styles if stdout does not support
/// colours.
pub(in crate::cli) fn print_styled(text: &str) {
    let mut out = anstream::stdout().lock();
    store_error(out.write_all(escape_ci_commands(text).as_bytes()).and_then(|()| out.flush()));
}

/// Writes text lines to stdout and escapes commands of CI runners.
pub(in crate::cli) fn print_lines(text: &str) {
    print(&escape_ci_commands(text));
}

/// Returns `text` with all commands of CI runners escaped.
///
/// GitHub's runner executes lines that start with `::NAME::`, and `##[NAME]` anywhere in a line. Other runners execute
/// `##vso[…]` and `##teamcity[…]`. GitHub trims lines first, so indentation does not protect (`ActionCommand.cs` of
/// actions/runner, read 2026-11). `::` gets the prefix `| `; the second `#` is replaced with U+FFFD.
pub(in crate::cli) fn escape_ci_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for line in replace_markers(text, "\u{FFFD}").split_inclusive(['\n', '\r']) {
        let rest = line.trim_start();
        escaped.push_str(line.strip_suffix(rest).unwrap_or_default());
        if rest.starts_with("::") {
            escaped.push_str("| ");
        }
        escaped.push_str(rest);
    }
    Cow::Owned(escaped)
}

/// Replaces the second `#` of every `##[` and `##name[` with `replacement`.
fn replace_markers(text: &str, replacement: &str) -> String {
    let mut parts = String::with_capacity(text.len());
    let mut done = 0;
    for (bracket, _) in text.match_indices('[') {
        let before = text.get(done..bracket).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        if let Some(kept) = before.strip_suffix("##") {
            parts.extend([kept, "#", replacement]);
            done += before.len();
        }
    }
    parts.push_str(text.get(done..).unwrap_or_default());
    parts
}

/// Writes a line to stderr and escapes commands of CI runners.
pub(in crate::cli) fn eprint_line(text: &str) {
    // One write: other processes may write to the same stderr, such as a command and the `stub` that started it.
    let line = format!("{}\n", escape_ci_commands(text));
    begin_line();
    while_writing(|| {
        spinner::suspend(|| {
            let _ = anstream::stderr().lock().write_all(line.as_bytes());
        });
    });
}

/// Writes a line about progress, or a summary, to stderr, unless `--quiet` is set.
pub(in crate::cli) fn eprint_progress(text: &str) {
    if !is_quiet() {
        eprint_line(text);
    }
}

/// Writes `error: TEXT` to stderr.
pub(in crate::cli) fn eprint_error(text: &str) {
    eprint_line(&format!("{} {}", paint("error:", anstyle::AnsiColor::Red), clean(text)));
}

/// Returns `text` in bold and in `color`. Streams without colours remove the style again.
pub(in crate::cli) fn paint(text: &str, color: anstyle::AnsiColor) -> String {
    let style = color.on_default().bold();
    format!("{style}{text}{style:#}")
}

/// Writes findings in the human format to stdout.
pub(in crate::cli) fn print_findings(findings: &[Diagnostic], sources: &Sources) {
    let out = std::io::stdout();
    let text = findings_text(findings, sources, width::columns(&out), AutoStream::choice(&out));
    let mut out = out.lock();
    store_error(text.and_then(|text| out.write_all(&text)).and_then(|()| out.flush()));
}

/// Writes findings in the human format to stderr.
pub(in crate::cli) fn eprint_findings(findings: &[Diagnostic], sources: &Sources) {
    begin_line();
    let err = std::io::stderr();
    let text = findings_text(findings, sources, width::columns(&err), AutoStream::choice(&err));
    let _ = text.and_then(|text| err.lock().write_all(&text));
}

/// Returns the findings in the human format. They are written at once: a stream with styles writes each line by itself.
fn findings_text(
    findings: &[Diagnostic],
    sources: &Sources,
    columns: usize,
    choice: ColorChoice,
) -> std::io::Result<Vec<u8>> {
    let mut out = AutoStream::new(Vec::new(), choice);
    for finding in findings.iter().take(MAX_FINDINGS) {
        let text = render::render_human(finding, sources, columns, true);
        writeln!(out, "{}\n", escape_ci_commands(&text))?;
    }
    if let Some(more) = describe_omitted(findings.len()) {
        writeln!(out, "{more}")?;
    }
    Ok(out.into_inner())
}

/// Maximum number of findings in the human and GitHub formats.
pub(in crate::cli) const MAX_FINDINGS: usize = 1_000;

/// Describes the findings beyond [`MAX_FINDINGS`], if there are any.
pub(in crate::cli) fn describe_omitted(findings: usize) -> Option<String> {
    let more = findings.checked_sub(MAX_FINDINGS).filter(|more| *more > 0)?;
    Some(format!("and {}; `deftool check --format concise` prints all", count(more, "more finding")))
}

/// Writes a unified diff to stdout. Hidden characters are escaped on terminals only, so that a redirected diff can be
/// applied.
pub(in crate::cli) fn print_diff(diff: &str) {
    let has_colors = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
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
        store_error(write!(
            out,
            "{color}{text}{color:#}{}",
            line.get(line.trim_end_matches('\n').len()..).unwrap_or_default()
        ));
    }
    store_error(out.flush());
}

/// Describes the number of findings, as in `2 errors, 1 warning`. Returns `None` if there are none.
pub(in crate::cli) fn describe_summary(summary: &Summary) -> Option<String> {
    let counts = [(summary.errors, "error"), (summary.warnings, "warning"), (summary.notes, "note")];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| count(number, word))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns whether stderr is a terminal that may show progress.
pub(in crate::cli) fn shows_progress() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}

/// Returns whether stdout is a terminal, which interprets control characters.
pub(in crate::cli) fn stdout_is_terminal() -> bool {
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stdout().is_terminal());
    *IS_TERMINAL
}

/// Writes `error[KIND]: MESSAGE` to stderr; further lines of the message are indented.
pub(in crate::cli) fn eprint_failure(kind: &str, message: &str) {
    let message = &shorten_known_urls(message);
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    eprint_line(&format!("{} {}", paint(&format!("error[{kind}]:"), anstyle::AnsiColor::Red), clean(first)));
    for line in lines {
        eprint_line(&format!("  {}", clean(line)));
    }
}

/// Shortens each URL to its host if an earlier message of this process contained the URL.
fn shorten_known_urls(message: &str) -> String {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let urls = message.split_whitespace().filter(is_url).map(|word| word.trim_end_matches([':', ';', ',']));
    let (old, new): (Vec<&str>, Vec<&str>) = urls.partition(|url| known.contains(*url));
    known.extend(new.into_iter().map(str::to_owned));
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
    old.into_iter().fold(message.to_owned(), |text, url| text.replace(url, &host(url)))
}

/// Returns text of a model as it is written to stdout. On a terminal, hidden characters are escaped.
pub(in crate::cli) fn shown_text(text: String) -> String {
    if stdout_is_terminal() { clean(&text) } else { text }
}

/// Writes JSON and a line feed to stdout; on several lines if `is_pretty` is set.
pub(in crate::cli) fn print_json(value: &impl Serialize, is_pretty: bool) {
    if is_pretty {
        let json = serde_json::to_string_pretty(value).unwrap_or_default();
        print(&format!("{}\n", escape_json(json)));
    } else {
        print(&json_line(value));
    }
}

/// Returns JSON and a line feed.
pub(in crate::cli) fn json_line(value: &impl Serialize) -> String {
    let mut line = escape_json(serde_json::to_string(value).unwrap_or_default());
    line.push('\n');
    line
}

/// Returns equivalent JSON in which hidden characters and commands of CI runners are escaped.
pub(in crate::cli) fn escape_json(json: String) -> String {
    let json = if json.contains("##") { replace_markers(&json, "\\u0023") } else { json };
    if json.chars().all(is_readable) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_readable(c) {
            text.push(c);
        } else {
            // All these characters are in strings.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = std::fmt::Write::write_fmt(&mut text, format_args!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// Returns what prints the messages of the engine.
pub(in crate::cli) fn notices() -> Notices {
    Notices::new(eprint_line)
}

/// Formats a size, as in `12.3 KiB`.
#[allow(clippy::cast_precision_loss)] // three digits are shown
pub(in crate::cli) fn bytes(number: u64) -> String {
    let number = number as f64;
    match number {
        _ if number >= 1_048_576.0 => format!("{:.1} MiB", number / 1_048_576.0),
        _ if number >= 1024.0 => format!("{:.1} KiB", number / 1024.0),
        _ => format!("{number} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_ci_runners_are_escaped() {
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
            assert_eq!(escape_ci_commands(text), expected, "{text:?}");
            assert_eq!(escape_ci_commands(&escape_ci_commands(text)), expected, "{text:?} again");
        }
        let json = escape_json(String::from("[\"##[error]\", \"## Title [1]\"]"));
        assert_eq!(json, "[\"#\\u0023[error]\", \"## Title [1]\"]");
    }
}
