//! Texts that stand in for what is on disk: what a fix would make of a file, what an editor has not saved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::discover::identity;

/// Spec files whose text is another than the one on disk. A file is meant by whatever name or link.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    texts: HashMap<PathBuf, String>,
}

impl Overlay {
    /// From now on the file at `path` holds `text`.
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
