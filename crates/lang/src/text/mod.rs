//! Source text, spans and positions.
//!
//! A [`Span`] is a half-open byte range in one source. A [`LineIndex`] converts offsets to the 1-based line and column
//! that messages show; columns count characters.

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
    /// Returns the span `start..end`, in bytes.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// Returns the empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// Returns the smallest span that covers both spans.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the span as an index range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the covered part of `text`, or `""` if the span is not on character boundaries of `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }
}

/// A span in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The source.
    pub source: SourceId,
    /// The span in the source.
    pub span: Span,
}

/// Whether a terminal interprets `character` instead of showing it: control characters and the Unicode characters that
/// change the text direction, which can disguise text.
pub fn is_control(character: char) -> bool {
    let turns = matches!(character, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// Returns `text` with control characters, line ends included, written as escapes.
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

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A value with its source span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Span of the value in the source.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Creates a value with its span.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}
