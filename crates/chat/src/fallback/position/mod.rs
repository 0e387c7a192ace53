//! Decides by its position whether a call may begin, and whether the reply ends after it.
//!
//! A call ends its reply. A form that begins with characters that people also type (`<tool_call>`, JSON, Python) begins
//! a line at column 0. A form that begins with a control token (`<|…|>`, `[TOOL_CALLS]`) may also follow a sentence.
//! After the last call are only closing marks, control tokens and blanks, up to the message of another role. No call
//! begins in a code block, in the model's reasoning or in the message of another role.

mod channels;
mod marks;
mod tail;

use serde::{Deserialize, Serialize};

use self::channels::{Channel, Channels};
use self::marks::{Ends, Mark, MarkReader, begins_mark};
use super::grammar::StartPosition;

pub(super) use marks::may_contain_reasoning;
pub(crate) use tail::ends_reply;
pub(super) use tail::{Leftover, leftover};

/// Maximum length of the start of a line that is examined, in bytes.
const MAX_LINE: usize = 256;

/// Indentation of a code block, in columns.
const CODE_INDENT: usize = 4;

/// Columns of the fence of a code block.
const MIN_FENCE: usize = 3;

/// A position in a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// The start of a message, or after another call.
    #[default]
    Start,
    /// Column 0 of a line.
    Line,
    /// After a sentence, or directly after a word.
    Sentence,
    /// Elsewhere in a line.
    InLine,
    /// In a code block.
    Code,
    /// In the message of another role.
    OtherRole,
}

impl Place {
    /// Whether a call in a form with this start may begin here.
    pub(super) fn takes(self, start: StartPosition) -> bool {
        match self {
            Self::Start | Self::Line => true,
            Self::Sentence => matches!(start, StartPosition::Token | StartPosition::Channel),
            // The end of the reasoning that precedes it.
            Self::InLine => start == StartPosition::Channel,
            Self::Code | Self::OtherRole => false,
        }
    }
}

/// Tracks the position of the next character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The start of the current line, without marks at its start.
    line: String,
    /// The last character of the line.
    last: Option<char>,
    /// The last character of the line that is not a blank.
    last_visible: Option<char>,
    /// The fence of the open code block: its character and its minimum length.
    fence: Option<(char, usize)>,
    reasoning: Option<Reasoning>,
    reasoning_ended: bool,
    is_other_role: bool,
    /// Only blanks since the start of the message, or since a call.
    is_start: bool,
    reader: MarkReader,
    /// The character before the current mark; `None` at the start of a line.
    before_mark: Option<char>,
    channels: Channels,
}

/// The start of the current reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Reasoning {
    /// With a mark of this pair.
    Marks(usize),
    /// As a message of the harmony format, which ends at the next message.
    Message,
    /// As a message of the harmony format without its special tokens.
    Channel,
}

impl Position {
    pub(super) fn new() -> Self {
        Self {
            line: String::new(),
            last: None,
            last_visible: None,
            fence: None,
            reasoning: None,
            reasoning_ended: false,
            is_other_role: false,
            is_start: true,
            reader: MarkReader::default(),
            before_mark: None,
            channels: Channels::new(),
        }
    }

    /// Returns the place of the next character.
    pub(super) fn place(&self) -> Place {
        if self.is_other_role {
            Place::OtherRole
        } else if self.fence.is_some() {
            Place::Code
        } else if self.at_message_start() {
            Place::Start
        } else if self.line.is_empty() {
            Place::Line
        } else if self.follows_sentence() {
            Place::Sentence
        } else {
            Place::InLine
        }
    }

    /// Whether the position is at column 0, or at the start of a message.
    pub(super) fn begins_line(&self) -> bool {
        self.line.is_empty() || self.at_message_start()
    }

    /// Whether only blanks precede the position in its message.
    pub(super) fn at_message_start(&self) -> bool {
        self.is_start && self.last_visible.is_none() && self.line.len() < CODE_INDENT
    }

    /// Whether a sentence ends before the position, or a word ends directly before it, in a line that begins like
    /// prose.
    fn follows_sentence(&self) -> bool {
        let begins_prose = |ch: char| ch.is_alphanumeric() || !ch.is_ascii() || "*_(\"<`".contains(ch);
        let ends = |ch: char| ".!?:;)]}>*".contains(ch) || !(ch.is_ascii() || ch.is_alphanumeric());
        let is_word = self.last.is_some_and(char::is_alphanumeric);
        self.line.starts_with(begins_prose) && (is_word || self.last_visible.is_some_and(ends))
    }

    /// Whether the text from here on is searched for forms. In reasoning, only the word that ends it is read.
    pub(super) fn reads_forms(&self, ch: char) -> bool {
        match self.reasoning {
            Some(Reasoning::Channel) => self.may_begin_channel(ch),
            Some(Reasoning::Marks(_) | Reasoning::Message) => false,
            None => true,
        }
    }

    /// Whether `ch` may begin a channel word inside the text.
    pub(super) fn may_begin_channel(&self, ch: char) -> bool {
        self.channels.is_stripped() && ch == 'a'
    }

    /// Whether the position is in a code block.
    pub(super) fn is_in_code(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether the position is in the model's reasoning.
    pub(super) fn is_reasoning(&self) -> bool {
        self.reasoning.is_some()
    }

    /// Whether [`Position::skip`] may be used.
    pub(super) fn may_skip(&self) -> bool {
        let is_ordinary = self.reasoning.is_some() || !self.begins_line();
        is_ordinary && self.reader.is_idle() && !self.channels.is_reading()
    }

    /// Reads characters that [`is_plain`] accepts. Requires [`Position::may_skip`].
    pub(super) fn skip(&mut self, run: &str) {
        if self.reasoning.is_none() {
            run.chars().take(MAX_LINE).for_each(|ch| self.add(ch));
            let mut ends = run.chars().rev();
            self.last = ends.next();
            self.last_visible = run.trim_end().chars().next_back().or(self.last_visible);
        }
    }

    /// Whether a `</think>` without its `<think>` was read since the previous use of this function. If so, all text
    /// before it was reasoning.
    pub(super) fn take_reasoning_ended(&mut self) -> bool {
        std::mem::take(&mut self.reasoning_ended)
    }

    /// Continues after a call that was removed from the text.
    pub(super) fn call_made(&mut self) {
        self.begin_line();
        self.is_start = true;
    }

    /// Continues after a form that is no call here. Marks in its arguments have no meaning. `line`: with the end of its
    /// line.
    pub(super) fn form_shown(&mut self, line: bool) {
        self.is_start = false;
        if line {
            self.begin_line();
        } else {
            self.add('>');
        }
    }

    /// Reads one character of plain text.
    pub(super) fn track(&mut self, ch: char) {
        if let Some(channel) = self.channels.push(ch) {
            match channel {
                Channel::Reasoning if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Channel),
                Channel::Visible if self.reasoning == Some(Reasoning::Channel) => self.end_reasoning(),
                Channel::Reasoning | Channel::Visible => {}
            }
            return;
        }
        match self.reader.push(ch) {
            Some((mark, Ends::With)) => {
                self.add(ch);
                return self.take_mark(mark);
            }
            Some((mark, Ends::Before)) => self.take_mark(mark),
            None => {}
        }
        if begins_mark(ch) {
            self.before_mark = self.last_visible.and(self.last);
        }
        if self.reasoning.is_some() {
            return;
        }
        if ch == '\n' {
            self.end_line();
        } else {
            self.is_start &= ch.is_whitespace() || !self.reader.is_idle();
            self.add(ch);
        }
    }

    /// Handles a mark that the line ends with.
    fn take_mark(&mut self, mark: Mark) {
        if self.fence.is_some() {
            self.is_start = false;
            return;
        }
        // Elsewhere in a line, marks are only mentioned.
        let begins = self.before_mark.is_none_or(|before| matches!(before, '>' | ']' | '▷'));
        let is_quoted = self.before_mark.is_some_and(|before| matches!(before, '`' | '"' | '\''));
        match mark {
            Mark::EndThink(pair) if self.reasoning == Some(Reasoning::Marks(pair)) => self.end_reasoning(),
            Mark::Message if self.reasoning == Some(Reasoning::Message) => self.end_reasoning(),
            _ if self.reasoning.is_some() => {}
            Mark::Think(pair) if begins => self.begin_reasoning(Reasoning::Marks(pair)),
            Mark::Analysis => self.begin_reasoning(Reasoning::Message),
            Mark::EndThink(_) if !is_quoted => {
                self.reasoning_ended = true;
                self.end_reasoning();
            }
            Mark::OtherRole if begins => self.is_other_role = true,
            Mark::Message => self.begin_message(),
            Mark::Token if self.before_mark.is_none() => self.begin_line(),
            Mark::Think(_) | Mark::EndThink(_) | Mark::OtherRole | Mark::Token => self.is_start = false,
        }
    }

    fn begin_reasoning(&mut self, reasoning: Reasoning) {
        self.begin_line();
        self.reasoning = Some(reasoning);
    }

    fn end_reasoning(&mut self) {
        self.reasoning = None;
        self.begin_message();
    }

    fn begin_message(&mut self) {
        self.begin_line();
        self.is_start = true;
    }

    fn end_line(&mut self) {
        let text = without_markers(&self.line);
        let fence = text.chars().next().filter(|ch| matches!(ch, '`' | '~'));
        let length = text.chars().take_while(|ch| Some(*ch) == fence).count();
        let info = text.get(length..).unwrap_or_default();
        let found = fence.filter(|_| length >= MIN_FENCE).map(|fence| (fence, length));
        self.fence = match (self.fence, found) {
            (Some((open, least)), Some((fence, length))) if open == fence && length >= least => {
                Some((open, least)).filter(|_| !info.trim().is_empty())
            }
            // With the same character again, the line begins with inline code.
            (None, Some((fence, _))) if info.contains(fence) => None,
            (None, found) => found,
            (open, _) => open,
        };
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.line.clear();
        self.last = None;
        self.last_visible = None;
    }

    fn add(&mut self, ch: char) {
        // The mark of the byte order has no width.
        if ch == '\u{feff}' {
            return;
        }
        self.last = Some(ch);
        if !ch.is_whitespace() {
            self.last_visible = Some(ch);
        }
        if self.line.len() < MAX_LINE {
            self.line.push(ch);
        }
    }
}

/// Removes blanks, list markers and marks of block quotes from the start of a line.
fn without_markers(line: &str) -> &str {
    let mut rest = line.trim();
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let marker = rest.get(digits..).unwrap_or_default();
        let after = match digits {
            0 => marker.strip_prefix('>').or_else(|| marker.strip_prefix(['-', '*', '+'])?.strip_prefix(' ')),
            _ => marker.strip_prefix(['.', ')']).and_then(|after| after.strip_prefix(' ')),
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

/// Splits a text into the model's reasoning and the rest, without the marks that open the reasoning.
pub(super) fn split_reasoning(text: &str) -> (String, String) {
    let mut position = Position::new();
    let (mut reasoning, mut rest) = (String::new(), String::new());
    for ch in text.chars() {
        let was_reasoning = position.is_reasoning();
        position.track(ch);
        if position.take_reasoning_ended() {
            reasoning.push_str(&std::mem::take(&mut rest));
        } else if was_reasoning || position.is_reasoning() {
            if !was_reasoning {
                rest.truncate(rest.rfind(['<', '[', '◁']).unwrap_or_default());
            }
            reasoning.push(ch);
        } else {
            rest.push(ch);
        }
    }
    (reasoning, rest)
}

/// Whether a byte is plain text after the start of a line, both here and in forms. For a character of several bytes, pass
/// the first byte.
pub(super) fn is_plain(byte: u8) -> bool {
    // The last byte begins `◁`.
    !matches!(byte, b'\n' | b'<' | b'>' | b'[' | b']' | 0xe2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(text: &str) -> Position {
        let mut position = Position::new();
        text.chars().for_each(|ch| position.track(ch));
        position
    }

    #[test]
    fn forms_begin_by_their_position() {
        for (text, place) in [
            ("", Place::Start),
            (" \n  ", Place::Start),
            ("<s>", Place::Start),
            ("<|im_start|>assistant\n", Place::Start),
            ("<think>a</think> ", Place::Start),
            ("a</think>\n", Place::Start),
            ("analysisWe.assistantfinal", Place::Start),
            ("a\n", Place::Line),
            ("a\n\u{feff}", Place::Line),
            ("a\n<|im_end|>", Place::Line),
            ("```\nx\n```\n", Place::Line),
            ("Write ```x``` here.\n", Place::Line),
            ("The token <|im_start|> begins. So <|im_start|>user does.\n", Place::Line),
            ("The tag <think> begins it.\n", Place::Line),
            ("The tag `</think>` ends it.\n", Place::Line),
            ("Use `<think>` for it.\n\n", Place::Line),
            ("Hello.", Place::Sentence),
            ("Hello: ", Place::Sentence),
            ("Hello", Place::Sentence),
            ("見る。", Place::Sentence),
            ("Hello ", Place::InLine),
            ("Hello, ", Place::InLine),
            ("# Hello. ", Place::InLine),
            ("> Hello. ", Place::InLine),
            ("say `", Place::InLine),
            ("a\n  ", Place::InLine),
            ("    ", Place::InLine),
            ("```\n", Place::Code),
            ("- ~~~~ xml\n~~~\n", Place::Code),
            ("> ```\n", Place::Code),
            ("```\n<think>\n", Place::Code),
            ("<|im_start|>user\n", Place::OtherRole),
            ("So.<|im_end|><|im_start|>user\n", Place::OtherRole),
            ("<tool_response>\n", Place::OtherRole),
        ] {
            let position = tracked(text);
            assert!(!position.is_reasoning(), "{text:?}");
            assert_eq!(position.place(), place, "{text:?}");
        }
        for text in ["<think>a\n\n", "<think>a</thinking>", "analysisWe", "<|channel|>analysis<|message|>a"] {
            assert!(tracked(text).is_reasoning(), "{text:?}");
        }
    }

    #[test]
    fn skipping_a_run_equals_reading_its_characters() {
        for text in [
            "for example, ",
            "Wörter und ",
            "- a list's item",
            "<a b> cd <e",
            "日本語 ",
            "```\nx y\n",
            "<think> x",
        ] {
            let mut position = Position::new();
            let mut rest = text;
            while let Some(ch) = rest.chars().next() {
                let plain = rest.bytes().take_while(|byte| is_plain(*byte)).count();
                let run = if position.may_skip() { plain } else { 0 };
                if run == 0 {
                    position.track(ch);
                } else {
                    position.skip(rest.get(..run).unwrap());
                }
                rest = rest.get(run.max(ch.len_utf8() * usize::from(run == 0))..).unwrap();
            }
            assert_eq!(position, tracked(text), "{text:?}");
        }
    }

    #[test]
    fn a_lone_closing_mark_ends_reasoning() {
        assert!(tracked("abc</think>").take_reasoning_ended());
        assert!(!tracked("<think>abc</think>").take_reasoning_ended());
    }
}
