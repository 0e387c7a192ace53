//! The text of all replies as the server sent it, with the calls that are not shown.

use serde::{Deserialize, Serialize};

/// A text that shares a prefix with the shown text. Stores the length of the prefix and the rest, which is usually
/// empty.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RawText {
    /// Length of the common prefix in bytes.
    shared: usize,
    rest: String,
}

impl RawText {
    /// Adds text from the server. `piece` is about to be appended to the shown text, which has `before` bytes.
    pub(super) fn push(&mut self, text: &str, before: usize, piece: &str) {
        // Usually the same text is shown: nothing is stored.
        if self.rest.is_empty() && self.shared == before && text == piece {
            self.shared += text.len();
        } else {
            self.rest.push_str(text);
        }
    }

    /// Registers that `piece` is appended to the shown text, which has `before` bytes.
    pub(super) fn note_shown(&mut self, before: usize, piece: &str) {
        if self.shared == before && self.rest.starts_with(piece) {
            self.rest.drain(..piece.len());
            self.shared += piece.len();
        }
    }

    /// Returns the length of the text in bytes.
    pub(super) fn len(&self) -> usize {
        self.shared + self.rest.len()
    }

    /// Returns the text from `start` on. `shown` is the shown text.
    pub(super) fn since(&self, start: usize, shown: &str) -> String {
        match start.checked_sub(self.shared) {
            Some(start) => self.rest.get(start..).unwrap_or_default().to_owned(),
            None => format!("{}{}", shown.get(start..self.shared).unwrap_or_default(), self.rest),
        }
    }

    /// Returns the text if it differs from the shown text.
    pub(super) fn if_different(&self, shown: &str) -> Option<String> {
        let (start, end) = shown.split_at_checked(self.shared)?;
        (end != self.rest).then(|| format!("{start}{}", self.rest))
    }
}
