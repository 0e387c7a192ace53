//! Tracks the position in a text by lines: the open blocks, and the text before the position on its line.

use serde::{Deserialize, Serialize};

use super::blocks::{Block, PreviousLine, opened_by};
use super::channels::{Channel, Channels};
use super::lines::{SHOWN, begins_line, introduces_example, is_item, is_prose, may_follow, start_of};
use super::marks::{MAX_OPEN, Marks};
use super::tags::{Tag, TagReader};

/// Maximum length of the text of a line that is examined, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// The position of the next character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::fallback) struct Context {
    /// The text of the current line, without calls.
    line: String,
    /// The number of bytes of the line whose marks were read.
    read: usize,
    marks: Marks,
    /// The open blocks, the innermost last.
    blocks: Vec<Block>,
    previous_line: PreviousLine,
    /// The last line with text introduces an example.
    introduced: bool,
    /// The last two characters that are not blanks.
    last: (Option<char>, Option<char>),
    tag: TagReader,
    channels: Channels,
    reasoning: Option<Reasoning>,
    reasoning_ended: bool,
    /// Only blanks since the start of the message.
    message_start: bool,
}

/// The start of the current reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Reasoning {
    /// With a mark of this kind.
    Tag(u8),
    /// As a message of the harmony format, which ends at the next message.
    Message,
    /// As a message of the harmony format without its special tokens.
    Channel,
}

/// The forms that a model may begin at a position. Other forms there are only shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::fallback) struct Allowed {
    /// Forms that must begin a line.
    pub(in crate::fallback) line: bool,
    /// Forms that begin with a control token.
    pub(in crate::fallback) token: bool,
}

impl Context {
    pub(in crate::fallback) fn new() -> Self {
        Self {
            line: String::new(),
            read: 0,
            marks: Marks::default(),
            blocks: Vec::new(),
            previous_line: PreviousLine::Empty,
            introduced: false,
            last: (None, None),
            tag: TagReader::new(),
            channels: Channels::new(),
            reasoning: None,
            reasoning_ended: false,
            message_start: true,
        }
    }

    /// Whether the text from here on is searched for forms: not in code or in reasoning, where nothing but the end of that
    /// part is read.
    pub(in crate::fallback) fn reads_forms(&mut self, ch: char) -> bool {
        match self.reasoning {
            // Only the word that ends the reasoning may begin here.
            Some(Reasoning::Channel) => self.may_begin_channel(ch),
            Some(Reasoning::Tag(_) | Reasoning::Message) => false,
            None => {
                self.leave_indented();
                self.read_marks(false);
                !self.marks.is_code() && !self.is_literal()
            }
        }
    }

    /// Returns which forms may begin here.
    pub(in crate::fallback) fn allowed(&mut self) -> Allowed {
        self.read_marks(false);
        let is_open = !self.blocks.is_empty() || self.marks.is_quoted() || self.introduced;
        let line = !is_open && begins_line(&self.line);
        let follows = || {
            !is_open && !self.marks.is_enclosed() && may_follow(&self.line) && !introduces_example(&self.line)
        };
        Allowed { line, token: line || follows() }
    }

    /// Whether only blanks and marks that enclose nothing precede the position on its line.
    pub(in crate::fallback) fn begins_line(&self) -> bool {
        begins_line(&self.line)
    }

    /// Whether only blanks precede the position in its message.
    pub(in crate::fallback) fn at_message_start(&self) -> bool {
        self.message_start && begins_line(&self.line)
    }

    /// Whether `ch` may begin a channel word inside the text.
    pub(in crate::fallback) fn may_begin_channel(&self, ch: char) -> bool {
        self.channels.is_stripped() && ch == 'a'
    }

    /// Whether the position is in the model's reasoning.
    pub(in crate::fallback) fn is_reasoning(&self) -> bool {
        self.reasoning.is_some()
    }

    /// Whether the current position is inside JSON.
    pub(in crate::fallback) fn is_inside_json(&self) -> bool {
        matches!(self.last, (_, Some('[' | '{' | '(')) | (Some('}' | ']'), Some(',')))
    }

    /// Whether [`Context::skip`] may be used.
    pub(in crate::fallback) fn may_skip(&self) -> bool {
        let is_ordinary = self.reasoning.is_some() || self.is_literal() || !begins_line(&self.line);
        is_ordinary && self.tag.is_idle() && !self.channels.is_reading()
    }

    /// Reads characters that [`is_plain`] accepts. Requires [`Context::may_skip`].
    pub(in crate::fallback) fn skip(&mut self, run: &str) {
        self.message_start &= run.trim_start().is_empty();
        if self.reasoning.is_none() {
            self.add(run);
        }
    }

    /// Whether a `</think>` without its `<think>` was read since the previous use of this function. If so, all text
    /// before it was reasoning.
    pub(in crate::fallback) fn take_reasoning_ended(&mut self) -> bool {
        std::mem::take(&mut self.reasoning_ended)
    }

    /// Continues after a call that was made and removed from the text. `line`: with the end of its line.
    pub(in crate::fallback) fn call_made(&mut self, line: bool) {
        self.begin_line();
        if line {
            self.previous_line = PreviousLine::Empty;
        }
        self.introduced = false;
        self.last = (None, None);
    }

    /// Continues after a call that is only shown. Marks in its arguments have no meaning. `line`: with the end of its
    /// line.
    pub(in crate::fallback) fn call_shown(&mut self, line: bool) {
        self.message_start = false;
        self.read_marks(true);
        self.add(SHOWN.encode_utf8(&mut [0; 4]));
        self.read = self.line.len();
        if line {
            self.end_line();
        }
    }

    /// Reads one character of plain text.
    pub(in crate::fallback) fn track(&mut self, ch: char) {
        self.message_start &= ch.is_whitespace();
        if let Some(channel) = self.channels.push(ch) {
            self.track_channel(channel);
            return;
        }
        if let Some((tag, length)) = self.tag.push(ch)
            && self.track_tag(tag, length)
        {
            return;
        }
        if self.reasoning.is_some() {
            return;
        }
        if ch == '\n' {
            self.end_line();
        } else {
            self.add(ch.encode_utf8(&mut [0; 4]));
        }
    }

    /// Handles a mark, of which the first `length` bytes were added to the line. Returns whether it was a mark.
    fn track_tag(&mut self, tag: Tag, length: usize) -> bool {
        if self.reasoning.is_none() && self.is_in_code() {
            return false;
        }
        match tag {
            Tag::Think(kind) if self.reasoning.is_none() => {
                self.begin_reasoning(Reasoning::Tag(kind), length);
            }
            Tag::Analysis if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Message, length),
            Tag::Think(_) | Tag::Analysis => {}
            // The closing mark of another kind is only mentioned.
            Tag::EndThink(kind) if self.reasoning.is_some_and(|open| open != Reasoning::Tag(kind)) => {}
            Tag::EndThink(_) => {
                if self.reasoning.is_none() {
                    self.reasoning_ended = true;
                    self.blocks.clear();
                    self.marks = Marks::default();
                    self.line.clear();
                    self.read = 0;
                }
                self.end_reasoning();
            }
            Tag::EndMessage if self.reasoning == Some(Reasoning::Message) => self.end_reasoning(),
            Tag::EndMessage => {
                self.message_start = self.reasoning.is_none();
                return false;
            }
        }
        true
    }

    fn track_channel(&mut self, channel: Channel) {
        match channel {
            Channel::Reasoning if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Channel, 0),
            Channel::Visible if self.reasoning == Some(Reasoning::Channel) => self.end_reasoning(),
            Channel::Reasoning | Channel::Visible => {}
        }
    }

    fn begin_reasoning(&mut self, reasoning: Reasoning, length: usize) {
        self.line.truncate(self.line.len().saturating_sub(length));
        self.reasoning = Some(reasoning);
    }

    /// Ends the reasoning. A message begins, unless the reasoning is quoted or in a block.
    fn end_reasoning(&mut self) {
        self.reasoning = None;
        self.read_marks(false);
        let is_open = !self.blocks.is_empty() || self.marks.is_quoted() || self.marks.is_enclosed();
        if is_open || !(begins_line(&self.line) || is_prose(&self.line)) {
            return;
        }
        self.marks.end_paragraph();
        self.begin_line();
        self.introduced = false;
        self.message_start = true;
    }

    /// Whether the position is in a block in which only its end is read.
    fn is_literal(&self) -> bool {
        match self.blocks.last() {
            Some(Block::Indented) => self.line.starts_with([' ', '\t']),
            Some(block) => block.is_literal(),
            None => false,
        }
    }

    fn is_in_code(&mut self) -> bool {
        self.read_marks(false);
        let opens = |line| matches!(opened_by(line, PreviousLine::Text), Some((Block::Fence(..), _)));
        self.marks.is_code() || self.is_literal() || opens(&self.line)
    }

    fn add(&mut self, text: &str) {
        let mut ends = text.chars().rev().filter(|ch| !ch.is_whitespace());
        if let Some(last) = ends.next() {
            self.last = (ends.next().or(self.last.1), Some(last));
        }
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line.push_str(start_of(text, room));
    }

    /// Reads the marks of the line so far.
    fn read_marks(&mut self, is_complete: bool) {
        let has_lines = self.blocks.last().is_some_and(|block| block.has_lines() || *block == Block::Message);
        if self.read < self.line.len() && !has_lines {
            self.read = self.marks.read(&self.line, self.read, is_complete, &mut self.blocks);
        }
    }

    /// Ends an indented block, and the elements of a list item, if the current line, which is not empty, is not part of
    /// it.
    fn leave_indented(&mut self) {
        if self.line.starts_with([' ', '\t']) {
            return;
        }
        if self.blocks.last() == Some(&Block::Indented) {
            self.blocks.pop();
        }
        if self.previous_line == PreviousLine::Empty || is_item(&self.line) {
            let is_element = |block: &&Block| matches!(block, Block::Element { .. });
            let elements = self.blocks.iter().rev().take_while(is_element);
            let in_item = elements.enumerate().filter(|(_, block)| block.is_in_item());
            let ended = in_item.last().map_or(0, |(at, _)| at + 1);
            self.blocks.truncate(self.blocks.len() - ended);
        }
    }

    fn end_line(&mut self) {
        if !self.line.trim().is_empty() {
            self.leave_indented();
        }
        let is_mark = matches!(self.blocks.last(), Some(Block::Mark(_)));
        if let Some(block) = self.blocks.last().filter(|block| block.has_lines()) {
            if block.ends_with(&self.line, self.previous_line) {
                self.blocks.pop();
            }
            self.previous_line = PreviousLine::of(&self.line);
        } else if let Some((block, kind)) =
            opened_by(&self.line, self.previous_line).filter(|_| !is_mark && self.blocks.len() < MAX_OPEN)
        {
            self.introduced = introduces_example(&self.line);
            self.marks.end_paragraph();
            self.blocks.push(block);
            self.previous_line = kind;
        } else {
            self.read_marks(true);
            let ends_with_tag = self.marks.end_line(&self.line, &mut self.blocks);
            self.previous_line = PreviousLine::of(&self.line);
            if !self.line.trim_matches(|ch: char| ch.is_whitespace() || ch == SHOWN).is_empty() {
                // Calls directly after one that is only shown are shown, too.
                let is_shown = self.line.trim_end().ends_with(SHOWN);
                self.introduced = introduces_example(&self.line) || ends_with_tag || is_shown;
            }
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.marks.begin_line();
        self.line.clear();
        self.read = 0;
    }
}

/// Splits a text into the model's reasoning and the rest, without the marks that open the reasoning.
pub(in crate::fallback) fn split_reasoning(text: &str) -> (String, String) {
    let mut context = Context::new();
    let (mut reasoning, mut rest) = (String::new(), String::new());
    for ch in text.chars() {
        let was_reasoning = context.is_reasoning();
        context.track(ch);
        if context.take_reasoning_ended() {
            reasoning.push_str(&std::mem::take(&mut rest));
        } else if was_reasoning || context.is_reasoning() {
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
pub(in crate::fallback) fn is_plain(byte: u8) -> bool {
    // The last byte begins `◁`.
    !matches!(byte, b'\n' | b'<' | b'>' | b'[' | b']' | 0xe2)
}
