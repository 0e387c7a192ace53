//! The text before a position on its line.

use super::markup::neutral_mark;

/// Maximum length of the text that is examined at the start and at the end of a line, in bytes.
const MAX_EXAMINED: usize = 256;

/// Indentation of a code block of Markdown, in columns.
const CODE_INDENT: usize = 4;

/// Stands for a call that is only shown, which is removed from the examined text.
pub(super) const SHOWN: char = '\u{fffc}';

/// Phrases that introduce a call that is only shown, at the end of a line. A phrase that may also introduce a real call
/// is not included.
const INTRODUCTIONS: [&str; 12] = [
    "example",
    "examples",
    "for instance",
    "e.g.",
    "such as",
    "looks like",
    "looks like this",
    "look like this",
    "looks as follows",
    "looked like this",
    "written like this",
    "is written as",
];

/// Levels of log lines.
const LEVELS: [&str; 8] = ["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL"];

/// Words after `example` that belong to it: `an example of a call:`.
const AFTER_EXAMPLE: [&str; 8] =
    [" of ", " for ", " from ", " in ", " with ", " that ", " call", " tool call"];

/// Whether a form that people also type may begin after `before`, the text before it on its line.
pub(super) fn begins_line(before: &str) -> bool {
    if before.len() > MAX_EXAMINED || indent(before) >= CODE_INDENT {
        return false;
    }
    let mut rest = before;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return true;
        }
        let Some(after) = list_marker(rest).or_else(|| neutral_mark(rest)) else { return false };
        rest = after;
    }
}

/// Whether a control token may begin after `before`, the text before it on its line, which does not begin the line: in a
/// line of prose, where a sentence or a part of it may end.
pub(super) fn may_follow(before: &str) -> bool {
    let end = end_of(before).trim_end();
    let Some(last) = end.chars().next_back().filter(|_| is_prose(before)) else { return false };
    // A tag, not the prompt of a transcript.
    let ends_tag = last == '>' && end.contains('<');
    let ends = ends_tag || ".!?:;…)]}".contains(last) || (is_word(last) && !last.is_alphanumeric());
    if before.ends_with(last) {
        // Without a blank, the token interrupts the model's text.
        ends || last.is_alphanumeric()
    } else {
        ends || matches!(last, '"' | '\'' | '*' | '_' | '`')
    }
}

/// Whether a line is prose: not quoted, indented or commented out, no part of a table, a diff or a log.
pub(super) fn is_prose(line: &str) -> bool {
    let text = without_list_markers(start_of(line, MAX_EXAMINED));
    let begins = text.starts_with(|ch| is_word(ch) || matches!(ch, '*' | '_' | '"' | '(' | '<'));
    begins && indent(line) < CODE_INDENT && !is_log(text)
}

/// Whether a character may begin a line of prose: no ASCII punctuation, which may begin a comment, a diff or a quotation.
fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || !(ch.is_ascii() || ch == SHOWN)
}

/// Whether a line begins with a date, a time or a level, as in a log.
fn is_log(line: &str) -> bool {
    let words = || {
        line.split(|ch: char| ch.is_whitespace() || matches!(ch, '[' | ']' | '(' | ')'))
            .filter(|word| !word.is_empty())
    };
    let is_time = |word: &str| {
        let mut parts = word.split(['-', ':', '/', '.', ',', 'T', 'Z']).filter(|part| !part.is_empty());
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number) && parts.all(is_number)
    };
    let is_level = |word: &str| LEVELS.contains(&word.split(':').next().unwrap_or_default());
    words().take(4).any(is_time) || words().take(1).any(is_level)
}

/// Whether a line introduces an example. `before`: the line, without the call.
pub(super) fn introduces_example(before: &str) -> bool {
    let is_frame = |ch: char| {
        ch.is_whitespace() || ch.is_ascii_digit() || matches!(ch, ':' | ',' | '*' | '_' | '-' | '#')
    };
    let before = end_of(before);
    let line = before.trim_end_matches(is_frame).to_ascii_lowercase();
    if INTRODUCTIONS.iter().any(|phrase| line.ends_with(phrase)) {
        return true;
    }
    let after = line.rsplit_once("example").map(|(_, after)| after);
    before.trim_end().ends_with(':')
        && after.is_some_and(|after| AFTER_EXAMPLE.iter().any(|words| after.starts_with(words)))
}

/// Returns the start of a text, up to `length` bytes.
pub(super) fn start_of(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Returns the end of a line, as far as it is examined.
fn end_of(line: &str) -> &str {
    let start =
        (line.len().saturating_sub(MAX_EXAMINED)..line.len()).find(|start| line.is_char_boundary(*start));
    start.and_then(|start| line.get(start..)).unwrap_or_default()
}

/// Removes blanks and list markers from the start of a line.
pub(super) fn without_list_markers(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(after) = list_marker(rest) {
        rest = after.trim_start();
    }
    rest
}

/// Returns the text after the list marker at the start of `text`. `+` is not included: it also marks lines of a diff.
fn list_marker(text: &str) -> Option<&str> {
    let digits = text.bytes().take(9).take_while(u8::is_ascii_digit).count();
    let after = if digits == 0 {
        text.strip_prefix(['-', '*', '•'])?
    } else {
        text.get(digits..)?.strip_prefix(['.', ')'])?
    };
    after.starts_with([' ', '\t']).then_some(after)
}

/// Returns the width of the blanks at the start of a line, in columns.
fn indent(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.map(|byte| if byte == b'\t' { CODE_INDENT } else { 1 }).sum()
}

/// Whether a sentence goes on with `rest`, the text after a mark.
pub(super) fn goes_on(rest: &str) -> bool {
    let text = rest.trim_start();
    let next = text.chars().next();
    if text.len() < rest.len() {
        next.is_some_and(char::is_lowercase)
    } else {
        next.is_some_and(|next| ",.;:!?)\"'”’»`".contains(next))
    }
}
