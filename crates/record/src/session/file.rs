use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_process::files::{create_new_private, open_private};

use super::line::{Line, Session};
use super::read::{FORM, ReadSession, read};
use crate::secrets::Redaction;
use crate::stored::{StoredFile, StoredFileError, continue_after, lock};

/// A session file open for writing.
pub struct SessionFile {
    path: PathBuf,
    file: StoredFile,
    /// The conversation in the file.
    written: Vec<Message>,
}

impl SessionFile {
    /// Creates a session file with these lines; the first one is a [header](Line::header).
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub fn create(path: &Path, lines: Vec<Line>, redaction: Arc<Redaction>) -> Result<Self, StoredFileError> {
        let file = create_new_private(path, File::options().append(true));
        let file = file.map_err(StoredFileError::io(FORM, path))?;
        lock(&file, FORM, path)?;
        let file = StoredFile::new(file, redaction, []);
        let mut session = Self { path: path.to_owned(), file, written: Vec::new() };
        session.write(lines)?;
        Ok(session)
    }

    /// Opens a session file to continue it, and returns its content. Removes an incomplete last line.
    ///
    /// # Errors
    /// If the file cannot be read, is not a session, or is locked by another process.
    pub fn resume(path: &Path, redaction: Arc<Redaction>) -> Result<(Self, Session), StoredFileError> {
        let io = StoredFileError::io(FORM, path);
        let mut file = open_private(path, File::options().read(true).append(true)).map_err(&io)?;
        lock(&file, FORM, path)?;
        let ReadSession { restored: session, written, lines } = read(&file, path)?;
        continue_after(&mut file, &lines).map_err(&io)?;
        let file = StoredFile::new(file, redaction, written.iter().flat_map(Message::attachments));
        let mut resumed = Self { path: path.to_owned(), file, written };
        // Store the restored partial reply.
        resumed.write_messages(&session.messages)?;
        Ok((resumed, session))
    }

    /// Reads a session without changing its file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a session.
    pub fn read(path: &Path) -> Result<Session, StoredFileError> {
        let file = open_private(path, File::options().read(true));
        Ok(read(&file.map_err(StoredFileError::io(FORM, path))?, path)?.restored)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines that change the conversation in the file to `messages`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_messages(&mut self, messages: &[Message]) -> Result<(), StoredFileError> {
        let same = self.written.iter().zip(messages).take_while(|(one, other)| one == other).count();
        let mut lines = Vec::new();
        if same < self.written.len() {
            lines.push(Line::Rewind { to: same });
        }
        let new = messages.get(same..).unwrap_or_default();
        lines.extend(new.iter().map(|message| Line::Message { message: message.clone() }));
        self.written.truncate(same);
        self.written.extend_from_slice(new);
        self.write(lines)
    }

    /// Appends lines in a single write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, mut lines: Vec<Line>) -> Result<(), StoredFileError> {
        self.file.append(1, &mut lines).map_err(StoredFileError::io(FORM, &self.path))
    }
}

/// Returns whether an event of an incomplete reply is stored.
pub fn is_stored(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::ToolCall { .. } | Event::ToolFinished { .. })
}
