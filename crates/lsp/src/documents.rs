//! The open documents of a client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gen_lsp_types::TextDocumentContentChangeEvent;

use crate::position::Encoding;

/// An open document.
pub(crate) struct Document {
    pub(crate) version: i32,
    pub(crate) text: Arc<str>,
}

/// The open documents by path.
#[derive(Default)]
pub(crate) struct Documents {
    open: HashMap<PathBuf, Document>,
}

impl Documents {
    pub(crate) fn get(&self, path: &Path) -> Option<&Document> {
        self.open.get(path)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.open.keys()
    }

    pub(crate) fn open(&mut self, path: PathBuf, version: i32, text: Arc<str>) {
        self.open.insert(path, Document { version, text });
    }

    /// Applies changes in order. Returns the new text, or `None` if the document is not open.
    pub(crate) fn change(
        &mut self,
        path: &Path,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> Option<Arc<str>> {
        let document = self.open.get_mut(path)?;
        let mut text = document.text.to_string();
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                    let start = encoding.offset(&text, change.range.start);
                    let end = encoding.offset(&text, change.range.end).max(start);
                    text.replace_range(start..end, &change.text);
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => {
                    text = change.text;
                }
            }
        }
        document.version = version;
        document.text = Arc::from(text);
        Some(Arc::clone(&document.text))
    }

    pub(crate) fn close(&mut self, path: &Path) {
        self.open.remove(path);
    }
}
