//! The files that one command or one generation reads.

use std::sync::{Arc, OnceLock};

use super::{LineColumn, LineIndex, Location};

/// A source by its number in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

/// One source: what it is called in messages, and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name that messages show: a path as the user would write it.
    pub name: String,
    /// The whole text.
    pub text: Arc<str>,
    /// Made when the first line is asked for: most files have no finding.
    lines: OnceLock<LineIndex>,
}

impl SourceFile {
    /// A source called `name`.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into(), lines: OnceLock::new() }
    }

    fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.text))
    }

    /// Line and column of a byte offset.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        self.lines().line_column(&self.text, offset as usize)
    }

    /// The text of a line, from 1, without its line end.
    pub fn line_text(&self, line: usize) -> &str {
        self.lines().line_text(&self.text, line)
    }
}

/// All sources of one load.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a source in and numbers it.
    pub fn add(&mut self, file: SourceFile) -> SourceId {
        let id = SourceId(self.files.len() as u32);
        self.files.push(file);
        id
    }

    /// The number that the `ahead`-th source from now will get: 0 is the next.
    pub fn id_ahead(&self, ahead: usize) -> SourceId {
        SourceId((self.files.len() + ahead) as u32)
    }

    /// The source numbered `id` by this table; `None` for an id of another one.
    pub fn get(&self, id: SourceId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// `file:line:column` of the start of a place.
    pub fn describe(&self, location: Location) -> String {
        match self.get(location.source) {
            Some(file) => {
                let LineColumn { line, column } = file.line_column(location.span.start);
                format!("{}:{line}:{column}", file.name)
            }
            None => String::from("unknown source"),
        }
    }

    /// Every source with its id, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        self.files.iter().enumerate().map(|(index, file)| (SourceId(index as u32), file))
    }
}
