//! Byte offset → line and column.

/// A place as people and editors count it: both 1-based, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters (Unicode scalar values), from 1.
    pub column: usize,
}

/// The starts of a text's lines. A line ends at LF; a CR before it belongs to the line's end.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Scans `text` once.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1));
        Self { starts }
    }

    /// Line and column of the byte `offset` of `text`, the text this index was made of. An offset past the
    /// end is the end.
    pub fn line_column(&self, text: &str, offset: usize) -> LineColumn {
        let offset = offset.min(text.len());
        let line = self.starts.partition_point(|&start| start as usize <= offset);
        let start = self.starts.get(line.saturating_sub(1)).map_or(0, |&start| start as usize);
        let before = text.as_bytes().get(start..offset).unwrap_or_default();
        // Characters are counted by their first bytes, so that an offset inside one is still a column.
        let column = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
        LineColumn { line, column }
    }

    /// The text of `line` (from 1) without its line end, or `""` where there is none.
    pub fn line_text<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let Some(&start) = line.checked_sub(1).and_then(|index| self.starts.get(index)) else { return "" };
        let end = self.starts.get(line).map_or(text.len(), |&next| next as usize);
        text.get(start as usize..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
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
}
