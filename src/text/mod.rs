//! Source text, places in it, and how a place is told to a person.
//!
//! A [`Span`] is a half-open range of bytes of one source; a [`LineIndex`] turns it into the line and column
//! (1-based, columns in characters) that every message shows.

mod line_index;
mod removal;
mod source;

pub use line_index::{LineColumn, LineIndex};
pub use removal::removal;
pub use source::{SourceFile, SourceId, Sources};

use serde::{Deserialize, Serialize};

/// A half-open range of bytes, `start..end`, in one source of at most 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span `start..end`, in bytes.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// The empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it holds no byte.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The span as an index range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The text it covers, or `""` where it does not lie on character boundaries of `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }
}

/// A span of a named source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// Which source.
    pub source: SourceId,
    /// Where in it.
    pub span: Span,
}

/// Whether a terminal obeys `character` rather than showing it: a control character, or one that turns the direction
/// of what follows, by which text can be made to look like another.
pub fn is_control(character: char) -> bool {
    let turns = matches!(character, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// `text` with control characters written as escapes, line ends among them.
pub fn one_line(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// `1 tool`, `2 tools`.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A value and the place it was written at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}
