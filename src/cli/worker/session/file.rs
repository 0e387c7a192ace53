//! Session files: one JSON object per line, appended immediately, so that a killed process loses only incomplete data.
//!
//! A message is written when it is complete. Until then, an incomplete reply is written as events, from which a reader
//! restores the partial reply. The file is append-only; `rewind` removes messages. Secrets are redacted
//! ([`Line::redacted`]).

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_lang::tool::AttachmentData;
use deftool_process::files::{create_new_private, lock_private, open_private};
use deftool_record::Redaction;

use super::model::{Line, Session};
use super::paths::is_markdown;
use super::read::{ReadSession, SessionError, read};
use crate::cli::outcome::CliError;

/// Maximum wait for the lock of a session.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// A session file open for writing.
pub(in crate::cli) struct SessionFile {
    path: PathBuf,
    file: File,
    redaction: Arc<Redaction>,
    /// The conversation in the file.
    written: Vec<Message>,
    /// The digests of the images and audio in the file.
    attachments: HashSet<String>,
}

impl SessionFile {
    /// Creates a session file.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub(in crate::cli) fn create(
        path: &Path,
        first: &Line,
        redaction: Arc<Redaction>,
    ) -> Result<Self, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let file = create_new_private(path, File::options().append(true)).map_err(io)?;
        lock(&file, path)?;
        let (written, attachments) = (Vec::new(), HashSet::new());
        let mut session = Self { path: path.to_owned(), file, redaction, written, attachments };
        session.write(std::slice::from_ref(first))?;
        Ok(session)
    }

    /// Opens a session file to continue it, and returns its content. Removes an incomplete last line.
    ///
    /// # Errors
    /// If the file cannot be read, is not a session, or is locked by another process.
    pub(in crate::cli) fn resume(
        path: &Path,
        redaction: Arc<Redaction>,
    ) -> Result<(Self, Session), SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut file = open_private(path, File::options().read(true).append(true)).map_err(io)?;
        lock(&file, path)?;
        let ReadSession { restored: session, written, length, lacks_line_end } = read(&mut file, path)?;
        file.set_len(length).map_err(io)?;
        if lacks_line_end {
            file.write_all(b"\n").map_err(io)?;
        }
        let attachments = written.iter().flat_map(Message::attachments);
        let stored = attachments.filter(|attachment| attachment.bytes().is_some());
        let attachments = stored.map(|attachment| attachment.sha256().to_owned()).collect();
        let mut resumed = Self { path: path.to_owned(), file, redaction, written, attachments };
        // Store the restored partial reply.
        resumed.write_messages(&session.messages)?;
        Ok((resumed, session))
    }

    /// Reads a session without changing its file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a session.
    pub(in crate::cli) fn read(path: &Path) -> Result<Session, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut file = open_private(path, File::options().read(true)).map_err(io)?;
        Ok(read(&mut file, path)?.restored)
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines that change the conversation in the file to `messages`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(in crate::cli) fn write_messages(&mut self, messages: &[Message]) -> Result<(), SessionError> {
        let same = self.written.iter().zip(messages).take_while(|(one, other)| one == other).count();
        let mut lines = Vec::new();
        if same < self.written.len() {
            lines.push(Line::Rewind { to: same });
        }
        let new = messages.get(same..).unwrap_or_default();
        lines.extend(new.iter().map(|message| Line::Message { message: message.clone() }));
        self.written.truncate(same);
        self.written.extend_from_slice(new);
        self.write(&lines)
    }

    /// Appends lines in a single write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(in crate::cli) fn write(&mut self, lines: &[Line]) -> Result<(), SessionError> {
        let mut text = String::new();
        for line in lines {
            let data = AttachmentData::unwritten(&mut self.attachments, line.attachments());
            let data: Vec<Line> = data.into_iter().map(Line::Attachment).collect();
            for line in data.iter().chain([line]) {
                text.push_str(&line.redacted(&self.redaction).to_string());
                text.push('\n');
            }
        }
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| SessionError::Io { path: self.path.clone(), source })
    }
}

/// Returns the error of a session that cannot be resumed.
pub(in crate::cli) fn resume_error(path: &Path, error: SessionError) -> CliError {
    CliError::Usage(match error {
        SessionError::Malformed { .. } if is_markdown(path) => format!(
            "{} is a Markdown copy; use `last` for the newest session of this project, or /save NAME.jsonl for a copy that can be loaded",
            path.display()
        ),
        SessionError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            format!("session {}: {source}; `deftool chat --list` lists the sessions", path.display())
        }
        error => error.to_string(),
    })
}

/// Returns whether an event of an incomplete reply is stored.
pub(in crate::cli) fn is_stored(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::ToolCall { .. } | Event::ToolFinished { .. })
}

/// Locks the file, so that it has one writer. The lock is released when the process ends. A session on a file system
/// without locks is not locked, nor on Windows, where a lock would also prevent reading.
fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    if cfg!(unix) && matches!(lock_private(file, LOCK_LIMIT), Ok(false)) {
        return Err(SessionError::InUse { path: path.to_owned() });
    }
    Ok(())
}
