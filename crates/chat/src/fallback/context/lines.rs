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
const INTRODUCTIONS: [&str; 31] = [
    "for instance",
    "e.g.",
    "such as",
    "looks like",
    "look like",
    "looks like this",
    "look like this",
    "looks as follows",
    "looked like this",
    "written like this",
    "is written as",
    "this form",
    "this format",
    "this syntax",
    "following form",
    "following format",
    "following syntax",
    "format is",
    "syntax is",
    "format is as follows",
    "syntax is as follows",
    "sample output",
    "z. b.",
    "z.b.",
    "p. ex.",
    "例如",
    "比如",
    "たとえば",
    "例えば",
    "예를 들어",
    "örneğin",
];

/// The word for an example, at the end of a line, or of a phrase such as `par exemple`.
const EXAMPLES: [&str; 22] = [
    "example",
    "examples",
    "beispiel",
    "exemple",
    "ejemplo",
    "esempio",
    "exemplo",
    "voorbeeld",
    "exempel",
    "eksempel",
    "przykład",
    "příklad",
    "пример",
    "приклад",
    "örnek",
    "例",
    "예",
    "예시",
    "مثال",
    "उदाहरण",
    "ví dụ",
    "contoh",
];

/// Words before an example that the text already contains: `I run the first example:`.
const DEFINITE: [&str; 4] = ["the", "this", "that", "your"];

/// Minimum number of digits of a date that begins a log line, and maximum number of words before a time with seconds.
const MIN_DATE: usize = 6;
const MAX_BEFORE_TIME: usize = 5;

/// Levels of log lines.
const LEVELS: [&str; 8] = ["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL"];

/// Text after `example` that belongs to it: `an example of a call:`.
const AFTER_EXAMPLE: [&str; 15] = [
    " of ", " for ", " from ", " in ", " with ", " that ", " call", " für ", " von ", " de ", " d'", " di ",
    " (", " – ", ": ",
];

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
    let is_link = text.split_once("](").is_some_and(|(link, _)| link.starts_with('[') && !link.contains(']'));
    let begins = is_link || text.starts_with(|ch| is_word(ch) || "*_\"(<`".contains(ch));
    let is_table = text.trim_end().contains('\t') || text.contains(" | ");
    begins && indent(line) < CODE_INDENT && !is_table && !is_log(text)
}

/// Whether a character may begin a line of prose: no ASCII punctuation, which may begin a comment, a diff or a quotation.
fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || !(ch.is_ascii() || ch == SHOWN)
}

/// Whether a line begins with a date, a time, a level or a position in a file, as in a log.
fn is_log(line: &str) -> bool {
    let words = || {
        line.split(|ch: char| ch.is_whitespace() || matches!(ch, '[' | ']' | '(' | ')'))
            .filter(|word| !word.is_empty())
    };
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    let is_time = |word: &str| {
        let is_part = |ch: char| ch.is_ascii_digit() || "-+:/.,TZ".contains(ch);
        let is_date = digits(word) >= MIN_DATE && digits(word) < word.len();
        word.chars().all(is_part) && (word.contains(':') || is_date)
    };
    let has_seconds = |word: &str| is_time(word) && word.matches(':').count() > 1;
    let is_level = |word: &str| LEVELS.contains(&word.split(':').next().unwrap_or_default());
    // `src/main.rs:12:`
    let is_position = |word: &str| {
        let mut parts = word.split(':').skip(1);
        parts.next().is_some_and(|part| !part.is_empty() && digits(part) == part.len())
            && parts.next().is_some()
    };
    words().take(1).any(|word| is_time(word) || is_level(word) || is_position(word))
        || words().take(MAX_BEFORE_TIME).any(has_seconds)
}

/// Whether a line introduces an example. `before`: the line, without the call.
pub(super) fn introduces_example(before: &str) -> bool {
    let is_frame = |ch: char| ch.is_whitespace() || ch.is_ascii_digit() || ":：,，、*_-#".contains(ch);
    let before = end_of(before);
    let line = before.trim_end_matches(is_frame).to_lowercase();
    let presents = line.split(|ch: char| !ch.is_alphanumeric()).any(|word| word == "here");
    if INTRODUCTIONS.iter().any(|phrase| line.ends_with(phrase)) {
        // `I check what it looks like:` is a question, `Here is what it looks like:` is not.
        return presents || !line.contains("what ");
    }
    let may_go_on =
        before.trim_end_matches(['*', '_', ' ']).ends_with([':', '：']) || before.starts_with('#');
    EXAMPLES.iter().any(|example| {
        // Not a part of a path.
        let Some((start, after)) =
            line.rsplit_once(example).filter(|(start, _)| !start.ends_with(['/', '#', '.']))
        else {
            return false;
        };
        let is_definite = start.split_whitespace().rev().take(2).any(|word| DEFINITE.contains(&word));
        let belongs = || AFTER_EXAMPLE.iter().any(|words| after.starts_with(words));
        (presents || !is_definite) && (after.is_empty() || (may_go_on && belongs()))
    })
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

/// Whether a line begins a list item.
pub(super) fn is_item(line: &str) -> bool {
    list_marker(line.trim_start()).is_some()
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
