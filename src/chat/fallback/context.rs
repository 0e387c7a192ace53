//! Where in a Markdown text the next character stands: in code, in a quotation, in the model's thinking (`enclosures`: in an
//! element, an environment, another role's message; `sentence`: in a sentence about a call).
//!
//! A call found there is one the model talks about, not one it makes. Where Markdown would need the rest of the
//! text to decide, the answer is the careful one: an open backtick or quotation mark counts until its paragraph
//! ends.

use serde::{Deserialize, Serialize};

use super::channels::{Channel, Channels};
use super::enclosures::{Enclosures, is_wrapper};
use super::entities::{Decoded, EntityReader};
use super::marks::{Mark, MarkReader};
use super::quotations::Quotations;
use super::sentence::{Sentence, goes_on};
use super::tags::{Tag, TagReader};

/// What the text so far says of the place where the next character will stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent facts of a position, not a state machine
pub(super) struct Context {
    /// Only blanks since the line began.
    line_start: bool,
    /// Columns of those blanks.
    indent: u32,
    /// Columns read of a line that may begin with the bullets and numbers of lists.
    column: u32,
    list: ListItem,
    block_quote: bool,
    /// The line is indented like a code block.
    indented: bool,
    /// A code block: its fence character and the length of its fence.
    fence: Option<(char, u32)>,
    /// The column where it began, in a list item.
    fence_column: u32,
    /// The rest of the line is the info string of this fence.
    opening: Option<(char, u32)>,
    /// Fence characters at the start of this line inside a code block; `None` when the line is no closing fence.
    closing: Option<u32>,
    /// Fence characters just read: which, how many, and whether they began the line.
    run: Option<(char, u32, bool)>,
    /// Inside inline code opened by this many backticks.
    inline: Option<u32>,
    quotations: Quotations,
    think: Option<Think>,
    /// The thinking itself stands in a quotation, which goes on after it.
    think_quoted: bool,
    tag: TagReader,
    entities: EntityReader,
    marks: MarkReader,
    /// Only blanks and other marks stood before the mark that is read.
    mark_begins_line: bool,
    /// The mark that is read stands in a sentence.
    mark_in_sentence: bool,
    /// The marker of another role, until it is known whether it is only mentioned.
    role: Option<PendingRole>,
    enclosures: Enclosures,
    channels: Channels,
    /// The last character, with character references decoded.
    previous: Option<char>,
    sentence: Sentence,
    /// Only blanks since what the model says began.
    message_start: bool,
    reasoning_ended: bool,
}

/// What the model's thinking stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Think {
    /// Marks of this kind.
    Tag(u8),
    /// A message of harmony's, which ends where the next begins.
    Message,
    /// The same, where only words are left of harmony's marks.
    Channel,
}

/// The position of a marker of another role that may be only mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum PendingRole {
    /// Inside a sentence: a mention if the sentence goes on. `gap`: blanks follow the marker.
    InSentence { gap: bool },
    /// In a quotation: a mention if the quotation is closed in its paragraph.
    InQuotation,
}

/// How much of a list item's begin was read on this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ListItem {
    No,
    /// Digits.
    Number,
    /// A bullet, or a number with its dot.
    Bullet,
    /// Blanks after that: what comes next begins the item.
    Content,
}

impl Context {
    pub(super) fn new() -> Self {
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
            think: None,
            think_quoted: false,
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

    /// Whether a call that begins with `ch` here would be the model's own.
    pub(super) fn is_free(&mut self, ch: char) -> bool {
        self.settle(ch);
        self.quotations.settle(ch, &mut self.enclosures);
        if self.think == Some(Think::Channel) {
            // Only what ends the thinking.
            return self.may_begin_channel(ch) && !self.think_quoted;
        }
        !(self.think.is_some()
            || self.fence.is_some()
            || self.opening.is_some()
            || self.inline.is_some()
            || self.block_quote
            || self.indented
            || (self.line_start && self.indent >= 4)
            || self.quotations.is_open()
            || matches!(self.previous, Some('\'' | '‘' | '`')))
    }

    /// Whether a call here is quoted by what encloses it, whatever follows.
    pub(super) fn is_enclosed(&self) -> bool {
        self.enclosures.holds_call() || self.role.is_some() || self.marks.is_in_value()
    }

    /// What begins here may be a call.
    pub(super) fn begin_form(&mut self) {
        self.enclosures.begin_form();
    }

    /// A call was made.
    pub(super) fn call_made(&mut self) {
        self.enclosures.call_made();
    }

    /// What last began and might have been a call is one that cannot be read.
    pub(super) fn call_broken(&mut self) {
        self.enclosures.call_broken();
    }

    /// Whether an enclosure was closed, since this was last asked, that calls stand in: from which on.
    pub(super) fn take_enclosed(&mut self) -> Option<u32> {
        self.enclosures.take_enclosed()
    }

    /// Whether only blanks stand before this place in what the model says.
    pub(super) fn at_message_start(&self) -> bool {
        self.message_start && self.at_line_start()
    }

    /// Whether `ch` may begin a word that sticks to the text and says what follows.
    pub(super) fn may_begin_channel(&self, ch: char) -> bool {
        self.channels.is_stripped() && ch == 'a'
    }

    /// Whether the model is thinking here.
    pub(super) fn is_thinking(&self) -> bool {
        self.think.is_some()
    }

    /// What goes on here.
    pub(super) fn sentence(&self) -> &Sentence {
        &self.sentence
    }

    /// A call was shown.
    pub(super) fn mention(&mut self) {
        self.sentence.mention();
    }

    /// Whether a run of characters without meaning of their own may be taken at once; see [`Context::skip`].
    pub(super) fn may_skip(&self) -> bool {
        self.tag.is_idle()
            && self.marks.is_idle()
            && self.entities.is_idle()
            && !self.channels.is_reading()
            && self.quotations.is_idle()
            && self.role.is_none()
            && if self.think.is_some() {
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

    /// Takes a run of characters that [`is_plain`] accepts, where [`Context::may_skip`].
    pub(super) fn skip(&mut self, run: &str) {
        self.previous = run.chars().next_back().or(self.previous);
        self.sentence.take(run);
        self.message_start &= run.trim_start().is_empty();
        if !self.is_in_code() {
            self.marks.skip(run);
        }
    }

    /// Whether only blanks (fewer than four columns) stand before this place on its line.
    pub(super) fn at_line_start(&self) -> bool {
        self.line_start && self.indent < 4
    }

    /// Whether a `</think>` without its `<think>` has come since this was last asked: all before it was thinking.
    pub(super) fn take_reasoning_ended(&mut self) -> bool {
        std::mem::take(&mut self.reasoning_ended)
    }

    /// A call was taken out of the text, and with it the end of its line.
    pub(super) fn line_taken(&mut self) {
        self.cut();
        self.begin_line();
        self.sentence.begin(false);
    }

    /// A call was taken out of the middle of a line.
    pub(super) fn inline_taken(&mut self) {
        self.cut();
        self.line_start = false;
        self.list = ListItem::No;
        self.previous = None;
        self.sentence.begin(true);
    }

    /// Takes one character of plain text.
    pub(super) fn track(&mut self, ch: char) {
        self.settle(ch);
        let in_sentence = self.sentence.is_open();
        self.sentence.take(ch.encode_utf8(&mut [0; 4]));
        self.message_start &= ch.is_whitespace();
        let is_code = self.is_in_code();
        if let Some(channel) = self.channels.push(ch) {
            self.track_channel(channel);
        } else if !self.track_tags(ch, in_sentence) && self.think.is_none() {
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
    pub(super) fn finish(&mut self) {
        self.quotations.settle('\n', &mut self.enclosures);
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

    /// Takes the first character of a line or of a list item on it.
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
                // An info string holds no backtick: the line began with inline code.
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

    /// Follows tags; whether `ch` ended one that says what the text is.
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
            Tag::Think(kind) if self.think.is_none() => self.begin_thinking(Think::Tag(kind)),
            Tag::Analysis if self.think.is_none() => self.begin_thinking(Think::Message),
            Tag::Think(_) | Tag::Analysis => {}
            // What ends another kind of thinking is only spoken of.
            Tag::EndThink(kind) if self.think.is_some_and(|think| think != Think::Tag(kind)) => {}
            Tag::EndThink(_) => {
                if self.think.is_none() {
                    self.reasoning_ended = true;
                    self.enclosures.end_reasoning();
                    self.role = None;
                }
                self.end_thinking();
            }
            Tag::EndMessage if self.think == Some(Think::Message) => self.end_thinking(),
            Tag::EndMessage => {
                self.message_start = self.think.is_none();
                return false;
            }
        }
        // What says what the text is begins no line of Markdown.
        true
    }

    fn is_in_code(&self) -> bool {
        self.fence.is_some() || self.opening.is_some() || self.inline.is_some()
    }

    fn clear_marks(&mut self) {
        self.marks.clear();
        self.entities = EntityReader::default();
    }

    /// A call was taken out of the text.
    fn cut(&mut self) {
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

    /// Follows quotations and what opens and closes enclosures. `escaped`: the character was written as a reference.
    fn track_decoded(&mut self, ch: char, escaped: bool, is_tag: bool) {
        let mark = self.marks.push(ch, escaped);
        let previous = self.previous.replace(ch);
        if self.think.is_some() || is_tag {
            return;
        }
        self.settle_role(ch);
        self.quotations.settle(ch, &mut self.enclosures);
        let escaped = self.marks.is_escaped();
        match mark {
            Some(Mark::Open(what)) if !escaped && is_wrapper(&what) => {}
            Some(Mark::Open(what)) => self.enclosures.open(what, self.mark_begins_line, escaped),
            Some(Mark::Close(what)) => self.enclosures.close(&what, escaped),
            Some(Mark::ForeignRole) if self.quotations.is_open() => {
                self.role = Some(PendingRole::InQuotation)
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
    fn settle_role(&mut self, next: char) {
        let Some(PendingRole::InSentence { gap }) = &mut self.role else { return };
        match next {
            ' ' | '\t' => *gap = true,
            // The rest of the role's name.
            _ if !*gap && next.is_alphanumeric() => {}
            _ => {
                if !goes_on(*gap, next) {
                    self.enclosures.quote_rest();
                }
                self.role = None;
            }
        }
    }

    fn track_channel(&mut self, channel: Channel) {
        match channel {
            Channel::Thought if self.think.is_none() => self.begin_thinking(Think::Channel),
            Channel::Said if self.think == Some(Think::Channel) => self.end_thinking(),
            Channel::Thought | Channel::Said => {}
        }
    }

    fn begin_thinking(&mut self, think: Think) {
        self.think = Some(think);
        self.think_quoted =
            self.quotations.is_open() || self.is_enclosed() || self.block_quote || self.indented;
    }

    fn end_thinking(&mut self) {
        self.think = None;
        if std::mem::take(&mut self.think_quoted) {
            return;
        }
        self.end_paragraph();
        self.begin_line();
        self.sentence.begin(false);
        self.message_start = true;
    }

    /// Ends a run of backticks or tildes before `ch`, which does not prolong it.
    fn settle(&mut self, ch: char) {
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

/// Whether a byte has no meaning of its own after the start of a line: neither here nor to a form. Of a character
/// of several bytes, the first counts.
pub(super) fn is_plain(byte: u8) -> bool {
    // The last three begin `«` and `»`; curly quotes, dashes and `◁`; corner brackets and most of Japanese.
    !matches!(
        byte,
        b'\n' | b'`' | b'~' | b'"' | b'\'' | b'<' | b'>' | b'[' | b'&' | b'\\' | 0xc2 | 0xe2 | 0xe3
    )
}

#[cfg(test)]
mod tests;
