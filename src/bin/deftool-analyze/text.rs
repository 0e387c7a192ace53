//! Byte offsets, and lines with columns.

use luau_syntax::location::{Location, Position};

/// The lines of a text.
pub(crate) struct Lines {
    /// The offset of each line.
    starts: Vec<usize>,
    length: usize,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self { starts: std::iter::once(0).chain(breaks).collect(), length: text.len() }
    }

    /// Returns the offset of a position, or the end of the text.
    pub(crate) fn offset(&self, at: Position) -> usize {
        let start = self.starts.get(at.line as usize);
        start.map_or(self.length, |start| (start + at.column as usize).min(self.length))
    }

    /// Returns the line and column of an offset, from 0.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Position::new(number(line), number(offset - start))
    }

    /// Returns the offsets of a location.
    pub(crate) fn span(&self, at: Location) -> (usize, usize) {
        let start = self.offset(at.begin);
        (start, self.offset(at.end).max(start))
    }
}
