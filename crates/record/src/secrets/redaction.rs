//! Redacts the API key and the user's secrets together.

use serde_json::Value;

use super::mask::{Mask, Secrets};
use super::redactor::Redactor;

/// The secrets that nothing may contain that is stored or exported: the API key and the user's secrets.
#[derive(Debug)]
pub struct Redaction {
    key: Redactor,
    mask: Mask,
}

impl Default for Redaction {
    /// Redacts nothing but secrets of known forms.
    fn default() -> Self {
        Self::new(None, Secrets::default())
    }
}

impl Redaction {
    /// Redacts the API key, if there is one, and these secrets.
    pub fn new(key: Option<&str>, secrets: Secrets) -> Self {
        Self { key: Redactor::new(key), mask: Mask::new(secrets) }
    }

    /// Redacts the API key only.
    pub fn key(&self) -> &Redactor {
        &self.key
    }

    /// Redacts the user's secrets only.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Returns `text` without secrets.
    pub fn text(&self, text: &str) -> String {
        self.key.text(&self.mask.text(text))
    }

    /// Redacts secrets in all parts of a value.
    pub fn value(&self, value: &mut Value) {
        self.mask.value(value);
        self.key.value(value);
    }
}
