//! Byte offsets to line and column numbers.

/// A 1-based line and column; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters (Unicode scalar values), from 1.
    pub column: usize,
}

/// The byte offsets at which the lines of a text start. A line ends at LF; a CR before the LF belongs to the line end.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
    /// Number of characters before each block of [`BLOCK`] bytes. Bounds the cost of a lookup in very long lines.
    characters: Vec<u32>,
}

const BLOCK: usize = 1024;

impl LineIndex {
    /// Scans `text` once.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1));
        let mut count = 0;
        let mut characters = Vec::with_capacity(text.len() / BLOCK + 1);
        for block in text.as_bytes().chunks(BLOCK) {
            characters.push(count);
            count += count_characters(block);
        }
        // If the text fills its last block, the end of the text needs one more entry.
        characters.push(count);
        Self { starts, characters }
    }

    /// Returns the line and column of byte `offset` in `text`, the text from which this index was built. An offset past
    /// the end is treated as the end.
    pub fn line_column(&self, text: &str, offset: usize) -> LineColumn {
        let offset = offset.min(text.len());
        let (line, start) = self.line_at(offset);
        let column =
            (self.characters_before(text, offset) - self.characters_before(text, start)) as usize + 1;
        LineColumn { line, column }
    }

    /// Returns the byte offset at which the line of byte `offset` starts.
    pub fn line_start(&self, offset: usize) -> usize {
        self.line_at(offset).1
    }

    /// Returns the line (from 1) of byte `offset`, and the offset at which it starts.
    fn line_at(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start as usize <= offset);
        (line, self.starts.get(line.saturating_sub(1)).map_or(0, |&start| start as usize))
    }

    fn characters_before(&self, text: &str, offset: usize) -> u32 {
        let block = offset / BLOCK;
        let counted = text.as_bytes().get(block * BLOCK..offset).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or(0) + count_characters(counted)
    }

    /// Returns the text of `line` (from 1) without its line end, or `""` if there is no such line.
    pub fn line_text<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let Some(&start) = line.checked_sub(1).and_then(|index| self.starts.get(index)) else { return "" };
        let end = self.starts.get(line).map_or(text.len(), |&next| next as usize);
        text.get(start as usize..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
}

/// Counts the first bytes of characters, so that an offset inside a character still has a column.
fn count_characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "aé日x\r\n  y\n";
        let index = LineIndex::new(text);
        assert_eq!(index.line_column(text, 0), LineColumn { line: 1, column: 1 });
        assert_eq!(index.line_column(text, text.find('x').unwrap()), LineColumn { line: 1, column: 4 });
        assert_eq!(index.line_column(text, text.find('y').unwrap()), LineColumn { line: 2, column: 3 });
        assert_eq!(index.line_column(text, 999), LineColumn { line: 3, column: 1 });
        assert_eq!(index.line_text(text, 1), "aé日x");
        assert_eq!(index.line_text(text, 9), "");
    }

    #[test]
    fn columns_are_correct_in_lines_of_several_blocks() {
        for text in ["é".repeat(2000), "aé日".repeat(1024), "x".repeat(BLOCK), String::new()] {
            let index = LineIndex::new(&text);
            for (count, (at, _)) in text.char_indices().chain([(text.len(), ' ')]).enumerate() {
                assert_eq!(index.line_column(&text, at), LineColumn { line: 1, column: count + 1 });
            }
        }
    }
}
