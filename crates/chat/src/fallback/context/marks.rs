//! Tracks the marks inside lines: elements, quotation marks, inline code, and markers of other roles.
//!
//! A tag opens an element if it begins its line, or if it ends a line after a colon. Any other tag is only mentioned,
//! unless it is closed on its line. The closing tag must begin or end a line.

use serde::{Deserialize, Serialize};

use super::blocks::{Block, Mark};
use super::lines::is_item;
use super::markup::{
    Character, Found, MAX_TAG, TOKENS, after_role, characters, goes_on, is_wrapper, mark, name_of,
    starts_with,
};

/// Maximum number of open elements of a line, and of open blocks. Beyond it, everything that follows is shown.
pub(super) const MAX_OPEN: usize = 128;

/// Void elements of HTML.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Elements whose closing tag is optional in HTML. They contain a call only if nothing else precedes it in them.
const OPTIONAL_END: [&str; 8] = ["p", "li", "dt", "dd", "tr", "td", "th", "option"];

/// Characters directly after a placeholder: `<path>/src`, `<key>=<value>`.
const AFTER_PLACEHOLDER: [char; 5] = ['/', '-', '=', '_', '@'];

/// How far an open quotation reaches if it is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Line,
    /// Beyond the paragraph only if it ends with a colon or with the opening mark.
    Paragraph,
    Text,
}

/// Opening marks, each with its closing marks in several languages. The marks that mean something else in other
/// positions open a quotation only after a blank or an opening mark.
const QUOTATIONS: [(char, &str, Extent); 12] = [
    ('“', "”", Extent::Text),
    ('„', "“”\"", Extent::Text),
    ('«', "»", Extent::Text),
    ('「', "」", Extent::Text),
    ('『', "』", Extent::Text),
    ('"', "\"", Extent::Paragraph),
    ('‘', "’", Extent::Paragraph),
    ('‚', "‘’", Extent::Paragraph),
    ('»', "«»", Extent::Paragraph),
    ('”', "”", Extent::Paragraph),
    ('‹', "›", Extent::Paragraph),
    ('›', "‹›", Extent::Paragraph),
];
const APOSTROPHE: (char, &str, Extent) = ('\'', "'", Extent::Line);

/// The marks of the current line, and what is open across lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks {
    /// The opening mark of the open quotation.
    quotation: Option<char>,
    /// The number of backticks that opened inline code.
    code: Option<usize>,
    /// The tags of this line whose elements are open.
    elements: Vec<Tag>,
    /// The closing tags of this line for elements of earlier lines.
    closing: Vec<Tag>,
    /// The markers of other roles on this line.
    roles: Vec<Tag>,
    /// Something other than list markers and marks was read on this line.
    has_text: bool,
    /// The last character, with references decoded.
    previous: Option<char>,
    /// The last character that is not a blank.
    last: Option<char>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tag {
    name: Mark,
    /// Begins the line.
    begins: bool,
    /// Opens an element also at the end of its line: it follows a colon, or is `BBCode`.
    introduced: bool,
    /// The end of the tag in the line, in bytes.
    end: usize,
}

impl Marks {
    /// Whether a quotation or inline code is open.
    pub(super) fn is_quoted(&self) -> bool {
        self.quotation.is_some() || self.code.is_some()
    }

    pub(super) fn is_code(&self) -> bool {
        self.code.is_some()
    }

    /// Whether an element was opened on this line, or the message of another role.
    pub(super) fn is_enclosed(&self) -> bool {
        !self.elements.is_empty() || !self.roles.is_empty()
    }

    /// Reads `line` from byte `from`. Returns the number of bytes that were read. If the line is not complete, an
    /// incomplete mark at its end is left.
    pub(super) fn read(
        &mut self,
        line: &str,
        from: usize,
        is_complete: bool,
        blocks: &mut Vec<Block>,
    ) -> usize {
        let chars = characters(line.get(from..).unwrap_or_default(), from);
        let start_of = |at: usize| chars.get(at).map_or(line.len(), |next| next.at);
        let mut at = 0;
        while let Some(rest) = chars.get(at..).filter(|rest| !rest.is_empty()) {
            let count = if let Some(Block::Mark(end)) = blocks.last() {
                let count = end.text.chars().count();
                if ends(rest, end, count) {
                    blocks.pop();
                    count
                } else if rest.len() < count && !is_complete {
                    return start_of(at);
                } else {
                    1
                }
            } else if starts_with(rest, "`") {
                self.backticks(rest)
            } else if self.code.is_some() {
                1
            } else {
                let found =
                    if self.may_begin_mark(rest) { mark(rest, !self.has_text) } else { Found::Nothing };
                let may_go_on = match found {
                    Found::Incomplete => true,
                    // The name of a role may follow.
                    Found::Neutral(count) => count == rest.len(),
                    _ => false,
                };
                if may_go_on && !is_complete && rest.len() < MAX_TAG {
                    return start_of(at);
                }
                self.found(found, rest, &|count| start_of(at + count), blocks)
            };
            at += count;
        }
        line.len()
    }

    /// Handles what begins at the first character of `rest`. `start_of` returns the position in the line after so many
    /// characters. Returns the number of characters that were read.
    fn found(
        &mut self,
        found: Found,
        rest: &[Character],
        start_of: &dyn Fn(usize) -> usize,
        blocks: &mut Vec<Block>,
    ) -> usize {
        let Some(first) = rest.first() else { return 1 };
        let (begins, last) = (!self.has_text, self.last);
        let tag = |text: String, count: usize| Tag {
            name: Mark { text, escaped: first.escaped },
            begins,
            introduced: last == Some(':') || first.ch == '[',
            end: start_of(count),
        };
        let count = match found {
            // The tag goes on on the next line.
            Found::Incomplete if begins && name_of(rest).is_some() => {
                self.open(tag(name_of(rest).unwrap_or_default(), rest.len()), first, blocks);
                rest.len()
            }
            Found::Incomplete | Found::Nothing => {
                self.text(first.ch, rest.get(1).map(|next| next.ch));
                return 1;
            }
            Found::Neutral(count) => count,
            Found::Role(count) => {
                self.roles.push(tag(String::new(), count));
                count
            }
            Found::Open(name, count) => {
                self.open(tag(name, count), first, blocks);
                count
            }
            Found::Close(name, count) => {
                self.close(tag(name, count));
                count
            }
            Found::Until(text, count) => {
                blocks.push(Block::Mark(Mark { text, escaped: first.escaped }));
                count
            }
        };
        let last = rest.get(count - 1).map(|last| last.ch);
        (self.previous, self.last) = (last, last);
        count
    }

    /// Ends a line, of which all was read. Returns whether the line ends inside an element whose closing tag is
    /// optional, so that a call on the next line is in that element.
    pub(super) fn end_line(&mut self, line: &str, blocks: &mut Vec<Block>) -> bool {
        if line.trim().is_empty() {
            self.end_paragraph();
        }
        let rest_of = |tag: &Tag| line.get(tag.end..).unwrap_or_default();
        for tag in std::mem::take(&mut self.closing) {
            let ends = rest_of(&tag).trim_start();
            if tag.begins
                || ends.is_empty()
                || ends.starts_with("</")
                || !ends.contains(char::is_alphanumeric)
            {
                close(&tag.name, blocks);
            }
        }
        let mut ends_with_tag = false;
        for tag in std::mem::take(&mut self.elements) {
            let rest = rest_of(&tag);
            let ends = rest.trim_start().is_empty() || rest.trim_start().starts_with('<');
            if OPTIONAL_END.contains(&tag.name.text.as_str()) {
                ends_with_tag |= tag.begins && ends;
            } else if (tag.begins && !goes_on(rest) && !rest.starts_with(AFTER_PLACEHOLDER))
                || (tag.introduced && ends)
            {
                let element = Block::Element { name: tag.name, in_item: is_item(line) };
                blocks.push(if blocks.len() < MAX_OPEN { element } else { Block::Message });
            }
        }
        let roles = std::mem::take(&mut self.roles);
        if roles.iter().any(|tag| tag.begins || !goes_on(after_role(rest_of(tag)))) {
            blocks.push(Block::Message);
        }
        if self.extent() == Some(Extent::Line) {
            self.quotation = None;
        }
        self.begin_line();
        ends_with_tag
    }

    /// Continues at the start of a line, or after a call that was removed from one.
    pub(super) fn begin_line(&mut self) {
        self.has_text = false;
        self.previous = None;
        self.elements.clear();
        self.closing.clear();
        self.roles.clear();
    }

    /// Ends the paragraph.
    pub(super) fn end_paragraph(&mut self) {
        self.code = None;
        let goes_on = self.last == Some(':') || self.last == self.quotation;
        if self.extent() == Some(Extent::Paragraph) && !goes_on {
            self.quotation = None;
        }
    }

    /// Whether a mark may begin here: an opening tag not after a word, as in `Vec<T>`.
    fn may_begin_mark(&self, rest: &[Character]) -> bool {
        let opens_tag = matches!(rest, [first, second, ..]
            if matches!(first.ch, '<' | '[') && !matches!(second.ch, '/' | '|' | '｜' | '!'));
        !(opens_tag && self.previous.is_some_and(char::is_alphanumeric))
    }

    fn extent(&self) -> Option<Extent> {
        let open = self.quotation?;
        QUOTATIONS
            .iter()
            .chain([&APOSTROPHE])
            .find(|(opener, ..)| *opener == open)
            .map(|(.., extent)| *extent)
    }

    /// Opens an element, unless its tag encloses nothing.
    fn open(&mut self, tag: Tag, first: &Character, blocks: &mut Vec<Block>) {
        let name = tag.name.text.as_str();
        let is_neutral = VOID.contains(&name) || TOKENS.contains(&name);
        if is_neutral || (!first.escaped && is_wrapper(first.ch, name)) {
            return;
        }
        if self.elements.len() < MAX_OPEN {
            self.elements.push(tag);
        } else {
            blocks.push(Block::Message);
        }
    }

    /// Closes an element of this line, or an earlier one at the end of this line.
    fn close(&mut self, tag: Tag) {
        match self.elements.iter().rposition(|open| closes(&tag.name, &open.name)) {
            Some(open) => self.elements.truncate(open),
            None => self.closing.push(tag),
        }
    }

    /// Reads a run of backticks. Returns its length.
    fn backticks(&mut self, rest: &[Character]) -> usize {
        let length = rest.iter().take_while(|next| next.ch == '`').count();
        self.code = match self.code {
            Some(open) => Some(open).filter(|open| *open != length),
            None => Some(length),
        };
        self.has_text = true;
        (self.previous, self.last) = (Some('`'), Some('`'));
        length
    }

    /// Reads a character that is not part of a mark, or a quotation mark.
    fn text(&mut self, ch: char, next: Option<char>) {
        let previous = self.previous.replace(ch);
        if ch.is_whitespace() {
            return;
        }
        let is_list_marker = ch.is_ascii_digit() || matches!(ch, '-' | '*' | '+' | '.' | ')' | '#' | '>');
        self.has_text |= !is_list_marker;
        self.last = Some(ch);
        let styles = || QUOTATIONS.iter().chain([&APOSTROPHE]);
        if let Some(open) = self.quotation {
            let is_apostrophe = matches!(ch, '\'' | '’') && next.is_some_and(char::is_alphanumeric);
            let closes = styles().any(|(opener, closers, _)| *opener == open && closers.contains(ch));
            if closes && !is_apostrophe {
                self.quotation = None;
            }
            return;
        }
        let opens = match styles().find(|(opener, ..)| *opener == ch) {
            Some((.., Extent::Text)) => true,
            Some(_) => previous.is_none_or(|before| {
                before.is_whitespace()
                    || "([{=:,;-—–".contains(before)
                    // After markup, or after the prefix of a literal: `f"…"`.
                    || (ch == '"' && !before.is_numeric() && next.is_some_and(begins_text))
            }),
            None => false,
        };
        if opens {
            self.quotation = Some(ch);
        }
    }
}

fn begins_text(ch: char) -> bool {
    ch.is_alphanumeric() || ch == '('
}

/// Whether `rest` begins with the text of `count` characters that ends a block.
fn ends(rest: &[Character], end: &Mark, count: usize) -> bool {
    starts_with(rest, &end.text) && rest.get(count - 1).is_some_and(|last| last.escaped == end.escaped)
}

/// Whether a closing tag closes the element that was opened with `open`.
fn closes(tag: &Mark, open: &Mark) -> bool {
    tag.text == open.text && (open.escaped || !tag.escaped)
}

/// Closes the last open element with this name, and those inside it.
fn close(tag: &Mark, blocks: &mut Vec<Block>) {
    let is_it = |block: &Block| matches!(block, Block::Element { name, .. } if closes(tag, name));
    if let Some(at) = blocks.iter().rposition(is_it).filter(|_| !blocks.contains(&Block::Message)) {
        blocks.truncate(at);
    }
}
