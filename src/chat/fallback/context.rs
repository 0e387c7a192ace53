//! Where in a Markdown text the next character stands: in code, in a quotation, in the model's thinking, in a
//! sentence about a call.
//!
//! A call found there is one the model talks about, not one it makes. Where Markdown would need the rest of the
//! text to decide, the answer is the careful one: an open backtick or quotation mark counts until its paragraph
//! ends.

use serde::{Deserialize, Serialize};

use super::tags::{Tag, TagReader};

/// How much of the text before a call is looked at, in bytes.
const RECENT: usize = 48;

/// What stands before a call that is shown, not made. Only what a model that is about to call would not say.
const INTRODUCTIONS: [&str; 12] = [
    "example",
    "examples",
    "for instance",
    "e.g.",
    "such as",
    "looks like",
    "looks like this",
    "look like this",
    "looks as follows",
    "looked like this",
    "written like this",
    "is written as",
];

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
    previous: Option<char>,
    /// The last character on this line that is no blank.
    last: Option<char>,
    /// The end of the text so far.
    recent: String,
    /// What came last was a call that is only shown; its neighbours are, too.
    mentioned: bool,
    reasoning_ended: bool,
}

/// What the model's thinking stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Think {
    Tag,
    /// A message of harmony's, which ends where the next begins.
    Message,
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
            previous: None,
            last: None,
            recent: String::new(),
            mentioned: false,
            reasoning_ended: false,
        }
    }

    /// Whether a call that begins with `ch` here would be the model's own.
    pub(super) fn is_free(&mut self, ch: char) -> bool {
        self.settle(ch);
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

    /// Whether a call here stands in a sentence that may go on after it.
    pub(super) fn is_in_sentence(&self) -> bool {
        self.last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '('))
    }

    /// Whether a call here, after which `next` comes (with blanks between, where `gap`), is shown and not made: it is
    /// part of a sentence or a table, introduced as an example, or stands beside a call that is.
    pub(super) fn is_mention(&self, gap: bool, next: Option<char>) -> bool {
        let goes_on = next.is_some_and(|next| {
            if gap { next.is_lowercase() } else { matches!(next, ',' | '.' | ';' | ':' | '!' | '?' | ')') }
        });
        let in_sentence = match self.last {
            Some('|') => true,
            Some(_) => goes_on && self.is_in_sentence(),
            None => goes_on && gap,
        };
        in_sentence || self.mentioned || self.is_introduced()
    }

    /// A call was shown.
    pub(super) fn mention(&mut self) {
        self.mentioned = true;
    }

    /// Whether what begins here is part of JSON that began before.
    pub(super) fn is_inside_json(&self) -> bool {
        let before = self.tail().trim_end();
        before.ends_with(['[', '{', '('])
            || before.strip_suffix(',').is_some_and(|item| item.trim_end().ends_with(['}', ']']))
    }

    fn is_introduced(&self) -> bool {
        let is_frame =
            |ch: char| ch.is_whitespace() || ch.is_ascii_digit() || matches!(ch, ':' | ',' | '*' | '_' | '-');
        let before = self.tail().trim_end_matches(is_frame);
        INTRODUCTIONS.iter().any(|words| {
            let start = before.len().checked_sub(words.len());
            start.and_then(|start| before.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(words))
        })
    }

    /// Whether a run of characters without meaning of their own may be taken at once; see [`Context::skip`].
    pub(super) fn may_skip(&self) -> bool {
        self.tag.is_idle()
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
        if let Some(last) = run.trim_end().chars().next_back() {
            self.last = Some(last);
            self.mentioned = false;
        }
        self.remember(run);
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
        self.recent.clear();
    }

    /// A call was taken out of the middle of a line.
    pub(super) fn inline_taken(&mut self) {
        self.line_start = false;
        self.previous = None;
        self.last = Some('.');
        self.recent.clear();
    }

    /// Takes one character of plain text.
    pub(super) fn track(&mut self, ch: char) {
        self.settle(ch);
        if !ch.is_whitespace() {
            self.last = Some(ch);
            self.mentioned = false;
        } else if ch == '\n' {
            self.last = None;
        }
        self.remember(ch.encode_utf8(&mut [0; 4]));
        if !self.track_tags(ch) && self.think.is_none() {
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
            Tag::Think if self.think.is_none() => self.begin_thinking(Think::Tag),
            Tag::Analysis if self.think.is_none() => self.begin_thinking(Think::Message),
            Tag::Think | Tag::Analysis => {}
            Tag::EndThink => {
                self.reasoning_ended |= self.think.is_none();
                self.end_thinking();
            }
            Tag::EndMessage if self.think == Some(Think::Message) => self.end_thinking(),
            Tag::EndMessage => return false,
            Tag::Shown | Tag::Block | Tag::EndShown if self.think.is_some() => return false,
            Tag::Shown => self.shown = self.shown.or(Some(Shown::Paragraph)),
            Tag::Block => self.shown = Some(Shown::Everything),
            Tag::EndShown => self.shown = None,
        }
        // What says what the text is begins no line of Markdown, but for what only shows.
        !matches!(tag, Tag::Shown | Tag::Block | Tag::EndShown)
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
        self.last = None;
        self.recent.clear();
    }

    /// The last [`RECENT`] bytes of the text. More may be kept, which depends on how the text was cut.
    fn tail(&self) -> &str {
        end_of(&self.recent)
    }

    fn remember(&mut self, text: &str) {
        if self.recent.len() + text.len() > 4 * RECENT {
            let dropped = self.recent.len() - end_of(&self.recent).len();
            self.recent.drain(..dropped);
        }
        let end = end_of(text);
        if end.len() < text.len() {
            self.recent.clear();
        }
        self.recent.push_str(end);
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

/// The last [`RECENT`] bytes, or as many as are whole characters.
fn end_of(text: &str) -> &str {
    let from = (text.len().saturating_sub(RECENT)..text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
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
    fn a_sentence_goes_through_a_mention() {
        let is_mention = |before: &str, gap, next| {
            let mut context = Context::new();
            before.chars().for_each(|ch| context.track(ch));
            context.is_mention(gap, next)
        };
        for (before, gap, next) in [
            ("You write ", true, Some('t')),
            ("You write ", false, Some('.')),
            ("", true, Some('i')),
            ("For example, ", true, None),
            ("An **Example**:\n\n", false, Some('\n')),
            ("### Example 2\n\n", false, None),
            ("Such as\n- ", false, None),
            ("A call looks like this:\n", false, None),
            ("| form | ", true, Some('|')),
        ] {
            assert!(is_mention(before, gap, next), "{before:?}");
        }
        for (before, gap, next) in [
            ("I look: ", true, Some('t')),
            ("I look. ", true, Some('S')),
            ("I look ", false, None),
            ("I look ", false, Some('\n')),
            ("", false, Some('b')),
            ("", false, Some('.')),
            ("For example, so.\n", false, None),
        ] {
            assert!(!is_mention(before, gap, next), "{before:?}");
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
