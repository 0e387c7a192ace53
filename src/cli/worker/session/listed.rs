//! Stored sessions in lists.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deftool_chat::Message;
use deftool_record::StoredFileError;
use deftool_record::session::{Line, SessionPart};
use jiff::Timestamp;
use serde::Serialize;

/// A stored session.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ListedSession {
    pub(in crate::cli) name: String,
    pub(in crate::cli) project: String,
    /// Unix time of the last change in milliseconds.
    changed_at_ms: u64,
    /// The number of messages of the user.
    pub(in crate::cli) turns: usize,
    /// The first message of the user.
    pub(in crate::cli) prompt: String,
    file: String,
}

impl ListedSession {
    /// Reads a session. Also returns the reason why a part of it cannot be read.
    pub(in crate::cli) fn read(
        path: &Path,
        changed: SystemTime,
    ) -> Result<(Self, Option<StoredFileError>), StoredFileError> {
        let SessionPart { first, messages, damage, .. } = SessionPart::read(path)?;
        let project = match first {
            Line::Chat { project, .. } => project,
            _ => String::new(),
        };
        let mut prompts = messages.iter().filter_map(|(_, message)| match message {
            Message::User { content, .. } => Some(content),
            _ => None,
        });
        let prompt = prompts.next().cloned();
        let session = Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            project,
            changed_at_ms: changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            turns: usize::from(prompt.is_some()) + prompts.count(),
            prompt: prompt.unwrap_or_default(),
            file: path.display().to_string(),
        };
        Ok((session, damage))
    }

    /// Returns the time of the last change.
    pub(in crate::cli) fn changed(&self) -> Timestamp {
        Timestamp::from_millisecond(self.changed_at_ms.cast_signed()).unwrap_or_default()
    }
}
