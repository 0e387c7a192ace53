//! Reads the marks that open or close a part of a text: HTML and XML tags, CDATA, comments, LaTeX environments, `[name]`,
//! and the markers that begin a role's message in chat templates.
//!
//! The reader handles syntax only and never looks back. `enclosures` decides what a mark encloses.

use serde::{Deserialize, Serialize};

/// Maximum length of a name, in bytes. Longer names are truncated.
const MAX_NAME: usize = 64;

/// A part of a text between an opening and a closing mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Enclosure {
    /// `<name …>` to `</name>`.
    Element(String),
    /// `[name]` to `[/name]`.
    Bracket(String),
    /// `\begin{name}` to `\end{name}`.
    Environment(String),
    /// `<!--` to `-->`.
    Comment,
    /// `<![CDATA[` to `]]>`.
    CData,
    /// A quotation, given by its closing character.
    Quotation(char),
    /// Three of these characters to the next three: `'''`.
    Triple(char),
}

/// A complete mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Open(Enclosure),
    Close(Enclosure),
    /// Begins a message of a role other than the model's.
    ForeignRole,
    /// Encloses nothing.
    Neutral,
}

/// A streaming reader of marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MarkReader {
    reading: Reading,
    /// The last two characters.
    tail: (Option<char>, Option<char>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    Nothing,
    /// After `<` or `[`.
    Begun(char),
    /// In the name of a tag. `bracket`: it began with `[`. `close`: it is a closing tag.
    Name {
        bracket: bool,
        close: bool,
        name: String,
    },
    /// After the name of a tag. `slash`: the last character was `/`. `line_end`: only blanks since the line break.
    Attributes {
        bracket: bool,
        close: bool,
        name: String,
        slash: bool,
        line_end: bool,
    },
    /// In a special token: `<|name`, `[|name`.
    Special {
        name: String,
    },
    /// In the role name after a marker.
    Role {
        word: String,
    },
    /// After `<!`.
    Declaration {
        read: String,
    },
    /// In a LaTeX command: `\name`.
    Command {
        name: String,
    },
    /// In the name of an environment: `\begin{name`, `\end{name`.
    Environment {
        close: bool,
        name: String,
    },
}

impl MarkReader {
    pub(super) fn new() -> Self {
        Self { reading: Reading::Nothing, tail: (None, None) }
    }

    /// Whether the reader is outside a mark.
    pub(super) fn is_idle(&self) -> bool {
        self.reading == Reading::Nothing
    }

    /// Discards an incomplete mark.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Skips characters that neither begin nor end a mark.
    pub(super) fn skip(&mut self, run: &str) {
        let mut last = run.chars().rev();
        if let Some(ch) = last.next() {
            self.tail = (last.next().or(self.tail.1), Some(ch));
        }
    }

    /// Reads one character. Returns the mark that it completes.
    pub(super) fn push(&mut self, ch: char) -> Option<Mark> {
        let tail = self.tail;
        self.tail = (tail.1, Some(ch));
        if ch == '>' {
            let closed = match tail {
                (Some('-'), Some('-')) => Some(Enclosure::Comment),
                (Some(']'), Some(']')) => Some(Enclosure::CData),
                _ => None,
            };
            if let Some(closed) = closed {
                self.reading = Reading::Nothing;
                return Some(Mark::Close(closed));
            }
        }
        match std::mem::replace(&mut self.reading, Reading::Nothing) {
            Reading::Nothing => self.begin(ch),
            Reading::Begun(first) => self.begun(first, ch),
            Reading::Name { bracket, close, name } => self.name(ch, bracket, close, name),
            Reading::Attributes { bracket, close, name, slash, line_end } => {
                self.attributes(ch, (bracket, close, name), slash, line_end)
            }
            Reading::Special { mut name } => match ch {
                '>' | ']' => self.special(&name),
                _ if (ch.is_alphanumeric() || matches!(ch, '_' | '▁' | ' ' | '-' | '|' | '｜'))
                    && name.len() < MAX_NAME =>
                {
                    name.push(ch);
                    self.reading = Reading::Special { name };
                    None
                }
                _ => self.begin(ch),
            },
            Reading::Role { mut word } => {
                if (ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-')) && word.len() < MAX_NAME {
                    word.push(ch);
                    self.reading = Reading::Role { word };
                    return None;
                }
                self.begin(ch);
                Some(if is_own_role(&word) { Mark::Neutral } else { Mark::ForeignRole })
            }
            Reading::Declaration { mut read } => {
                read.push(ch);
                match read.as_str() {
                    "--" => Some(Mark::Open(Enclosure::Comment)),
                    "[CDATA[" => Some(Mark::Open(Enclosure::CData)),
                    begun if "--".starts_with(begun) || "[CDATA[".starts_with(begun) => {
                        self.reading = Reading::Declaration { read };
                        None
                    }
                    _ => self.begin(ch),
                }
            }
            Reading::Command { mut name } => match (name.as_str(), ch) {
                ("begin" | "end", '{') => {
                    self.reading = Reading::Environment { close: name == "end", name: String::new() };
                    None
                }
                _ if ch.is_ascii_lowercase() && name.len() < "begin".len() => {
                    name.push(ch);
                    self.reading = Reading::Command { name };
                    None
                }
                _ => self.begin(ch),
            },
            Reading::Environment { close, mut name } => match ch {
                '}' => Some(tag(close, Enclosure::Environment(name))),
                _ if ch.is_alphanumeric() || matches!(ch, '*' | '_' | '-' | '@') => {
                    add(&mut name, ch);
                    self.reading = Reading::Environment { close, name };
                    None
                }
                _ => self.begin(ch),
            },
        }
    }

    fn begin(&mut self, ch: char) -> Option<Mark> {
        self.reading = match ch {
            '<' | '[' => Reading::Begun(ch),
            '\\' => Reading::Command { name: String::new() },
            _ => Reading::Nothing,
        };
        None
    }

    fn begun(&mut self, first: char, ch: char) -> Option<Mark> {
        let bracket = first == '[';
        self.reading = match ch {
            '/' => Reading::Name { bracket, close: true, name: String::new() },
            '|' | '｜' => Reading::Special { name: String::new() },
            '!' if !bracket => Reading::Declaration { read: String::new() },
            _ if ch.is_alphabetic() => {
                let mut name = String::new();
                add(&mut name, ch);
                Reading::Name { bracket, close: false, name }
            }
            _ => return self.begin(ch),
        };
        None
    }

    fn name(&mut self, ch: char, bracket: bool, close: bool, mut name: String) -> Option<Mark> {
        let starts = name.is_empty();
        match ch {
            _ if ch.is_alphabetic() || (!starts && is_name(ch)) => {
                add(&mut name, ch);
                self.reading = Reading::Name { bracket, close, name };
                None
            }
            _ if starts => self.begin(ch),
            '>' if !bracket => self.element(close, name),
            ']' if bracket && name == "inst" && !close => Some(Mark::ForeignRole),
            ']' if bracket => Some(tag(close, Enclosure::Bracket(name))),
            // The address in `<https://example.org>`.
            '/' if name.ends_with(':') => self.begin(ch),
            '=' | '/' => {
                self.reading =
                    Reading::Attributes { bracket, close, name, slash: ch == '/', line_end: false };
                None
            }
            // Not in brackets: the text of a link may have several words.
            _ if ch.is_whitespace() && !bracket => {
                let line_end = ch == '\n';
                self.reading = Reading::Attributes { bracket, close, name, slash: false, line_end };
                None
            }
            _ => self.begin(ch),
        }
    }

    fn attributes(
        &mut self,
        ch: char,
        (bracket, close, name): (bool, bool, String),
        slash: bool,
        line_end: bool,
    ) -> Option<Mark> {
        match ch {
            '>' if !bracket && slash => Some(Mark::Neutral),
            '>' if !bracket => self.element(close, name),
            ']' if bracket => Some(tag(close, Enclosure::Bracket(name))),
            _ if ch == if bracket { '[' } else { '<' } => self.begin(ch),
            // An empty line ends an incomplete tag.
            '\n' if line_end || bracket => None,
            _ => {
                let line_end = ch == '\n' || (line_end && ch.is_whitespace());
                self.reading = Reading::Attributes { bracket, close, name, slash: ch == '/', line_end };
                None
            }
        }
    }

    fn element(&mut self, close: bool, name: String) -> Option<Mark> {
        // Gemma's `<start_of_turn>`. A marker of one word, such as `<start>`, is an ordinary element.
        if !close && name.contains('_') && role_marker(&name) == RoleMarker::Begins {
            self.reading = Reading::Role { word: String::new() };
            return None;
        }
        Some(tag(close, Enclosure::Element(name)))
    }

    fn special(&mut self, name: &str) -> Option<Mark> {
        match role_marker(name) {
            RoleMarker::Begins => {
                self.reading = Reading::Role { word: String::new() };
                None
            }
            RoleMarker::Foreign => Some(Mark::ForeignRole),
            RoleMarker::Other => Some(Mark::Neutral),
        }
    }
}

/// Whether a tag name may contain this character after its first letter.
pub(super) fn is_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '-' | '.' | ':')
}

fn tag(close: bool, enclosure: Enclosure) -> Mark {
    if close { Mark::Close(enclosure) } else { Mark::Open(enclosure) }
}

fn add(name: &mut String, ch: char) {
    if name.len() < MAX_NAME {
        name.push(ch.to_ascii_lowercase());
    }
}

#[derive(Debug, PartialEq, Eq)]
enum RoleMarker {
    /// Begins a message; the role follows.
    Begins,
    /// Names a role other than the model's.
    Foreign,
    Other,
}

/// Classifies a special token by its name: `im_start`, `start_header_id`, `start_of_role`, `user`, `USER_TOKEN`, `im_system`.
fn role_marker(name: &str) -> RoleMarker {
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
        [] if begins => RoleMarker::Begins,
        ["user" | "human" | "system" | "developer" | "tool" | "observation" | "ipython" | "environment"] => {
            RoleMarker::Foreign
        }
        _ => RoleMarker::Other,
    }
}

/// Whether the role after a marker is the model's, or missing.
fn is_own_role(word: &str) -> bool {
    ["", "assistant", "model", "ai", "bot", "agent"].iter().any(|own| word.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &str) -> Vec<Mark> {
        let mut reader = MarkReader::new();
        text.chars().filter_map(|ch| reader.push(ch)).filter(|mark| *mark != Mark::Neutral).collect()
    }

    #[test]
    fn marks_are_read() {
        let element = |name: &str| Enclosure::Element(name.to_owned());
        let bracket = |name: &str| Enclosure::Bracket(name.to_owned());
        let environment = |name: &str| Enclosure::Environment(name.to_owned());
        for (text, enclosure) in [
            ("<a></a>", element("a")),
            ("<A b='c'\n d></a >", element("a")),
            ("x<ns:a-b.c></ns:a-b.c>", element("ns:a-b.c")),
            ("<<a></a>", element("a")),
            ("<b <a></a>", element("a")),
            ("[code][/code]", bracket("code")),
            ("[quote=\"Ada\"][/quote]", bracket("quote")),
            ("\\begin{verbatim*}\\end{verbatim*}", environment("verbatim*")),
            ("<!---->", Enclosure::Comment),
            ("<!-- a - b --->", Enclosure::Comment),
            ("<![CDATA[a]]]>", Enclosure::CData),
        ] {
            assert_eq!(marks(text), [Mark::Open(enclosure.clone()), Mark::Close(enclosure)], "{text}");
        }
        for text in [
            "a < b > c",
            "<1>",
            "<a\n\n>",
            "<https://a.b/c>",
            "<a@b.c>",
            "<a/>",
            "<a b />",
            "[two words]",
            "[1]",
            "\\beginning{a}",
            "\\begin{a b}",
            "<!DOCTYPE html>",
            "<|im_end|>",
            "<|begin_of_text|>",
            "<|tool_call|>",
        ] {
            assert_eq!(marks(text), [], "{text}");
        }
    }

    #[test]
    fn role_markers_are_read() {
        for text in [
            "<|im_start|>user\n",
            "<|im_start|>system ",
            "<|start_header_id|>user<|end_header_id|>",
            "<|start_of_role|>tools<|end_of_role|>",
            "<|start|>functions.f to=assistant",
            "<start_of_turn>user\n",
            "<|turn>user\n",
            "<|user|>",
            "<｜User｜>",
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
            "<|im_system|>",
            "[INST]",
            "[|user|]",
        ] {
            assert_eq!(marks(text), [Mark::ForeignRole], "{text}");
        }
        for text in [
            "<|im_start|>assistant\n",
            "<|im_start|>\n",
            "<|start_header_id|>assistant<|end_header_id|>",
            "<start_of_turn>model\n",
            "<|assistant|>",
            "[/INST]x",
        ] {
            assert!(!marks(text).contains(&Mark::ForeignRole), "{text}");
        }
    }
}
