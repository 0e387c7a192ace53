//! Locations in the files of a project.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use deftool_ide::{FileSpan, Project};
use gen_lsp_types as lsp;
use url::Url;

use crate::position::{Encoding, Lines};

/// Returns the `file:` URI of a path.
pub(crate) fn uri_of(path: &Path) -> Option<Url> {
    Url::from_file_path(path).ok()
}

/// Converts locations. Splits each file into lines once, however many locations it has.
pub(crate) struct Locations<'p> {
    project: &'p Project,
    encoding: Encoding,
    /// The known files; `None` if a file cannot be read.
    files: HashMap<PathBuf, Option<(Url, Lines)>>,
}

impl<'p> Locations<'p> {
    pub(crate) fn new(project: &'p Project, encoding: Encoding) -> Self {
        Self { project, encoding, files: HashMap::new() }
    }

    /// Returns the location of a span, if its file can be read.
    pub(crate) fn of(&mut self, found: &FileSpan) -> Option<lsp::Location> {
        if !self.files.contains_key(&found.path) {
            let lines = self.project.text(&found.path).map(|text| Lines::of(&text, self.encoding));
            self.files.insert(found.path.clone(), uri_of(&found.path).zip(lines));
        }
        let (uri, lines) = self.files.get(&found.path)?.as_ref()?;
        Some(lsp::Location { uri: uri.clone(), range: lines.range(found.span) })
    }
}
