//! Writes the session file of a running chat. The file is created with the first message. A write error is reported
//! once, and the chat continues without storage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_process::files::create_private_folder;
use deftool_record::session::{Line, Session, SessionFile, is_stored};
use deftool_record::{Redaction, StoredFileError, StoredForm};

use crate::cli::terminal::output::{clean, eprint_line};

/// The writer of a session file.
pub(in crate::cli) struct SessionWriter {
    state: State,
    redaction: Arc<Redaction>,
    /// Text that is not written yet, because a secret may continue in the next piece.
    pending_text: String,
}

enum State {
    /// The session is not stored.
    Disabled,
    /// The file is created with the first message.
    Pending {
        path: PathBuf,
        first: Vec<Line>,
    },
    Open(SessionFile),
}

impl SessionWriter {
    pub(in crate::cli) fn disabled(redaction: Arc<Redaction>) -> Self {
        Self { state: State::Disabled, redaction, pending_text: String::new() }
    }

    /// Creates the file `path` with the lines `first` when the first message is written.
    pub(in crate::cli) fn pending(path: PathBuf, first: Vec<Line>, redaction: Arc<Redaction>) -> Self {
        Self { state: State::Pending { path, first }, ..Self::disabled(redaction) }
    }

    pub(in crate::cli) fn open(file: SessionFile, redaction: Arc<Redaction>) -> Self {
        Self { state: State::Open(file), ..Self::disabled(redaction) }
    }

    /// Loads the session at `path` and continues in its file. A disabled writer only reads it.
    ///
    /// # Errors
    /// If the file cannot be read or is locked by another process.
    pub(in crate::cli) fn load(&mut self, path: &Path) -> Result<Session, StoredFileError> {
        if self.is_disabled() {
            return SessionFile::read(path);
        }
        let (file, session) = SessionFile::resume(path, self.redaction())?;
        *self = Self::open(file, self.redaction());
        Ok(session)
    }

    pub(in crate::cli) fn redaction(&self) -> Arc<Redaction> {
        Arc::clone(&self.redaction)
    }

    /// Returns the path of the session file, if it was created.
    pub(in crate::cli) fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Disabled | State::Pending { .. } => None,
            State::Open(file) => Some(file.path()),
        }
    }

    pub(in crate::cli) fn is_disabled(&self) -> bool {
        matches!(self.state, State::Disabled)
    }

    /// Writes the conversation.
    pub(in crate::cli) fn messages(&mut self, messages: &[Message]) {
        if let State::Pending { path, first } = &self.state {
            if messages.is_empty() {
                return;
            }
            match create(path, first.clone(), self.redaction()) {
                Ok(file) => self.state = State::Open(file),
                Err(error) => return self.disable(&error),
            }
        }
        // The messages contain the pending text.
        self.pending_text.clear();
        self.write(|file| file.write_messages(messages));
    }

    /// Writes an event of an incomplete reply.
    pub(in crate::cli) fn event(&mut self, event: &Event) {
        if !is_stored(event) {
            return;
        }
        if let Event::Text { text } = event {
            let from = self.pending_text.len();
            self.pending_text.push_str(text);
            let length = self.redaction.mask().redactable_prefix(&self.pending_text, from);
            if length > 0 {
                let rest = self.pending_text.split_off(length);
                self.flush();
                self.pending_text = rest;
            }
            return;
        }
        self.flush();
        self.write(|file| file.write(vec![Line::Event { event: event.clone() }]));
    }

    /// Writes the pending text.
    pub(in crate::cli) fn flush(&mut self) {
        let text = std::mem::take(&mut self.pending_text);
        if !text.is_empty() {
            self.write(|file| file.write(vec![Line::Event { event: Event::Text { text } }]));
        }
    }

    /// Writes a changed setting.
    pub(in crate::cli) fn setting(&mut self, line: Line) {
        match &mut self.state {
            State::Pending { first, .. } => first.push(line),
            State::Disabled | State::Open(_) => self.write(|file| file.write(vec![line])),
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut SessionFile) -> Result<(), StoredFileError>) {
        let State::Open(file) = &mut self.state else { return };
        if let Err(error) = write(file) {
            self.disable(&error);
        }
    }

    /// Reports an error and stops writing.
    fn disable(&mut self, error: &StoredFileError) {
        eprint_line(&format!("note: {}; the session is no longer stored", clean(&error.to_string())));
        self.state = State::Disabled;
    }
}

/// Creates a session file and its folder.
fn create(path: &Path, lines: Vec<Line>, redaction: Arc<Redaction>) -> Result<SessionFile, StoredFileError> {
    let created = path.parent().map_or(Ok(()), create_private_folder);
    created.map_err(StoredFileError::io(StoredForm::Session, path))?;
    SessionFile::create(path, lines, redaction)
}
