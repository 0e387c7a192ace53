//! The code blocks of Markdown pages.

/// A fenced code block.
#[derive(Debug, Clone, Copy)]
pub struct Block<'p> {
    /// The heading of the second level above the block, or empty.
    pub section: &'p str,
    /// The text after the opening fence.
    pub info: &'p str,
    /// The lines between the fences, with their line ends.
    pub text: &'p str,
    /// The number of the line with the opening fence, from 1.
    pub line: usize,
}

impl Block<'_> {
    /// Returns the first word of `info`.
    pub fn language(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }
}

/// Returns the code blocks of a page, in order. The lines of fences are not indented. A block ends at the fence that began
/// it, so that a longer fence can contain a shorter one.
///
/// # Panics
/// If a block has no end.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open, mut section, mut offset) = (Vec::new(), None, "", 0);
    for (number, line) in (1..).zip(page.split_inclusive('\n')) {
        let start = offset;
        offset += line.len();
        let line = line.trim_end();
        match open {
            Some((fence, block, from)) if line == fence => {
                blocks.push(Block { text: &page[from..start], ..block });
                open = None;
            }
            None if line.starts_with("```") => {
                let info = line.trim_start_matches('`');
                let fence = &line[..line.len() - info.len()];
                open = Some((fence, Block { section, info, text: "", line: number }, offset));
            }
            None => section = line.strip_prefix("## ").unwrap_or(section),
            Some(_) => {}
        }
    }
    if let Some((_, block, _)) = open {
        panic!("line {}: the block has no end", block.line);
    }
    blocks
}

/// Returns the texts of the code blocks in a language.
pub fn blocks_in<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    blocks(page).into_iter().filter(|block| block.language() == language).map(|block| block.text).collect()
}
