//! Text that replaces the content of files during a load, for example the result of a fix or an unsaved editor buffer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::discover::identity;

/// Replacement texts of spec files. A file is identified independently of the name or link used.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    texts: HashMap<PathBuf, String>,
}

impl Overlay {
    /// Replaces the content of the file at `path` with `text`.
    pub fn set(&mut self, path: &Path, text: String) {
        self.texts.insert(identity(path), text);
    }

    pub(super) fn get(&self, path: &Path) -> Option<&str> {
        if self.texts.is_empty() {
            return None;
        }
        self.texts.get(&identity(path)).map(String::as_str)
    }
}
