//! The open documents, and what the client supports and requests.

use deftool_lang::schema::Target;
use gen_lsp_types as lsp;

use crate::documents::Documents;
use crate::position::Encoding;

/// The open documents, and what the client supports and requests.
pub(crate) struct Settings {
    pub(crate) documents: Documents,
    pub(crate) encoding: Encoding,
    pub(crate) with_snippets: bool,
    /// What the edits of several files may contain.
    pub(crate) edits: EditSupport,
    /// The API whose JSON hover shows.
    pub(crate) target: Target,
    /// Errors and warnings for the user that were not sent yet.
    pub(crate) messages: Vec<(lsp::MessageType, String)>,
}

/// What a client supports in the edits of several files.
#[derive(Clone, Copy, Default)]
pub(crate) struct EditSupport {
    /// Whether edits may have the versions of documents.
    pub(crate) has_versions: bool,
    /// Whether edits may move files.
    pub(crate) moves_files: bool,
}

impl Settings {
    pub(crate) fn add_error(&mut self, message: String) {
        self.messages.push((lsp::MessageType::Error, message));
    }
}
