//! Positions of the protocol: lines from 0, and columns in code units of an encoding.

use gen_lsp_types::{Position, PositionEncodingKind, Range};

use deftool_lang::text::Span;

/// The unit of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    Utf8,
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Returns the best encoding that a client supports: UTF-8 needs no conversion. UTF-16 is always supported.
    pub(crate) fn choose(supported: &[PositionEncodingKind]) -> Self {
        if supported.contains(&PositionEncodingKind::UTF8) {
            Self::Utf8
        } else if !supported.contains(&PositionEncodingKind::UTF16)
            && supported.contains(&PositionEncodingKind::UTF32)
        {
            Self::Utf32
        } else {
            Self::Utf16
        }
    }

    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn length(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Returns the byte offset of a position. A position after the end of a line or of the text is moved to the end, and
    /// a position inside a character to its start.
    pub(crate) fn offset(self, text: &str, position: Position) -> usize {
        let mut start = 0;
        for _ in 0..position.line {
            match text.get(start..).and_then(|rest| rest.find('\n')) {
                Some(newline) => start += newline + 1,
                None => return text.len(),
            }
        }
        let rest = text.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let wanted = position.character as usize;
        let mut column = 0;
        for (at, character) in line.char_indices() {
            column += self.length(character);
            if column > wanted {
                return start + at;
            }
        }
        start + line.len()
    }
}

/// The lines of a text. Finds a position in logarithmic time, even in a long line.
pub(crate) struct Lines {
    /// The offset of each line.
    starts: Vec<usize>,
    /// For each character with fewer code units than bytes: its offset, and the difference of all characters up to it.
    short: Vec<(usize, usize)>,
    length: usize,
}

impl Lines {
    pub(crate) fn of(text: &str, encoding: Encoding) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let (mut short, mut saved) = (Vec::new(), 0);
        if encoding != Encoding::Utf8 {
            for (at, character) in text.char_indices().filter(|(_, character)| !character.is_ascii()) {
                saved += character.len_utf8() - encoding.length(character);
                short.push((at, saved));
            }
        }
        Self { starts, short, length: text.len() }
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.length);
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let column = self.units_before(offset).saturating_sub(self.units_before(start));
        Position { line: line as u32, character: column as u32 }
    }

    /// Returns the number of code units before `offset`.
    fn units_before(&self, offset: usize) -> usize {
        let next = self.short.partition_point(|(at, _)| *at < offset);
        let saved = next.checked_sub(1).and_then(|last| self.short.get(last)).map_or(0, |(_, saved)| *saved);
        offset - saved
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        Range { start: self.position(span.start as usize), end: self.position(span.end as usize) }
    }
}

/// Splits a span of a text into one for each line, without line ends.
pub(crate) fn split(text: &str, span: Span) -> Vec<Span> {
    let mut start = span.start as usize;
    let mut lines = Vec::new();
    for line in span.of(text).split_inclusive('\n') {
        let length = line.trim_end_matches(['\r', '\n']).len();
        lines.push(Span::new(start, start + length));
        start += line.len();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_code_units() {
        let text = "aé日😀x\r\n  y\n";
        for (encoding, column) in [(Encoding::Utf8, 10), (Encoding::Utf16, 5), (Encoding::Utf32, 4)] {
            let lines = Lines::of(text, encoding);
            for (part, line, character) in [("a", 0, 0), ("x", 0, column), ("y", 1, 2)] {
                let (offset, position) = (text.find(part).unwrap(), Position { line, character });
                assert_eq!(lines.position(offset), position);
                assert_eq!(encoding.offset(text, position), offset);
            }
            let end = Position { line: 2, character: 0 };
            assert_eq!((lines.position(text.len()), encoding.offset(text, end)), (end, text.len()));
        }
    }

    #[test]
    fn invalid_positions_are_moved_into_the_text() {
        let text = "a😀b\r\nc";
        for (line, character, offset) in
            [(0, 99, 6), (0, 2, 1), (1, 9, 9), (7, 0, 9), (u32::MAX, u32::MAX, 9)]
        {
            assert_eq!(Encoding::Utf16.offset(text, Position { line, character }), offset);
        }
    }
}
