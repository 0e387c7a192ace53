//! Reads the marks that open or close a part of a text: HTML and XML tags, CDATA, comments, LaTeX environments,
//! `[name]`, and the markers that begin a role's message in chat templates.
//!
//! The reader handles syntax only and never looks back. `enclosures` decides what a mark encloses.

use serde::{Deserialize, Serialize};

/// Maximum length of a name, in bytes. Longer names are truncated.
const MAX_NAME: usize = 64;

/// Names of the model's role in chat templates. The name may be missing.
const OWN_ROLES: [&str; 6] = ["", "assistant", "model", "ai", "bot", "agent"];

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
    /// A quotation, given by its opening mark.
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
    /// Whether the current or last mark begins or ends with a character reference.
    is_escaped: bool,
    /// The last two characters.
    tail: (Option<char>, Option<char>),
}

/// The start of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TagName {
    /// Begins with `[`, not `<`.
    bracket: bool,
    /// A closing tag.
    close: bool,
    /// In lowercase.
    name: String,
}

/// The position inside a tag, after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    /// Outside an attribute's value.
    Name,
    /// After `=`.
    Equals,
    /// In a value in quotation marks. `escaped`: they are character references.
    Quoted { mark: char, escaped: bool },
    /// In a value without quotation marks.
    Unquoted,
    /// After a `/`, which makes an empty tag if `>` follows.
    Slash,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    Nothing,
    /// After `<` or `[`.
    Begun(char),
    /// In the name of a tag.
    Name(TagName),
    /// After the name of a tag. `line_end`: only blanks since the line break.
    Attributes {
        tag: TagName,
        part: Part,
        line_end: bool,
    },
    /// In a special token: `<|name`, `[|name`.
    Special {
        name: String,
    },
    /// In the role name after a marker, which may still be the model's own role.
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
        Self { reading: Reading::Nothing, is_escaped: false, tail: (None, None) }
    }

    /// Whether the reader is outside a mark.
    pub(super) fn is_idle(&self) -> bool {
        self.reading == Reading::Nothing
    }

    /// Whether the reader is in the value of an attribute, in quotation marks.
    pub(super) fn is_in_value(&self) -> bool {
        matches!(self.reading, Reading::Attributes { part: Part::Quoted { .. }, .. })
    }

    /// Whether the mark that was completed last begins or ends with a character reference.
    pub(super) fn is_escaped(&self) -> bool {
        self.is_escaped
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

    /// Reads one character. Returns the mark that it completes. `escaped`: the character was written as a reference.
    pub(super) fn push(&mut self, ch: char, escaped: bool) -> Option<Mark> {
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
                self.is_escaped = escaped;
                return Some(Mark::Close(closed));
            }
        }
        let reading = std::mem::replace(&mut self.reading, Reading::Nothing);
        let mark = self.read(reading, ch, escaped);
        match &self.reading {
            Reading::Begun(_) => self.is_escaped = escaped,
            Reading::Command { name } if name.is_empty() => self.is_escaped = escaped,
            _ => self.is_escaped |= escaped && mark.is_some(),
        }
        mark
    }

    fn read(&mut self, reading: Reading, ch: char, escaped: bool) -> Option<Mark> {
        match reading {
            Reading::Nothing => self.begin(ch),
            Reading::Begun(first) => self.begun(first, ch),
            Reading::Name(tag) => self.name(ch, tag),
            Reading::Attributes { tag, part, line_end } => self.attributes(ch, escaped, tag, part, line_end),
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
                if ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-') {
                    word.push(ch.to_ascii_lowercase());
                    if OWN_ROLES.iter().any(|own| own.starts_with(&word)) {
                        self.reading = Reading::Role { word };
                        return None;
                    }
                    return Some(Mark::ForeignRole);
                }
                self.begin(ch);
                Some(if OWN_ROLES.contains(&word.as_str()) { Mark::Neutral } else { Mark::ForeignRole })
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
                '}' if close => Some(Mark::Close(Enclosure::Environment(name))),
                '}' => Some(Mark::Open(Enclosure::Environment(name))),
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
            '/' => Reading::Name(TagName { bracket, close: true, name: String::new() }),
            '|' | '｜' => Reading::Special { name: String::new() },
            '!' if !bracket => Reading::Declaration { read: String::new() },
            _ if is_name_start(ch) => {
                let mut tag = TagName { bracket, close: false, name: String::new() };
                add(&mut tag.name, ch);
                Reading::Name(tag)
            }
            _ => return self.begin(ch),
        };
        None
    }

    fn name(&mut self, ch: char, mut tag: TagName) -> Option<Mark> {
        let starts = tag.name.is_empty();
        match ch {
            _ if is_name_start(ch) || (!starts && is_name(ch)) => {
                add(&mut tag.name, ch);
                self.reading = Reading::Name(tag);
                None
            }
            _ if starts => self.begin(ch),
            '>' if !tag.bracket => self.end_tag(tag),
            ']' if tag.bracket && tag.name == "inst" && !tag.close => Some(Mark::ForeignRole),
            ']' if tag.bracket => self.end_tag(tag),
            // The address in `<https://example.org>`.
            '/' if tag.name.ends_with(':') => self.begin(ch),
            '=' | '/' => {
                let part = if ch == '=' { Part::Equals } else { Part::Slash };
                self.reading = Reading::Attributes { tag, part, line_end: false };
                None
            }
            // Not in brackets: the text of a link may have several words.
            _ if ch.is_whitespace() && !tag.bracket => {
                self.reading = Reading::Attributes { tag, part: Part::Name, line_end: ch == '\n' };
                None
            }
            _ => self.begin(ch),
        }
    }

    fn attributes(
        &mut self,
        ch: char,
        escaped: bool,
        tag: TagName,
        part: Part,
        line_end: bool,
    ) -> Option<Mark> {
        let (first, last) = if tag.bracket { ('[', ']') } else { ('<', '>') };
        let part = match (part, ch) {
            // An empty line ends an incomplete tag.
            (_, '\n') if line_end || tag.bracket => return None,
            (Part::Quoted { mark, escaped: is_reference }, _) if ch == mark && escaped == is_reference => {
                Part::Name
            }
            (Part::Quoted { .. }, _) => part,
            (Part::Slash, '>') if !tag.bracket => return Some(Mark::Neutral),
            _ if ch == last => return self.end_tag(tag),
            _ if ch == first => return self.begin(ch),
            (Part::Equals, '"' | '\'') => Part::Quoted { mark: ch, escaped },
            (Part::Equals, _) if ch.is_whitespace() => Part::Equals,
            (Part::Equals | Part::Unquoted, _) if !ch.is_whitespace() => Part::Unquoted,
            (_, '=') => Part::Equals,
            (_, '/') => Part::Slash,
            _ => Part::Name,
        };
        let line_end = ch == '\n' || (line_end && ch.is_whitespace());
        self.reading = Reading::Attributes { tag, part, line_end };
        None
    }

    fn end_tag(&mut self, TagName { bracket, close, name }: TagName) -> Option<Mark> {
        // Gemma's `<start_of_turn>`. A marker of one word, such as `<start>`, is an ordinary element.
        if !bracket && !close && name.contains('_') && role_marker(&name) == RoleMarker::Begins {
            self.reading = Reading::Role { word: String::new() };
            return None;
        }
        let enclosure = if bracket { Enclosure::Bracket(name) } else { Enclosure::Element(name) };
        Some(if close { Mark::Close(enclosure) } else { Mark::Open(enclosure) })
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

fn is_name_start(ch: char) -> bool {
    ch.is_alphabetic() || ch == '_'
}

/// Whether a tag name may contain this character after its first character.
pub(super) fn is_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '-' | '.' | ':')
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
    /// Names a role other than the model's, or a tool's result.
    Foreign,
    Other,
}

/// Classifies a special token by its name: `im_start`, `start_header_id`, `start_of_role`, `user`, `USER_TOKEN`,
/// `im_system`.
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
        ["tool", "response" | "result" | "results" | "output" | "outputs"] => RoleMarker::Foreign,
        _ => RoleMarker::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &str) -> Vec<Mark> {
        let mut reader = MarkReader::new();
        text.chars().filter_map(|ch| reader.push(ch, false)).filter(|mark| *mark != Mark::Neutral).collect()
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
            ("<a b=\"1 < 2\" c='/>'></a>", element("a")),
            ("<a b = \"\nc>\" /d></a>", element("a")),
            ("<a b=http://c/></a>", element("a")),
            ("<a b=\"\n\n<a></a>", element("a")),
            ("<_a></_a>", element("_a")),
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
            "<a b=\"c\"/>",
            "<a b=\"c>",
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
            "<|im_start|>u",
            "<|im_start|>assistant-",
            "<|tool_response>",
            "<｜tool▁output▁begin｜>",
            "<｜tool▁outputs▁begin｜>",
            "<|START_TOOL_RESULT|>",
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
            "<|im_start|>Assi",
            "<｜tool▁output▁end｜>",
            "<|END_TOOL_RESULT|>",
            "<|tool_call|>",
        ] {
            assert!(!marks(text).contains(&Mark::ForeignRole), "{text}");
        }
    }
}
