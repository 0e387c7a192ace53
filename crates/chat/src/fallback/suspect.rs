//! Recognises text that begins like a call although no family's form can read it: a call marker, then a name, an object
//! or a tag.
//!
//! A marker is a control token (`<|tool_call_begin|>`, `[TOOL_CALLS]`) or a tag (`<x:function_call>`, `<invoke name="`)
//! that is named after calls. A name alone is also what a text about the form writes, so it counts only if it is the name
//! of a tool. A list of markers, a placeholder (`{...}`) and a marker in a sentence are not calls.

use serde::{Deserialize, Serialize};

use super::context::is_wrapper;
use super::grammar::looks_like;

/// Maximum length of a marker, of a tag and of a name, in bytes.
const MAX_MARK: usize = 128;

/// Words in the name of a marker that mean a call by themselves, and those that mean one after `tool` or `function`.
const CALLS: [&str; 6] = ["toolcall", "toolcalls", "functioncall", "functioncalls", "invoke", "dsml"];
const CALL: [&str; 4] = ["call", "calls", "request", "use"];
const TOOL: [&str; 4] = ["tool", "tools", "function", "functions"];

/// Words in the name of a marker that does not begin a call.
const OTHER: [&str; 14] = [
    "end",
    "close",
    "result",
    "results",
    "response",
    "responses",
    "output",
    "outputs",
    "error",
    "id",
    "sep",
    "args",
    "argument",
    "example",
];

/// Words in the name of a tag inside a call.
const INNER: [&str; 8] = ["function", "invoke", "parameter", "parameters", "arg", "name", "tool", "call"];

/// Gemma writes it before a name.
const GEMMA: &str = "call:";

/// A streaming recogniser, from the first character of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suspect {
    /// The text from the start of the current mark or name.
    text: String,
    reading: Reading,
    /// Whether the marker is a control token.
    pub(super) is_token: bool,
    /// A tag inside a call was read.
    is_certain: bool,
    /// The number of bytes read.
    at: usize,
    /// The start of the current mark.
    start: usize,
    /// A call may follow the marker, because it encloses nothing.
    is_neutral: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    /// In the marker, or in a tag after it.
    Mark { first: bool },
    /// After a marker.
    Gap,
    /// In a name.
    Name,
    /// After a `{`.
    Object,
    /// After a name. `blank`: on its line. `line`: on a later line.
    AfterName { blank: bool, line: bool },
}

/// What is known about the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Suspicion {
    /// The text so far fits both a call and prose.
    Open,
    /// The text is not a call.
    None,
    /// Another marker, which may begin a form, begins at this byte.
    Marker(usize),
    /// The text begins like a call, of a tool with this name.
    Call(Option<String>),
    /// The text begins like a call if this is the name of a tool.
    Name(String),
}

impl Suspect {
    /// A recogniser after the first character of the text. `None` if no marker begins with it.
    pub(super) fn new(first: char) -> Option<Self> {
        let (text, reading) = (String::from(first), Reading::Mark { first: true });
        let is_token = first == '[';
        let at = first.len_utf8();
        let suspect = Self { text, reading, is_token, is_certain: false, at, start: 0, is_neutral: is_token };
        matches!(first, '<' | '[').then_some(suspect)
    }

    /// Reads one character.
    pub(super) fn push(&mut self, ch: char) -> Suspicion {
        let start = self.at;
        self.at += ch.len_utf8();
        match self.reading {
            Reading::Mark { first } => self.push_mark(ch, first),
            Reading::Gap => match ch {
                // A list of calls.
                _ if ch.is_whitespace() || ch == '[' => Suspicion::Open,
                '{' => self.go(Reading::Object),
                '<' if !self.is_certain => {
                    self.text = String::from(ch);
                    self.start = start;
                    self.go(Reading::Mark { first: false })
                }
                _ if begins_name(ch) => {
                    self.text = String::from(ch);
                    self.go(Reading::Name)
                }
                _ => self.unnamed(),
            },
            Reading::Object => match ch {
                '.' | '…' | '}' => Suspicion::None,
                _ if ch.is_whitespace() => Suspicion::Open,
                _ => Suspicion::Call(None),
            },
            Reading::Name if is_name(ch) => {
                self.text.push(ch);
                if self.text.len() > MAX_MARK { self.unnamed() } else { Suspicion::Open }
            }
            // A tag without its `<`.
            Reading::Name if ch == ' ' && INNER.contains(&self.text.as_str()) => {
                self.text.insert(0, '<');
                self.reading = Reading::Mark { first: false };
                // No form begins with it.
                self.is_neutral = false;
                self.push_mark(ch, false)
            }
            Reading::Name => {
                self.is_certain |= self.text.starts_with(GEMMA);
                self.reading = Reading::AfterName { blank: false, line: false };
                self.push_after_name(ch, false, false)
            }
            Reading::AfterName { blank, line } => self.push_after_name(ch, blank, line),
        }
    }

    /// Returns what is known at the end of the reply.
    pub(super) fn end(&self) -> Suspicion {
        match self.reading {
            Reading::Name | Reading::AfterName { .. } => {
                self.named(self.is_certain || self.text.starts_with(GEMMA))
            }
            Reading::Object => Suspicion::Call(None),
            Reading::Mark { .. } | Reading::Gap => self.unnamed(),
        }
    }

    fn go(&mut self, reading: Reading) -> Suspicion {
        self.reading = reading;
        Suspicion::Open
    }

    /// Returns what is known without a name.
    fn unnamed(&self) -> Suspicion {
        if self.is_certain { Suspicion::Call(None) } else { Suspicion::None }
    }

    /// Returns what is known after a name.
    fn named(&self, is_certain: bool) -> Suspicion {
        let gemma = self.text.strip_prefix(GEMMA).and_then(|text| text.split(':').next());
        let name = gemma.unwrap_or(&self.text);
        match name.strip_suffix('.') {
            // A sentence ends.
            Some(_) if !is_certain => Suspicion::None,
            _ if is_certain => Suspicion::Call(Some(name.to_owned())),
            _ => Suspicion::Name(name.to_owned()),
        }
    }

    fn push_mark(&mut self, ch: char, first: bool) -> Suspicion {
        let is_bracket = self.text.starts_with('[');
        let inner = self.text.get(1..).unwrap_or_default();
        let is_bar = |ch: char| looks_like('｜', ch);
        let is_token = is_bracket || inner.contains(is_bar);
        let has_name = inner.contains([' ', '=']);
        // A tag inside a call may lack its `>`.
        let is_cut = !first && has_name && matches!(ch, '\n' | '<');
        if is_cut || ch == if is_bracket { ']' } else { '>' } {
            return self.end_mark(first, is_token);
        }
        let goes_on = match ch {
            '/' if inner.is_empty() => false,
            _ if is_bracket => ch.is_ascii_uppercase() || ch == '_',
            // `< | DSML | invoke`
            ' ' if inner.is_empty() => true,
            _ if inner == " " => is_bar(ch),
            ' ' | '=' if !has_name => is_token || !first || may_have_name(&words_of(inner)),
            '"' | '\'' | ' ' | '=' => has_name,
            _ => is_bar(ch) || ch == '▁' || is_name(ch),
        };
        self.text.push(ch);
        if goes_on && self.text.len() <= MAX_MARK { Suspicion::Open } else { Suspicion::None }
    }

    /// Handles a complete marker, or a tag after it.
    fn end_mark(&mut self, first: bool, is_token: bool) -> Suspicion {
        let inner = self.text.get(1..).unwrap_or_default();
        let attributes = if is_token { inner.find(" name=") } else { inner.find([' ', '=']) };
        let (mark, attributes) = inner.split_at(attributes.unwrap_or(inner.len()));
        let words = words_of(mark);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        // `=name`, ` name="name"`
        let value = attributes.strip_prefix('=').or_else(|| attributes.trim_start().strip_prefix("name="));
        let name = value.map(|value| value.trim_matches(['"', '\'', ' ']).to_owned());
        let name = name.filter(|name| name.starts_with(begins_name));
        if !first && self.is_neutral && is_marker(&words) {
            return Suspicion::Marker(self.start);
        }
        let is_inner = !first && !is_token && !has(&OTHER);
        if is_inner && (name.is_some() || (matches!(attributes, "" | "=") && has(&INNER))) {
            self.is_certain = true;
        } else if is_inner || !(is_marker(&words) || (name.is_some() && may_have_name(&words))) {
            return Suspicion::None;
        }
        if first {
            self.is_token = is_token;
            self.is_neutral = is_token || is_wrapper('<', mark);
        }
        match name {
            Some(name) => {
                self.text = name;
                if self.is_certain {
                    return self.named(true);
                }
                self.go(Reading::AfterName { blank: false, line: false })
            }
            None => self.go(Reading::Gap),
        }
    }

    fn push_after_name(&mut self, ch: char, blank: bool, line: bool) -> Suspicion {
        match ch {
            _ if self.is_certain => self.named(true),
            '\n' => self.go(Reading::AfterName { blank, line: true }),
            _ if ch.is_whitespace() => self.go(Reading::AfterName { blank: true, line }),
            '{' | '(' | '[' if !blank || line => self.named(true),
            // A sentence ends or goes on.
            _ if !line && ",;!?)\"'`”’»".contains(ch) => Suspicion::None,
            _ if blank && !line && ch.is_alphanumeric() => Suspicion::None,
            _ => self.named(false),
        }
    }
}

/// Returns the words of a name: `minimax:tool_call`, `TOOL_CALLS`, `tool▁calls▁begin`.
fn words_of(name: &str) -> Vec<String> {
    let words = name.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a tag with this name may have the name of a tool as attribute.
fn may_have_name(words: &[String]) -> bool {
    is_marker(words) || words.iter().any(|word| INNER.contains(&word.as_str()) || word == "param")
}

fn begins_name(ch: char) -> bool {
    ch.is_alphabetic() || ch == '_'
}

/// Whether `ch` may be in the name of a marker or of a tool.
fn is_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-' | ':' | '/')
}

fn is_marker(words: &[String]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    (has(&CALLS) || (has(&TOOL) && has(&CALL))) && !has(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicion(text: &str) -> Suspicion {
        let mut chars = text.chars();
        let Some(mut suspect) = chars.next().and_then(Suspect::new) else { return Suspicion::None };
        let found = chars.map(|ch| suspect.push(ch)).find(|found| *found != Suspicion::Open);
        found.unwrap_or_else(|| suspect.end())
    }

    #[test]
    fn text_that_begins_like_a_call_is_recognised() {
        assert_eq!(suspicion("<|tool_calls_begin|>\n<|tool_call_begin|>"), Suspicion::Marker(21));
        for text in [
            "<x:tool_call>{\"a",
            "<|tool_call_start|>\n{ 'a",
            "<tool_call><parameters>{",
            "<function_calls>\n[{\"a",
            "<tool_call>\n<function=>\n<p",
        ] {
            assert_eq!(suspicion(text), Suspicion::Call(None), "{text}");
        }
        for text in [
            "<｜｜DSML｜｜invoke name=\"f\">{",
            "<tool_call>\n<functio name=\"f\">",
            "<tool_call>\n<function=f\n",
            "<tool_call><function=f<",
            "<x:tool_call>\ninvoke name=\"f\">",
            "<minimax:tool_call>\ninvoke name=\"f\">",
            "< | DSML | invoke name=\"f\">{",
            "<tool_call><tool_name>f<",
            "<|tool_calls|>f{",
            "[TOOL_CALL]f(",
            "<|tool_call>call:f:",
            "<function_call>f\n{",
            "<invoke name=\"f\">\n{",
        ] {
            assert_eq!(suspicion(text), Suspicion::Call(Some(String::from("f"))), "{text}");
        }
        for text in [
            "[TOOL_CALLS]f",
            "<|tool_call_begin|>f\n",
            "<function=f>\nx",
            "<tool_call>f</tool_call>",
            "<invoke name=\"f\">",
        ] {
            assert_eq!(suspicion(text), Suspicion::Name(String::from("f")), "{text}");
        }
        for text in [
            "<tool_call> is the tag",
            "<tool_call>f is",
            "<tool_call>f, it",
            "<tool_call>f.\n",
            "<tool_call>{...}",
            "<tool_call>{}",
            "<tool_call></tool_call>",
            "<tool_call>\n<tool_response>\n",
            "<tool_call>\n\n",
            "<tool_call> function is the name\n",
            "<function_calls>[see below]",
            "< | a",
            "<tool_call><invoke name=\"$NAME\">",
            "<|im_end|>f",
            "<|call|>f",
            "<div>f",
            "<function>f",
            "[x]f",
            "</tool_call>{f",
            "<|tool_response|>{\"a",
            "a",
        ] {
            assert_eq!(suspicion(text), Suspicion::None, "{text}");
        }
    }
}
