//! Reads one mark in a line: an HTML or XML tag, a comment, CDATA, a LaTeX environment, `BBCode`, or a marker that begins
//! a role's message in chat templates. `marks` decides what the mark means.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::fallback::escapes::{Decoded, EntityReader};
use crate::fallback::families::Family;
use crate::fallback::grammar::Token;

/// Maximum length of an incomplete tag, in characters. A longer one is text.
pub(super) const MAX_TAG: usize = 256;

/// Elements of `BBCode`, `[code]` to `[/code]`.
const BBCODE: [&str; 2] = ["code", "quote"];

/// Names of the model's role in chat templates. The name may be missing.
const OWN_ROLES: [&str; 6] = ["", "assistant", "model", "ai", "bot", "agent"];

/// Markers of other roles in brackets.
const BRACKET_ROLES: [&str; 3] = ["inst", "system_prompt", "tool_results"];

/// Special tokens without bars that a server may leave in a text.
pub(super) const TOKENS: [&str; 5] = ["s", "bos", "eos", "pad", "unk"];

/// A character of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Character {
    pub(super) ch: char,
    /// Written as a reference.
    pub(super) escaped: bool,
    /// Its start in the line, in bytes.
    pub(super) at: usize,
}

/// A mark, with the number of its characters.
#[derive(Debug)]
pub(super) enum Found {
    /// The text ends inside it.
    Incomplete,
    /// Text.
    Nothing,
    /// A mark that encloses nothing.
    Neutral(usize),
    Role(usize),
    Open(String, usize),
    Close(String, usize),
    /// A block up to this mark.
    Until(String, usize),
}

/// Decodes the character references of a part of a line that begins at byte `from`.
pub(super) fn characters(text: &str, from: usize) -> Vec<Character> {
    let mut reader = EntityReader::default();
    let mut chars = Vec::with_capacity(text.len());
    let mut start = from;
    for (at, ch) in text.char_indices() {
        if reader.is_idle() {
            start = from + at;
        }
        match reader.push(ch) {
            Decoded::Nothing => {}
            Decoded::Plain(ch) => chars.push(Character { ch, escaped: false, at: from + at }),
            Decoded::Referred(ch) => chars.push(Character { ch, escaped: true, at: start }),
            Decoded::Text(text) => {
                chars.extend(text.char_indices().map(|(at, ch)| Character {
                    ch,
                    escaped: false,
                    at: start + at,
                }));
                start = from + at;
            }
        }
    }
    let unread = text.get(start - from..).filter(|_| !reader.is_idle()).unwrap_or_default();
    chars.extend(unread.char_indices().map(|(at, ch)| Character { ch, escaped: false, at: start + at }));
    chars
}

pub(super) fn starts_with(chars: &[Character], text: &str) -> bool {
    let mut chars = chars.iter();
    text.chars().all(|expected| chars.next().is_some_and(|next| next.ch == expected))
}

/// Whether a sentence goes on with `rest`, the text after a mark.
pub(super) fn goes_on(rest: &str) -> bool {
    let text = rest.trim_start();
    let next = text.chars().next();
    if text.len() < rest.len() {
        next.is_some_and(|next| next.is_lowercase() || "[(=|-–—→".contains(next))
    } else {
        next.is_some_and(|next| ",.;:!?)\"'”’»`".contains(next))
    }
}

/// Reads the mark that begins here. `begins_line`: only list markers and marks precede it on its line. Otherwise, a mark
/// that opens a block is only mentioned if the sentence goes on after it.
pub(super) fn mark(chars: &[Character], begins_line: bool) -> Found {
    let rest = |count| chars.iter().skip(count).map(|next| next.ch).take(2).collect::<String>();
    match mark_in(chars, begins_line) {
        Found::Until(_, count) if !begins_line && goes_on(&rest(count)) => Found::Neutral(count),
        found => found,
    }
}

fn mark_in(chars: &[Character], begins_line: bool) -> Found {
    let until = |text: &str, count| Found::Until(text.to_owned(), count);
    match chars.first().map(|first| first.ch) {
        Some('<' | '[') => tag(chars),
        Some('\\') => environment(chars),
        Some('"') if starts_with(chars, "\"\"\"") => until("\"\"\"", 3),
        Some('\'') if starts_with(chars, "'''") => until("'''", 3),
        // A comment of a programming language, not the pattern of a path.
        Some('/') if begins_line && starts_with(chars, "/*") => {
            let is_comment =
                chars.get(2).is_none_or(|next| next.ch.is_whitespace() || "*!".contains(next.ch));
            if is_comment { until("*/", 2) } else { Found::Nothing }
        }
        _ => Found::Nothing,
    }
}

/// Reads the mark that begins with a `<` or `[`.
fn tag(chars: &[Character]) -> Found {
    let Some(second) = chars.get(1).map(|second| second.ch) else { return Found::Incomplete };
    let bracket = starts_with(chars, "[");
    if matches!(second, '|' | '｜') {
        return special(chars);
    }
    if second == '!' && !bracket {
        for (open, close) in [("<!--", "-->"), ("<![CDATA[", "]]>")] {
            if starts_with(chars, open) {
                return Found::Until(close.to_owned(), open.len());
            }
            if open.chars().zip(chars).all(|(expected, next)| next.ch == expected) {
                return Found::Incomplete;
            }
        }
        return Found::Nothing;
    }
    let closes = second == '/';
    let Some(name) = name_of(chars) else { return Found::Nothing };
    let after = 1 + usize::from(closes) + name.chars().count();
    let (first, last) = if bracket { ('[', ']') } else { ('<', '>') };
    let Some(next) = chars.get(after).map(|next| next.ch) else { return Found::Incomplete };
    if next == last && bracket && BRACKET_ROLES.contains(&name.as_str()) {
        return if closes { Found::Neutral(after + 1) } else { Found::Role(after + 1) };
    }
    let is_link = next == '/' && name.ends_with(':');
    let is_tag = next == last || (!bracket && next.is_whitespace()) || matches!(next, '=' | '/');
    if is_link || !is_tag || (bracket && !BBCODE.contains(&name.as_str())) {
        return Found::Nothing;
    }
    // The attributes.
    let (mut quote, mut is_value, mut before) = (None, false, ' ');
    for (at, next) in chars.iter().enumerate().skip(after) {
        match quote {
            Some(mark) if (next.ch, next.escaped) == mark => quote = None,
            Some(_) => {}
            None if next.ch == last && before == '/' && !is_value => return Found::Neutral(at + 1),
            None if next.ch == last && closes => return Found::Close(name, at + 1),
            None if next.ch == last && !bracket && name.contains('_') && role(&name) == Role::Begins => {
                return own_or_foreign(chars, at + 1);
            }
            None if next.ch == last => return Found::Open(name, at + 1),
            None if next.ch == first => return Found::Nothing,
            None if before == '=' && matches!(next.ch, '"' | '\'') => quote = Some((next.ch, next.escaped)),
            None => is_value = !next.ch.is_whitespace() && (is_value || before == '='),
        }
        before = next.ch;
    }
    Found::Incomplete
}

/// Returns the name of a tag, in lowercase.
pub(super) fn name_of(chars: &[Character]) -> Option<String> {
    let closes = chars.get(1).is_some_and(|second| second.ch == '/');
    let name = chars.iter().skip(1 + usize::from(closes)).map(|next| next.ch).take_while(|ch| is_name(*ch));
    let name: String = name.flat_map(char::to_lowercase).collect();
    name.starts_with(|ch: char| ch.is_alphabetic() || ch == '_').then_some(name)
}

/// Whether the name of a tag may contain this character.
fn is_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '-' | '.' | ':')
}

/// Reads `<|name|>` and `[|name|]`.
fn special(chars: &[Character]) -> Found {
    let is_inside = |ch: char| ch.is_alphanumeric() || matches!(ch, '_' | '▁' | ' ' | '-' | '/' | '|' | '｜');
    let length = chars.iter().skip(1).take_while(|next| is_inside(next.ch)).count();
    let name: String = chars.iter().skip(1).take(length).map(|next| next.ch).collect();
    match chars.get(length + 1).map(|next| next.ch) {
        None => Found::Incomplete,
        Some('>' | ']') => match role(&name) {
            Role::Begins => own_or_foreign(chars, length + 2),
            Role::Foreign => Found::Role(length + 2),
            Role::Other => Found::Neutral(length + 2),
        },
        Some(_) => Found::Nothing,
    }
}

/// Reads the name of the role after its marker, which ends after `count` characters.
fn own_or_foreign(chars: &[Character], count: usize) -> Found {
    let word = chars.iter().skip(count).map(|next| next.ch.to_ascii_lowercase());
    let word: String = word.take_while(|ch| ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-')).collect();
    let is_own = OWN_ROLES.contains(&word.as_str());
    if is_own { Found::Neutral(count) } else { Found::Role(count) }
}

/// Returns the text after the role's name.
pub(super) fn after_role(text: &str) -> &str {
    text.trim_start_matches(|ch: char| ch.is_alphanumeric() || matches!(ch, '_' | '-'))
}

#[derive(Debug, PartialEq, Eq)]
enum Role {
    /// Begins a message; the role follows.
    Begins,
    /// Names a role other than the model's, or a tool's result.
    Foreign,
    Other,
}

/// Classifies a special token by its name: `im_start`, `start_header_id`, `start_of_role`, `user`, `USER_TOKEN`,
/// `im_system`.
fn role(name: &str) -> Role {
    let name = name.to_ascii_lowercase();
    let mut begins = false;
    let mut rest = Vec::new();
    for word in name.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match word {
            "start" | "begin" | "header" | "turn" | "role" => begins = true,
            "im" | "of" | "id" | "token" => {}
            other => rest.push(other),
        }
    }
    match rest.as_slice() {
        [] if begins => Role::Begins,
        ["user" | "human" | "system" | "developer" | "tool" | "observation" | "ipython" | "environment"]
        | ["tool", "response" | "result" | "results" | "output" | "outputs"] => Role::Foreign,
        _ => Role::Other,
    }
}

/// Reads `\begin{name}`.
fn environment(chars: &[Character]) -> Found {
    const BEGIN: &str = "\\begin{";
    if !starts_with(chars, BEGIN) {
        return Found::Nothing;
    }
    let name = chars.iter().skip(BEGIN.len()).map(|next| next.ch);
    let name: String =
        name.take_while(|ch| ch.is_alphanumeric() || matches!(ch, '*' | '_' | '-' | '@')).collect();
    let count = BEGIN.len() + name.chars().count();
    match chars.get(count).map(|next| next.ch) {
        Some('}') => Found::Until(format!("\\end{{{name}}}"), count + 1),
        _ => Found::Nothing,
    }
}

/// Returns the text after a mark that encloses nothing and may stand before a call: a special token that does not begin
/// the message of another role, or a tag of a family's form.
pub(super) fn neutral_mark(text: &str) -> Option<&str> {
    let first = text.chars().next().filter(|first| matches!(first, '<' | '['))?;
    let chars = characters(text.get(..text.len().min(MAX_TAG)).unwrap_or(text), 0);
    let count = match tag(&chars) {
        Found::Neutral(count) => count,
        Found::Open(name, count) | Found::Close(name, count)
            if is_wrapper(first, &name) || TOKENS.contains(&name.as_str()) =>
        {
            count
        }
        _ => return None,
    };
    text.get(chars.get(count).map_or(text.len(), |next| next.at)..)
}

/// Whether a tag is part of a family's marked form. Such tags do not enclose another family's calls.
pub(in crate::fallback) fn is_wrapper(first: char, name: &str) -> bool {
    static NAMES: LazyLock<HashSet<(char, String)>> = LazyLock::new(wrappers);
    NAMES.contains(&(first, name.to_owned()))
}

/// Returns the tag names in all marked forms, each with its opening character.
fn wrappers() -> HashSet<(char, String)> {
    let forms = Family::ALL.iter().map(|family| family.form()).filter(|form| form.marked);
    let tokens = forms.flat_map(|form| form.steps).flat_map(|step| step.next);
    let names = tokens.filter_map(|(token, _)| {
        let Token::Literal(mark) = token else { return None };
        let first = mark.chars().next().filter(|first| matches!(first, '<' | '['))?;
        Some((first, name_of(&characters(mark, 0))?))
    });
    names.collect()
}
