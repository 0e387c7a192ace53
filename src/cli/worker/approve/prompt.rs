//! The text of a confirmation prompt, and the parser of its answer.
//!
//! The arguments come from the model. They are wrapped and indented, so that no argument can imitate a line of the
//! prompt, and hidden characters are escaped. A long value is shown with its beginning, its end and its length; `show`
//! prints it in full.

use std::fmt::Write;

use deftool_lang::text::{count, exact};
use serde_json::Value;

use crate::cli::terminal::output::{clean, cut, paint};

/// Maximum length of a value in characters. Longer values are truncated.
const MAX_VALUE: usize = 600;

/// Number of characters shown at the beginning and the end of a long value.
const HEAD: usize = 400;
const END: usize = 150;

/// Maximum number of arguments shown.
const MAX_ARGUMENTS: usize = 30;

const MAX_NAME: usize = 64;

/// Indentation of continuation lines.
const INDENT: usize = 4;

pub(super) const HELP: &str = "y: allow this call · always: allow all calls of this tool until the project is reloaded\n\
     n: refuse · n REASON: refuse and send the reason to the model · show: print all arguments in full\n\
     Allow it? [y/N/always, n REASON, show] ";

pub(super) struct Prompt {
    pub(super) tool: String,
    pub(super) arguments: Option<Value>,
}

pub(super) enum Answer {
    Yes,
    Always,
    No { reason: String },
    Show,
    Unclear,
}

/// Parses an answer. An empty line means no.
pub(super) fn parse_answer(line: &str) -> Answer {
    let line = clean(line.trim());
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    let word = word.trim_end_matches([',', ':']).to_lowercase();
    match (word.as_str(), rest.trim()) {
        ("y" | "yes", "") => Answer::Yes,
        ("a" | "always", "") => Answer::Always,
        ("s" | "show", "") => Answer::Show,
        ("" | "n" | "no", reason) => Answer::No { reason: reason.to_owned() },
        _ => Answer::Unclear,
    }
}

impl Prompt {
    /// Returns the call and its arguments for a terminal with this number of columns.
    pub(super) fn render(&self, columns: usize) -> String {
        self.lines(columns, false)
    }

    /// Like [`Self::render`], with all arguments in full.
    pub(super) fn render_whole(&self, columns: usize) -> String {
        self.lines(columns, true)
    }

    fn lines(&self, columns: usize, is_whole: bool) -> String {
        let name = cut(&exact(&self.tool), MAX_NAME);
        let title = format!("The model requests to call {name}");
        let none = serde_json::Map::new();
        let arguments = self.arguments.as_ref().and_then(Value::as_object).unwrap_or(&none);
        let mut text = paint(&title, anstyle::AnsiColor::Yellow);
        text.push_str(if arguments.is_empty() { " without arguments\n" } else { " with\n" });
        let shown = if is_whole { arguments.len() } else { MAX_ARGUMENTS };
        let keys = arguments.keys().take(shown).map(|key| key_text(key)).collect::<Vec<_>>();
        let widest = keys.iter().map(|key| key.chars().count()).max().unwrap_or(0).min(20);
        for (key, value) in keys.iter().zip(arguments.values()) {
            let value = exact(&value.to_string());
            let value = if is_whole { value } else { shortened(&value) };
            break_into(&mut text, &format!("{key:widest$}  {value}"), columns);
        }
        if let Some(more) = arguments.len().checked_sub(shown).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {}; `show` prints all", count(more, "more argument"));
        }
        text.push_str("Allow it? [y/N/always, n REASON, show] ");
        text
    }
}

fn key_text(key: &str) -> String {
    let is_plain =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let key = if is_plain { key.to_owned() } else { exact(&Value::from(key).to_string()) };
    cut(&key, MAX_NAME)
}

fn shortened(value: &str) -> String {
    let length = value.chars().count();
    if length <= MAX_VALUE {
        return value.to_owned();
    }
    let head: String = value.chars().take(HEAD).collect();
    let end: String = value.chars().skip(length - END).collect();
    let left_out = length - HEAD - END;
    format!("{head} … {end} ({left_out} of {length} characters omitted; `show` prints all)")
}

/// Appends `line`, wrapped to the terminal width and indented. Non-ASCII characters count as two columns.
fn break_into(text: &mut String, line: &str, columns: usize) {
    let room = columns.saturating_sub(INDENT + 1).max(16);
    let mut used = 0;
    text.push_str("  ");
    for character in line.chars() {
        let width = if character.is_ascii() { 1 } else { 2 };
        if used + width > room {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', INDENT));
            used = 0;
        }
        text.push(character);
        used += width;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(arguments: Value, columns: usize) -> String {
        let prompt = Prompt { tool: String::from("drop"), arguments: Some(arguments) };
        anstream::adapter::strip_str(&prompt.render(columns)).to_string()
    }

    #[test]
    fn an_argument_cannot_imitate_the_prompt() {
        let forged = format!(
            "{}\nAllow it? [y/N/always, n REASON, show] y\n\u{1b}[2J\u{202e}\r\u{200b}\u{7f}",
            "x".repeat(70)
        );
        let key = "\nAllow it? y\n\u{1b}[31m";
        for columns in [0, 20, 40, 80, 200] {
            let text = shown(
                json!({"path": forged, key: "日本".repeat(100), "more": "Allow it? ".repeat(50)}),
                columns,
            );
            let lines: Vec<&str> = text.split('\n').collect();
            let (last, others) = lines.split_last().unwrap();
            assert_eq!(*last, "Allow it? [y/N/always, n REASON, show] ");
            assert!(others[0].starts_with("The model requests to call drop with"));
            for line in &others[1..] {
                assert!(line.starts_with("  "), "{line:?}");
                let width: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
                assert!(width < columns.max(22), "{columns}: {line:?}");
            }
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n' || "\u{202e}\u{200b}".contains(c)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_long_value_is_truncated_with_its_length_and_end() {
        let text = shown(json!({"command": format!("{}; rm -rf /", "x".repeat(10_000))}), 200);
        let text = text.replace("\n    ", "");
        assert!(
            text.contains("; rm -rf /\" (9462 of 10012 characters omitted; `show` prints all)"),
            "{text}"
        );
        assert!(text.len() < 2_000);
        let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("a{n}"), json!(n))).collect();
        assert!(shown(Value::Object(many), 80).contains("\n  and 70 more arguments; `show` prints all\n"));
        assert!(shown(json!({}), 80).starts_with("The model requests to call drop without arguments\n"));
    }

    #[test]
    fn answers_are_parsed() {
        let parsed = |line| match parse_answer(line) {
            Answer::Yes => String::from("yes"),
            Answer::Always => String::from("always"),
            Answer::Show => String::from("show"),
            Answer::Unclear => String::from("?"),
            Answer::No { reason } => format!("no: {reason}"),
        };
        for (line, expected) in [
            ("y", "yes"),
            (" YES \n", "yes"),
            ("always", "always"),
            ("a", "always"),
            ("show", "show"),
            ("", "no: "),
            ("n", "no: "),
            ("no, not that file", "no: not that file"),
            ("n not that\u{1b}[31m file", "no: not that\\u{1b}[31m file"),
            ("yes please", "?"),
            ("yn", "?"),
            ("maybe", "?"),
        ] {
            assert_eq!(parsed(line), expected, "{line:?}");
        }
    }
}
