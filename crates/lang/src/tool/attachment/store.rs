//! The bytes of attachments in files: once each, found by their digest.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Attachment;

/// The bytes of an attachment, as files and messages of programs contain them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct AttachmentData {
    /// The SHA-256 of the bytes in hexadecimal, for readers.
    sha256: String,
    /// The bytes in base64.
    pub(super) data: String,
}

impl AttachmentData {
    /// The size of the bytes in base64.
    pub fn encoded_size(&self) -> usize {
        self.data.len()
    }

    /// Returns the bytes of the attachments that are not in `written`, which then contains them.
    pub fn unwritten<'a>(
        written: &mut HashSet<String>,
        attachments: impl IntoIterator<Item = &'a Attachment>,
    ) -> Vec<Self> {
        let data = attachments.into_iter().filter_map(|attachment| {
            let is_new = attachment.bytes.is_some() && written.insert(attachment.sha256.clone());
            let data = if is_new { attachment.to_base64() } else { None };
            Some(Self { sha256: attachment.sha256.clone(), data: data? })
        });
        data.collect()
    }
}

/// The attachments of a file that is read.
#[derive(Debug, Clone, Default)]
pub struct AttachmentStore(HashMap<String, Attachment>);

impl AttachmentStore {
    /// Adds stored bytes. The digest is computed again: a changed file does not contain the attachment any more.
    pub fn add(&mut self, data: &AttachmentData) {
        if let Ok(attachment) = Attachment::from_base64(&data.data, "") {
            self.0.insert(attachment.sha256.clone(), attachment);
        }
    }

    /// Adds an attachment, if it has its bytes.
    pub fn insert(&mut self, attachment: &Attachment) {
        if attachment.bytes.is_some() {
            self.0.entry(attachment.sha256.clone()).or_insert_with(|| attachment.clone());
        }
    }

    /// Returns the attachments, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Attachment> {
        self.0.values()
    }

    /// Restores the bytes of attachments. Those that were not stored stay without bytes.
    pub fn restore<'a>(&self, attachments: impl IntoIterator<Item = &'a mut Attachment>) {
        for attachment in attachments {
            if let Some(known) = self.0.get(&attachment.sha256) {
                attachment.clone_from(known);
            }
        }
    }
}
