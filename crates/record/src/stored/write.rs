use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::tool::{Attachment, AttachmentData};
use deftool_process::files::lock_private;
use serde::Serialize;

use super::error::{StoredFileError, StoredFileProblem, StoredForm};
use super::read::ReadLines;
use crate::secrets::{Mask, Redaction};

/// A line of a stored file.
pub(crate) trait StoredLine: Serialize {
    /// Returns the images and audio of the line, whose bytes are stored once in the file.
    fn attachments(&self) -> Vec<&Attachment>;

    /// Redacts the user's secrets in all members with free text, and limits the nesting of values ([`fit`](super::fit())).
    fn redact(&mut self, mask: &Mask);
}

/// The line with the bytes of an image or audio. Other lines name them by their digest.
#[derive(Serialize)]
struct AttachmentLine {
    record: &'static str,
    #[serde(flatten)]
    data: AttachmentData,
}

/// A line of one of several requests.
#[derive(Serialize)]
struct Numbered<'l, L> {
    #[serde(flatten)]
    line: &'l L,
    request: u32,
}

/// Maximum wait for the lock of a file.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// Locks a file, so that it has one writer. The lock is released when the process ends. A file on a file system without
/// locks is not locked, nor on Windows, where a lock would also prevent reading.
///
/// # Errors
/// If another process writes the file.
pub(crate) fn lock(file: &File, form: StoredForm, path: &Path) -> Result<(), StoredFileError> {
    if cfg!(unix) && matches!(lock_private(file, LOCK_LIMIT), Ok(false)) {
        return Err(StoredFileError::new(form, path, StoredFileProblem::InUse));
    }
    Ok(())
}

/// Prepares a file for lines after those that were read. Removes an incomplete last line.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn continue_after(file: &mut File, lines: &ReadLines) -> io::Result<()> {
    file.set_len(lines.length)?;
    if lines.lacks_line_end { file.write_all(b"\n") } else { Ok(()) }
}

/// A file that is open for appending lines.
#[derive(Debug)]
pub(crate) struct StoredFile {
    file: File,
    redaction: Arc<Redaction>,
    /// The digests of the images and audio in the file.
    attachments: HashSet<String>,
}

impl StoredFile {
    /// Continues a file that contains the bytes of these attachments.
    pub(crate) fn new<'a>(
        file: File,
        redaction: Arc<Redaction>,
        stored: impl IntoIterator<Item = &'a Attachment>,
    ) -> Self {
        let stored = stored.into_iter().filter(|attachment| attachment.bytes().is_some());
        let attachments = stored.map(|attachment| attachment.sha256().to_owned()).collect();
        Self { file, redaction, attachments }
    }

    /// Appends lines of the request `request`, without secrets, and the bytes of their images and audio, in a single write.
    /// The lines of the first request do not contain its number.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn append<L: StoredLine>(&mut self, request: u32, lines: &mut [L]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            line.redact(self.redaction.mask());
            text += &self.text_of(&*line, request)?;
            for data in AttachmentData::unwritten(&mut self.attachments, line.attachments()) {
                text += &self.text_of(&AttachmentLine { record: "attachment", data }, 1)?;
            }
        }
        self.file.write_all(text.as_bytes())
    }

    fn text_of(&self, line: &impl Serialize, request: u32) -> io::Result<String> {
        let text =
            if request == 1 { self.without_key(line) } else { self.without_key(&Numbered { line, request }) };
        Ok(text? + "\n")
    }

    fn without_key(&self, line: &impl Serialize) -> Result<String, serde_json::Error> {
        let key = self.redaction.key();
        if key.is_empty() {
            return serde_json::to_string(line);
        }
        let mut value = serde_json::to_value(line)?;
        key.value(&mut value);
        Ok(value.to_string())
    }
}
