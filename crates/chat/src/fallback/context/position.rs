//! Tracks the position in a Markdown text: in code, in a quotation, in the model's reasoning. `enclosures` adds
//! elements, environments and messages of other roles, `sentence` adds sentences about a call.
//!
//! A call in such a position is mentioned, not made. If Markdown needs the rest of the text for a decision, the
//! position counts as quoted: an open backtick or quotation mark applies up to the end of its paragraph.

use serde::{Deserialize, Serialize};

use super::channels::{Channel, Channels};
use super::enclosures::{Enclosures, is_wrapper};
use super::marks::{Mark, MarkReader};
use super::quotations::Quotations;
use super::sentence::{Sentence, goes_on};
use super::tags::{Tag, TagReader};
use crate::fallback::escapes::{Decoded, EntityReader};

/// The position of the next character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent facts of a position, not a state machine
pub(in crate::fallback) struct Context {
    /// Only blanks since the start of the line.
    line_start: bool,
    /// Width of those blanks, in columns.
    indent: u32,
    /// Columns read of a line that may begin with list markers.
    column: u32,
    list: ListItem,
    block_quote: bool,
    /// The line is indented like a code block.
    indented: bool,
    /// The fence of the code block around the position: its character and length.
    fence: Option<(char, u32)>,
    /// The column of the fence, in a list item.
    fence_column: u32,
    /// The fence whose info string is being read.
    opening: Option<(char, u32)>,
    /// The number of fence characters at the start of this line in a code block. `None` if the line is not a closing
    /// fence.
    closing: Option<u32>,
    /// The fence characters just read: the character, the count, and whether they began the line.
    run: Option<(char, u32, bool)>,
    /// The number of backticks that opened the inline code around the position.
    inline: Option<u32>,
    quotations: Quotations,
    reasoning: Option<Reasoning>,
    /// The reasoning is quoted. The quotation goes on after it.
    reasoning_quoted: bool,
    tag: TagReader,
    entities: EntityReader,
    marks: MarkReader,
    /// Only blanks, list markers and marks precede the current mark on its line.
    mark_begins_line: bool,
    /// The current mark is inside a sentence.
    mark_in_sentence: bool,
    /// The last marker of another role, if it may be only mentioned.
    role: Option<PendingRole>,
    enclosures: Enclosures,
    channels: Channels,
    /// The last character, with character references decoded.
    previous: Option<char>,
    sentence: Sentence,
    /// Only blanks since the start of the message.
    message_start: bool,
    reasoning_ended: bool,
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

/// The position of a marker of another role that may be only mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum PendingRole {
    /// Inside a sentence: a mention if the sentence goes on. `gap`: blanks follow the marker.
    InSentence { gap: bool },
    /// In a sentence that goes on: a mention unless a call precedes the end of the sentence.
    Mentioned,
    /// In a quotation: a mention if the quotation is closed in its paragraph.
    InQuotation,
}

/// The part of a list marker read on this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ListItem {
    No,
    /// Digits.
    Number,
    /// A bullet, or a number with its delimiter.
    Bullet,
    /// Blanks after the marker. The next character begins the item.
    Content,
}

impl Context {
    pub(in crate::fallback) fn new() -> Self {
        Self {
            line_start: true,
            indent: 0,
            column: 0,
            list: ListItem::No,
            block_quote: false,
            indented: false,
            fence: None,
            fence_column: 0,
            opening: None,
            closing: Some(0),
            run: None,
            inline: None,
            quotations: Quotations::new(),
            reasoning: None,
            reasoning_quoted: false,
            tag: TagReader::new(),
            entities: EntityReader::default(),
            marks: MarkReader::new(),
            mark_begins_line: true,
            mark_in_sentence: false,
            role: None,
            enclosures: Enclosures::new(),
            channels: Channels::new(),
            previous: None,
            sentence: Sentence::new(),
            message_start: true,
            reasoning_ended: false,
        }
    }

    /// Whether a call that begins here with `ch` is outside code, quotations and reasoning.
    pub(in crate::fallback) fn allows_call(&mut self, ch: char) -> bool {
        self.end_run(ch);
        self.quotations.resolve(ch, &mut self.enclosures);
        if self.reasoning == Some(Reasoning::Channel) {
            // Only the word that ends the reasoning may begin here.
            return self.may_begin_channel(ch) && !self.reasoning_quoted;
        }
        !(self.reasoning.is_some()
            || self.fence.is_some()
            || self.opening.is_some()
            || self.inline.is_some()
            || self.block_quote
            || self.indented
            || (self.line_start && self.indent >= 4)
            || self.quotations.is_open()
            || matches!(self.previous, Some('\'' | '‘' | '`')))
    }

    /// Whether a call here is enclosed, regardless of what follows.
    pub(in crate::fallback) fn is_enclosed(&self) -> bool {
        self.enclosures.holds_call() || self.role.is_some() || self.marks.is_in_value()
    }

    /// Begins a form that may be a call.
    pub(in crate::fallback) fn begin_form(&mut self) {
        self.enclosures.begin_form();
    }

    /// Counts a call.
    pub(in crate::fallback) fn call_made(&mut self) {
        self.enclosures.call_made();
    }

    /// Counts the current form as a malformed call.
    pub(in crate::fallback) fn call_broken(&mut self) {
        self.enclosures.call_broken();
    }

    /// Returns the first call that is quoted by the enclosures closed since the previous use of this function, if any.
    pub(in crate::fallback) fn take_enclosed(&mut self) -> Option<u32> {
        self.enclosures.take_enclosed()
    }

    /// Whether only blanks precede the position in its message.
    pub(in crate::fallback) fn at_message_start(&self) -> bool {
        self.message_start && self.at_line_start()
    }

    /// Whether `ch` may begin a channel word inside the text.
    pub(in crate::fallback) fn may_begin_channel(&self, ch: char) -> bool {
        self.channels.is_stripped() && ch == 'a'
    }

    /// Whether the position is in the model's reasoning.
    pub(in crate::fallback) fn is_reasoning(&self) -> bool {
        self.reasoning.is_some()
    }

    /// Returns the current sentence.
    pub(in crate::fallback) fn sentence(&self) -> &Sentence {
        &self.sentence
    }

    /// Records that the last item is a call that is only shown.
    pub(in crate::fallback) fn mention(&mut self) {
        self.sentence.mention();
    }

    /// Whether [`Context::skip`] may be used.
    pub(in crate::fallback) fn may_skip(&self) -> bool {
        self.tag.is_idle()
            && self.marks.is_idle()
            && self.entities.is_idle()
            && !self.channels.is_reading()
            && self.quotations.is_idle()
            && self.role.is_none()
            && if self.reasoning.is_some() {
                true
            } else if self.fence.is_some() {
                self.closing.is_none()
            } else {
                !self.line_start
                    && self.list == ListItem::No
                    && self.run.is_none()
                    && self.opening.is_none()
                    && !self.enclosures.is_watching()
            }
    }

    /// Reads characters that [`is_plain`] accepts. Requires [`Context::may_skip`].
    pub(in crate::fallback) fn skip(&mut self, run: &str) {
        self.previous = run.chars().next_back().or(self.previous);
        self.sentence.take(run);
        self.message_start &= run.trim_start().is_empty();
        if !self.is_in_code() {
            self.marks.skip(run);
        }
    }

    /// Whether only blanks precede the position on its line, and they are fewer than four columns wide.
    pub(in crate::fallback) fn at_line_start(&self) -> bool {
        self.line_start && self.indent < 4
    }

    /// Whether a `</think>` without its `<think>` was read since the previous use of this function. If so, all text
    /// before it was reasoning.
    pub(in crate::fallback) fn take_reasoning_ended(&mut self) -> bool {
        std::mem::take(&mut self.reasoning_ended)
    }

    /// Continues after a call that was removed from the text together with the end of its line.
    pub(in crate::fallback) fn line_removed(&mut self) {
        self.call_removed();
        self.begin_line();
        self.sentence.begin(false);
    }

    /// Continues after a call that was removed from the middle of a line.
    pub(in crate::fallback) fn inline_removed(&mut self) {
        self.call_removed();
        self.line_start = false;
        self.list = ListItem::No;
        self.previous = None;
        self.sentence.begin(true);
    }

    /// Reads one character of plain text.
    pub(in crate::fallback) fn track(&mut self, ch: char) {
        self.end_run(ch);
        let in_sentence = self.sentence.is_open();
        self.sentence.take(ch.encode_utf8(&mut [0; 4]));
        self.message_start &= ch.is_whitespace();
        let is_code = self.is_in_code();
        if let Some(channel) = self.channels.push(ch) {
            self.track_channel(channel);
        } else if !self.track_tags(ch, in_sentence) && self.reasoning.is_none() {
            if ch == '\n' {
                self.end_line();
            } else if self.fence.is_some() {
                self.track_fence(ch);
            } else {
                self.track_text(ch);
            }
        }
        if is_code {
            self.previous = Some(ch);
        }
    }

    /// Ends the text.
    pub(in crate::fallback) fn finish(&mut self) {
        self.quotations.resolve('\n', &mut self.enclosures);
    }

    fn track_text(&mut self, ch: char) {
        if self.line_start || self.list != ListItem::No {
            self.column += 1;
        }
        if self.line_start {
            match ch {
                ' ' => self.indent += 1,
                '\t' => self.indent += 4,
                '\r' => {}
                _ => {
                    let fits = self.indent < 4;
                    self.line_start = false;
                    self.indented = !fits;
                    self.list = ListItem::No;
                    self.begin_block(ch, fits, 0);
                }
            }
            return;
        }
        if self.list == ListItem::Content && !matches!(ch, ' ' | '\t') {
            self.list = ListItem::No;
            self.begin_block(ch, true, self.column);
            return;
        }
        self.list = match (self.list, ch) {
            (ListItem::Number, _) if ch.is_ascii_digit() => ListItem::Number,
            (ListItem::Number, '.' | ')') => ListItem::Bullet,
            (ListItem::Bullet | ListItem::Content, ' ' | '\t') => ListItem::Content,
            _ => ListItem::No,
        };
        self.track_mark(ch);
    }

    /// Reads the first character of a line or of a list item.
    fn begin_block(&mut self, ch: char, fits: bool, column: u32) {
        match ch {
            '>' => self.block_quote |= fits,
            '`' | '~' => {
                self.run = Some((ch, 1, fits));
                self.fence_column = column;
                return;
            }
            '-' | '*' | '+' if fits => self.list = ListItem::Bullet,
            _ if fits && ch.is_ascii_digit() => self.list = ListItem::Number,
            _ => {}
        }
        self.track_mark(ch);
    }

    fn track_mark(&mut self, ch: char) {
        match ch {
            '`' => {
                // An info string cannot contain a backtick: the line begins with inline code.
                if let Some(('`', length)) = self.opening.take_if(|(fence, _)| *fence == '`') {
                    self.inline = Some(length);
                }
                self.run = match self.run {
                    Some(('`', length, start)) => Some(('`', length + 1, start)),
                    _ => Some(('`', 1, false)),
                };
            }
            '~' => {
                if let Some(('~', length, start)) = self.run {
                    self.run = Some(('~', length + 1, start));
                }
            }
            _ => {}
        }
    }

    fn track_fence(&mut self, ch: char) {
        let Some((fence, length)) = self.fence else { return };
        let Some(count) = self.closing else { return };
        self.closing = match ch {
            ' ' | '\t' | '\r' if count == 0 || count >= length => {
                self.indent += u32::from(count == 0);
                Some(count).filter(|_| self.indent < self.fence_column + 4)
            }
            _ if ch == fence && self.previous.is_none_or(|before| count == 0 || before == fence) => {
                Some(count + 1)
            }
            _ => None,
        };
    }

    /// Tracks the marks around reasoning. Returns whether `ch` completed one.
    fn track_tags(&mut self, ch: char, in_sentence: bool) -> bool {
        if self.is_in_code() {
            self.tag.clear();
            self.clear_marks();
            if self.fence.is_none() {
                self.enclosures.text(ch);
            }
            return false;
        }
        let tag = self.tag.push(ch);
        self.track_references(ch, in_sentence, tag.is_some());
        let Some(tag) = tag else { return false };
        match tag {
            Tag::Think(kind) if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Tag(kind)),
            Tag::Analysis if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Message),
            Tag::Think(_) | Tag::Analysis => {}
            // The closing mark of another kind is only mentioned.
            Tag::EndThink(kind) if self.reasoning.is_some_and(|open| open != Reasoning::Tag(kind)) => {}
            Tag::EndThink(_) => {
                if self.reasoning.is_none() {
                    self.reasoning_ended = true;
                    self.enclosures.end_reasoning();
                    self.role = None;
                }
                self.end_reasoning();
            }
            Tag::EndMessage if self.reasoning == Some(Reasoning::Message) => self.end_reasoning(),
            Tag::EndMessage => {
                self.message_start = self.reasoning.is_none();
                return false;
            }
        }
        // Such a mark is not part of the Markdown line.
        true
    }

    fn is_in_code(&self) -> bool {
        self.fence.is_some() || self.opening.is_some() || self.inline.is_some()
    }

    fn clear_marks(&mut self) {
        self.marks.clear();
        self.entities = EntityReader::default();
    }

    /// Discards incomplete marks of a removed call. A pending role marker then quotes everything that follows.
    fn call_removed(&mut self) {
        self.clear_marks();
        if self.role.take().is_some() {
            self.enclosures.quote_rest();
        }
    }

    /// Decodes character references. `is_tag`: the character completed a mark of `tags`.
    fn track_references(&mut self, ch: char, in_sentence: bool, is_tag: bool) {
        let was_idle = self.marks.is_idle() && self.entities.is_idle();
        let begins_line = self.enclosures.is_line_of_marks();
        match self.entities.push(ch) {
            Decoded::Nothing => {}
            Decoded::Plain(ch) => self.track_decoded(ch, false, is_tag),
            Decoded::Referred(ch) => self.track_decoded(ch, true, is_tag),
            Decoded::Text(text) => text.chars().for_each(|ch| self.track_decoded(ch, false, is_tag)),
        }
        if was_idle && !(self.marks.is_idle() && self.entities.is_idle()) {
            self.mark_begins_line = begins_line;
            self.mark_in_sentence = in_sentence;
        }
    }

    /// Tracks quotations, enclosures and role markers. `escaped`: the character is written as a character reference.
    /// `is_tag`: see [`Context::track_references`].
    fn track_decoded(&mut self, ch: char, escaped: bool, is_tag: bool) {
        let mark = self.marks.push(ch, escaped);
        let previous = self.previous.replace(ch);
        if self.reasoning.is_some() || is_tag {
            return;
        }
        self.resolve_role(ch);
        self.quotations.resolve(ch, &mut self.enclosures);
        let escaped = self.marks.is_escaped();
        match mark {
            Some(Mark::Open(what)) if !escaped && is_wrapper(&what) => {}
            Some(Mark::Open(what)) => self.enclosures.open(what, self.mark_begins_line, escaped),
            Some(Mark::Close(what)) => self.enclosures.close(&what, escaped),
            Some(Mark::ForeignRole) if self.quotations.is_open() => {
                self.role = Some(PendingRole::InQuotation);
            }
            Some(Mark::ForeignRole) if self.mark_in_sentence => {
                self.role = Some(PendingRole::InSentence { gap: false });
            }
            Some(Mark::ForeignRole) => self.enclosures.quote_rest(),
            Some(Mark::Neutral) => {}
            None if self.marks.is_idle() => self.enclosures.text(ch),
            None => {}
        }
        self.quotations.push(ch, previous, &mut self.enclosures);
        if self.role == Some(PendingRole::InQuotation) && !self.quotations.is_open() {
            self.role = None;
        }
    }

    /// Decides whether a role marker in a sentence is only mentioned, given the next character.
    fn resolve_role(&mut self, next: char) {
        let ends_sentence = matches!(next, '.' | '!' | '?' | '\n');
        if self.role == Some(PendingRole::Mentioned) && ends_sentence {
            self.role = None;
        }
        let Some(PendingRole::InSentence { gap }) = &mut self.role else { return };
        match next {
            ' ' | '\t' => *gap = true,
            // The rest of the role's name.
            _ if !*gap && next.is_alphanumeric() => {}
            _ => {
                let is_mention = goes_on(*gap, next);
                if !is_mention {
                    self.enclosures.quote_rest();
                }
                self.role = (is_mention && !ends_sentence).then_some(PendingRole::Mentioned);
            }
        }
    }

    fn track_channel(&mut self, channel: Channel) {
        match channel {
            Channel::Reasoning if self.reasoning.is_none() => self.begin_reasoning(Reasoning::Channel),
            Channel::Visible if self.reasoning == Some(Reasoning::Channel) => self.end_reasoning(),
            Channel::Reasoning | Channel::Visible => {}
        }
    }

    fn begin_reasoning(&mut self, reasoning: Reasoning) {
        self.reasoning = Some(reasoning);
        self.reasoning_quoted =
            self.quotations.is_open() || self.is_enclosed() || self.block_quote || self.indented;
    }

    fn end_reasoning(&mut self) {
        self.reasoning = None;
        if std::mem::take(&mut self.reasoning_quoted) {
            return;
        }
        self.end_paragraph();
        self.begin_line();
        self.sentence.begin(false);
        self.message_start = true;
    }

    /// Ends a run of backticks or tildes, unless `ch` extends it.
    fn end_run(&mut self, ch: char) {
        let Some((fence, length, start)) = self.run.take_if(|(fence, _, _)| *fence != ch) else { return };
        if start && length >= 3 {
            self.inline = None;
            self.opening = Some((fence, length));
        } else if fence == '`' {
            self.inline = match self.inline {
                Some(open) if open == length => None,
                Some(open) => Some(open),
                None => Some(length),
            };
        }
    }

    fn end_line(&mut self) {
        if let Some((_, length)) = self.fence {
            if self.closing.is_some_and(|count| count >= length) {
                self.fence = None;
                self.end_paragraph();
            }
        } else if let Some(opened) = self.opening.take() {
            self.fence = Some(opened);
        } else if self.line_start {
            self.end_paragraph();
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.line_start = true;
        self.indent = 0;
        self.column = 0;
        self.list = ListItem::No;
        self.enclosures.begin_line();
        self.block_quote = false;
        self.indented = false;
        self.closing = Some(0);
        self.run = None;
    }

    fn end_paragraph(&mut self) {
        self.inline = None;
        self.quotations.end_paragraph(&mut self.enclosures);
        if self.role.take().is_some() {
            self.enclosures.quote_rest();
        }
    }
}

/// Whether a byte is plain text after the start of a line, both in Markdown and in forms. For a character of several
/// bytes, pass the first byte.
pub(in crate::fallback) fn is_plain(byte: u8) -> bool {
    // The last three bytes begin `«` and `»`; curly quotation marks, dashes and `◁`; corner brackets and most Japanese
    // characters.
    !matches!(
        byte,
        b'\n' | b'`' | b'~' | b'"' | b'\'' | b'<' | b'>' | b'[' | b'&' | b'\\' | 0xc2 | 0xe2 | 0xe3
    )
}
