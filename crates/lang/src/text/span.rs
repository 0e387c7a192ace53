//! Byte ranges in one source.

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

    /// Returns the span at another place, `by` bytes later.
    #[must_use]
    pub(crate) fn moved(self, by: i32) -> Self {
        Self { start: self.start.saturating_add_signed(by), end: self.end.saturating_add_signed(by) }
    }

    /// Returns whether `other` is inside the span.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
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
