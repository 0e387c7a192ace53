//! The files read by one command or one generation, and other sources of text.

use std::sync::{Arc, OnceLock};

use super::line_index::{LineColumn, LineIndex};
use super::span::Span;

/// Index of a source in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

impl SourceId {
    /// Returns the position of the source in its table.
    pub fn index(self) -> usize {
        self.0 as usize
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

/// A source: its display name and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name shown in messages: a path as the user would write it.
    pub name: String,
    /// The complete text.
    pub text: Arc<str>,
    /// Built on first use: most files have no findings.
    lines: OnceLock<LineIndex>,
    /// The places in a source that is not a file, in source order.
    places: Option<Arc<[Place]>>,
}

/// A place in a list of tools that is not a file, such as what a server sent: lines say nothing to its reader.
#[derive(Debug, Clone)]
pub struct Place {
    /// The place with its key.
    pub span: Span,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// JSON pointer in the tool; empty for the tool.
    pub pointer: String,
}

impl SourceFile {
    /// Creates a source called `name`.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into(), lines: OnceLock::new(), places: None }
    }

    /// Sets that the source is not a file, and its places, in source order.
    #[must_use]
    pub fn with_places(self, places: Vec<Place>) -> Self {
        Self { places: Some(places.into()), ..self }
    }

    /// Returns whether the source is a file, with lines.
    pub fn is_file(&self) -> bool {
        self.places.is_none()
    }

    /// Returns the innermost place around a span in a source that is not a file.
    pub fn place(&self, span: Span) -> Option<&Place> {
        let places = self.places.as_deref()?;
        let before = places.partition_point(|place| place.span.start <= span.start);
        let mut before = places.get(..before)?.iter().rev();
        before.find(|place| span.end <= place.span.end)
    }

    /// Returns the position of a span: `file:line:column` of its start, or `source: tool#pointer` if it is not in a file.
    pub fn position(&self, span: Span) -> String {
        let name = &self.name;
        if self.is_file() {
            let LineColumn { line, column } = self.line_column(span.start);
            return format!("{name}:{line}:{column}");
        }
        match self.place(span) {
            Some(Place { tool, pointer, .. }) if pointer.is_empty() => format!("{name}: {tool}"),
            Some(Place { tool, pointer, .. }) => format!("{name}: {tool}#{pointer}"),
            None => name.clone(),
        }
    }

    fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.text))
    }

    /// Returns the line and column of a byte offset.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        self.lines().line_column(&self.text, offset as usize)
    }

    /// Returns the byte offset at which the line of a byte offset starts.
    pub fn line_start(&self, offset: u32) -> usize {
        self.lines().line_start(offset as usize)
    }

    /// Returns the text of a line (from 1) without its line end.
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
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source and returns its ID.
    pub fn add(&mut self, file: SourceFile) -> SourceId {
        let id = SourceId(self.files.len() as u32);
        self.files.push(file);
        id
    }

    /// Returns the ID that the `ahead`-th next source will get; 0 is the next one.
    pub fn id_ahead(&self, ahead: usize) -> SourceId {
        SourceId((self.files.len() + ahead) as u32)
    }

    /// Replaces a source. Ignores an ID from another table.
    pub fn replace(&mut self, id: SourceId, file: SourceFile) {
        if let Some(known) = self.files.get_mut(id.index()) {
            *known = file;
        }
    }

    /// Returns the source with this ID; `None` for an ID from another table.
    pub fn get(&self, id: SourceId) -> Option<&SourceFile> {
        self.files.get(id.index())
    }

    /// Returns the [position](SourceFile::position) of a location.
    pub fn describe(&self, location: Location) -> String {
        let file = self.get(location.source);
        file.map_or_else(|| String::from("unknown source"), |file| file.position(location.span))
    }

    /// Iterates over the sources with their IDs, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        self.files.iter().enumerate().map(|(index, file)| (SourceId(index as u32), file))
    }
}
