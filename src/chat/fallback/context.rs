//! Where in a Markdown text the next character stands: in code, in a quotation, in the model's thinking.
//!
//! A call found there is one the model talks about, not one it makes. Where Markdown would need the rest of the
//! text to decide, the answer is the careful one: an open backtick or quotation mark counts until its paragraph
//! ends.

use serde::{Deserialize, Serialize};

const THINK_TAGS: [(&str, bool); 4] =
    [("<think>", true), ("</think>", false), ("<thinking>", true), ("</thinking>", false)];

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
    think: bool,
    /// What was read of a think tag.
    tag: String,
    previous: Option<char>,
    reasoning_ended: bool,
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
            think: false,
            tag: String::new(),
            previous: None,
            reasoning_ended: false,
        }
    }

    /// Whether a call that begins with `ch` here would be the model's own.
    pub(super) fn is_free(&mut self, ch: char) -> bool {
        self.settle(ch);
        !(self.think
            || self.fence.is_some()
            || self.opening.is_some()
            || self.inline.is_some()
            || self.block_quote
            || self.indented
            || (self.line_start && self.indent >= 4)
            || self.quote
            || self.curly
            || self.guillemets
            || matches!(self.previous, Some('\'' | '‘' | '`')))
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
    }

    /// A call was taken out of the middle of a line.
    pub(super) fn inline_taken(&mut self) {
        self.line_start = false;
        self.previous = None;
    }

    /// Takes one character of plain text.
    pub(super) fn track(&mut self, ch: char) {
        self.settle(ch);
        if !self.track_think(ch) && !self.think {
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

    /// Follows think tags; whether `ch` ended one.
    fn track_think(&mut self, ch: char) -> bool {
        if self.fence.is_some() || self.opening.is_some() || self.inline.is_some() {
            self.tag.clear();
            return false;
        }
        if ch == '<' {
            self.tag.clear();
        } else if self.tag.is_empty() {
            return false;
        }
        self.tag.push(ch);
        if !THINK_TAGS.iter().any(|(tag, _)| tag.starts_with(self.tag.as_str())) {
            self.tag.clear();
            return false;
        }
        let Some(&(_, opens)) = THINK_TAGS.iter().find(|(tag, _)| *tag == self.tag) else { return false };
        self.tag.clear();
        if !opens {
            self.reasoning_ended |= !self.think;
            self.end_paragraph();
            self.begin_line();
        }
        self.think = opens;
        true
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
    }
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
    fn a_closing_think_tag_alone_says_that_all_before_was_thinking() {
        let mut context = Context::new();
        "abc</think>".chars().for_each(|ch| context.track(ch));
        assert!(context.take_reasoning_ended());
        assert!(!context.take_reasoning_ended());
        "<think>abc</think>".chars().for_each(|ch| context.track(ch));
        assert!(!context.take_reasoning_ended());
    }
}
