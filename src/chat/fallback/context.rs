//! Where in a Markdown text the next character stands: in code, in a quotation, in the model's thinking (`sentence`: in a sentence
//! about a call).
//!
//! A call found there is one the model talks about, not one it makes. Where Markdown would need the rest of the
//! text to decide, the answer is the careful one: an open backtick or quotation mark counts until its paragraph
//! ends.

use serde::{Deserialize, Serialize};

use super::channels::{Channel, Channels};
use super::sentence::Sentence;
use super::tags::{Tag, TagReader};

/// What the text so far says of the place where the next character will stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent facts of a position, not a state machine
pub(super) struct Context {
    /// Only blanks since the line began.
    line_start: bool,
    /// Columns of those blanks.
    indent: u32,
    block_quote: bool,
    /// The line is indented like a code block.
    indented: bool,
    /// A code block: its fence character and the length of its fence.
    fence: Option<(char, u32)>,
    /// The rest of the line is the info string of this fence.
    opening: Option<(char, u32)>,
    /// Fence characters at the start of this line inside a code block; `None` when the line is no closing fence.
    closing: Option<u32>,
    /// Fence characters just read: which, how many, and whether they began the line.
    run: Option<(char, u32, bool)>,
    /// Inside inline code opened by this many backticks.
    inline: Option<u32>,
    quote: bool,
    curly: bool,
    guillemets: bool,
    corners: bool,
    think: Option<Think>,
    /// The thinking itself stands in a quotation, which goes on after it.
    think_quoted: bool,
    shown: Option<Shown>,
    tag: TagReader,
    channels: Channels,
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

/// What is shown, and how far it goes when its end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Shown {
    Paragraph,
    Everything,
}

impl Context {
    pub(super) fn new() -> Self {
        Self {
            line_start: true,
            indent: 0,
            block_quote: false,
            indented: false,
            fence: None,
            opening: None,
            closing: Some(0),
            run: None,
            inline: None,
            quote: false,
            curly: false,
            guillemets: false,
            corners: false,
            think: None,
            think_quoted: false,
            shown: None,
            tag: TagReader::new(),
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
        if self.think == Some(Think::Channel) {
            // Only what ends the thinking.
            return self.may_begin_channel(ch) && !self.think_quoted;
        }
        !(self.think.is_some()
            || self.shown.is_some()
            || self.fence.is_some()
            || self.opening.is_some()
            || self.inline.is_some()
            || self.block_quote
            || self.indented
            || (self.line_start && self.indent >= 4)
            || self.is_quoted()
            || matches!(self.previous, Some('\'' | '‘' | '`')))
    }

    fn is_quoted(&self) -> bool {
        self.quote || self.curly || self.guillemets || self.corners
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
            && !self.channels.is_reading()
            && if self.think.is_some() {
                true
            } else if self.fence.is_some() {
                self.closing.is_none()
            } else {
                !self.line_start && self.run.is_none() && self.opening.is_none()
            }
    }

    /// Takes a run of characters that [`is_plain`] accepts, where [`Context::may_skip`].
    pub(super) fn skip(&mut self, run: &str) {
        self.previous = run.chars().next_back().or(self.previous);
        self.sentence.take(run);
        self.message_start &= run.trim_start().is_empty();
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
        self.begin_line();
        self.sentence.begin(false);
    }

    /// A call was taken out of the middle of a line.
    pub(super) fn inline_taken(&mut self) {
        self.line_start = false;
        self.previous = None;
        self.sentence.begin(true);
    }

    /// Takes one character of plain text.
    pub(super) fn track(&mut self, ch: char) {
        self.settle(ch);
        self.sentence.take(ch.encode_utf8(&mut [0; 4]));
        self.message_start &= ch.is_whitespace();
        if let Some(channel) = self.channels.push(ch) {
            self.track_channel(channel);
        } else if !self.track_tags(ch) && self.think.is_none() {
            if ch == '\n' {
                self.end_line();
            } else if self.fence.is_some() {
                self.track_fence(ch);
            } else {
                self.track_text(ch);
            }
        }
        self.previous = Some(ch);
    }

    fn track_text(&mut self, ch: char) {
        if self.line_start {
            match ch {
                ' ' => self.indent += 1,
                '\t' => self.indent += 4,
                '\r' => {}
                _ => {
                    let fits = self.indent < 4;
                    self.line_start = false;
                    self.indented = !fits;
                    if ch == '>' {
                        self.block_quote = fits;
                    } else if matches!(ch, '`' | '~') {
                        self.run = Some((ch, 1, fits));
                        return;
                    }
                    self.track_mark(ch);
                }
            }
            return;
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
            // After a digit it is an inch mark, unless it closes a quotation.
            '"' if self.inline.is_none() => {
                self.quote = !self.quote && !self.previous.is_some_and(char::is_numeric);
            }
            '“' | '„' if self.inline.is_none() => self.curly = true,
            '”' => self.curly = false,
            '«' if self.inline.is_none() => self.guillemets = true,
            '»' => self.guillemets = false,
            '「' | '『' if self.inline.is_none() => self.corners = true,
            '」' | '』' => self.corners = false,
            _ => {}
        }
    }

    fn track_fence(&mut self, ch: char) {
        let Some((fence, length)) = self.fence else { return };
        let Some(count) = self.closing else { return };
        self.closing = match ch {
            ' ' | '\t' | '\r' if count == 0 || count >= length => {
                self.indent += u32::from(count == 0);
                Some(count).filter(|_| self.indent < 4)
            }
            _ if ch == fence && self.previous.is_none_or(|before| count == 0 || before == fence) => {
                Some(count + 1)
            }
            _ => None,
        };
    }

    /// Follows tags; whether `ch` ended one that says what the text is.
    fn track_tags(&mut self, ch: char) -> bool {
        if self.fence.is_some() || self.opening.is_some() || self.inline.is_some() {
            self.tag.clear();
            return false;
        }
        let Some(tag) = self.tag.push(ch) else { return false };
        match tag {
            Tag::Think(kind) if self.think.is_none() => self.begin_thinking(Think::Tag(kind)),
            Tag::Analysis if self.think.is_none() => self.begin_thinking(Think::Message),
            Tag::Think(_) | Tag::Analysis => {}
            // What ends another kind of thinking is only spoken of.
            Tag::EndThink(kind) if self.think.is_some_and(|think| think != Think::Tag(kind)) => {}
            Tag::EndThink(_) => {
                self.reasoning_ended |= self.think.is_none();
                self.end_thinking();
            }
            Tag::EndMessage if self.think == Some(Think::Message) => self.end_thinking(),
            Tag::EndMessage => {
                self.message_start = self.think.is_none();
                return false;
            }
            Tag::Shown | Tag::Block | Tag::EndShown if self.think.is_some() => return false,
            Tag::Shown => self.shown = self.shown.or(Some(Shown::Paragraph)),
            Tag::Block => self.shown = Some(Shown::Everything),
            Tag::EndShown => self.shown = None,
        }
        // What says what the text is begins no line of Markdown, but for what only shows.
        !matches!(tag, Tag::Shown | Tag::Block | Tag::EndShown)
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
        self.think_quoted = self.is_quoted() || self.shown.is_some() || self.block_quote || self.indented;
    }

    fn end_thinking(&mut self) {
        self.think = None;
        if std::mem::take(&mut self.think_quoted) {
            return;
        }
        self.shown = None;
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
        self.block_quote = false;
        self.indented = false;
        self.closing = Some(0);
        self.run = None;
    }

    fn end_paragraph(&mut self) {
        self.inline = None;
        self.quote = false;
        self.curly = false;
        self.guillemets = false;
        self.corners = false;
        self.shown = self.shown.filter(|shown| *shown == Shown::Everything);
    }
}

/// Whether a byte has no meaning of its own after the start of a line: neither here nor to a form. Of a character
/// of several bytes, the first counts.
pub(super) fn is_plain(byte: u8) -> bool {
    // The last three begin `«` and `»`; curly quotes, dashes and `◁`; corner brackets and most of Japanese.
    !matches!(byte, b'\n' | b'`' | b'~' | b'"' | b'<' | b'>' | b'[' | 0xc2 | 0xe2 | 0xe3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free_after(text: &str) -> bool {
        let mut context = Context::new();
        text.chars().for_each(|ch| context.track(ch));
        context.is_free('<')
    }

    #[test]
    fn free_text_and_what_is_not() {
        for text in [
            "",
            "Hello ",
            "a `b` ",
            "``a ` b`` ",
            "```\ncode\n```\n",
            "~~~py\n`\n~~~~  \n",
            "say \"x\" ",
            "“x” ",
            "a ` b\n\n",
            "> quoted\n",
            "<think>`\"</think>",
            "<think>a\n```\n</think>\n",
            "analysisWe.assistantfinal",
            "analysis of it",
            "analysisWe\n```\n\"assistantfinalWe ",
            "```inline``` ",
            "    code\n",
            "it's ",
            "a 24\" screen ",
            "“x\n\n",
        ] {
            assert!(free_after(text), "{text:?}");
        }
        for text in [
            "a `",
            "a `b\n",
            "``a` ",
            "```\n",
            "```\n```x\n",
            "````\n```\n",
            "```json\n{}\n``",
            "~~~\n```\n",
            "say \"x ",
            "say \"x\n",
            "“x ",
            "„x ",
            "«x ",
            "> ",
            "> a ",
            "    ",
            "\t",
            "    code ",
            "<think>",
            "<think>a\n\nb",
            "<think>a</thinking>",
            "<think>a[/THINK]",
            "<|channel|>analysis<|message|>a</think>",
            "analysisWe",
            "analysisWe\n</think>\n\n",
            "analysisWe.assistantfinal</think>assistantanalysisb",
            "analysisWe.assistantcommentary.f to=assistantcommentary{",
            "<thinking>",
            "'",
            "```js",
        ] {
            assert!(!free_after(text), "{text:?}");
        }
    }

    #[test]
    fn thinking_and_what_is_shown() {
        for text in [
            "[THINK]a[/THINK]",
            "<|channel|>analysis<|message|>a<|end|>",
            "<|channel|>analysis<|message|>a<|start|>assistant",
            "a <code>b</code> ",
            "a <code> element\n\n",
            "<pre>\n\n</pre> ",
            "「a」",
            "◁think▷a◁/think▷",
            "<|end|> ",
        ] {
            assert!(free_after(text), "{text:?}");
        }
        for text in [
            "[THINK]a",
            "<|channel|>analysis<|message|>a",
            "<|channel|>analysis to=functions.f<|message|>",
            "<|START_THINKING|>a\n\nb",
            "a <code>",
            "<pre>\n\n",
            "<example>\n\n",
            "「a",
            "◁think▷a",
            "a <!-- b",
            "he wrote \"<think>a</think>",
            "> <think>a</think> ",
            "<pre><think>a\n</think>",
            "<tool_response>a\n\nb",
            "[TOOL_RESULTS]a",
        ] {
            assert!(!free_after(text), "{text:?}");
        }
    }

    #[test]
    fn a_run_taken_at_once_is_as_good_as_its_characters() {
        for text in [
            "for example, ",
            "it's 24\" wide",
            "Wörter und ",
            "日本語 ",
            "a `code",
            "<think> x",
            "```\nx y\n",
            "e.g.: ",
        ] {
            let (mut one, mut other) = (Context::new(), Context::new());
            text.chars().for_each(|ch| one.track(ch));
            let mut rest = text;
            while let Some(ch) = rest.chars().next() {
                let run = if other.may_skip() {
                    rest.bytes().take_while(|byte| is_plain(*byte)).count()
                } else {
                    0
                };
                if run == 0 {
                    other.track(ch);
                    rest = &rest[ch.len_utf8()..];
                } else {
                    other.skip(&rest[..run]);
                    rest = &rest[run..];
                }
            }
            assert_eq!(one, other, "{text:?}");
        }
    }

    #[test]
    fn a_closing_think_tag_alone_says_that_all_before_was_thinking() {
        let mut context = Context::new();
        "abc</think>".chars().for_each(|ch| context.track(ch));
        assert!(context.take_reasoning_ended());
        assert!(!context.take_reasoning_ended());
        "<think>abc</think>".chars().for_each(|ch| context.track(ch));
        assert!(!context.take_reasoning_ended());
    }
}
