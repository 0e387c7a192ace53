//! The session's file while a chat runs: made with the first message, told of everything, and where it cannot be written, that is said once
//! and the chat goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hidden::Hidden;
use super::session::{Line, Session, SessionError, SessionFile, is_kept};
use crate::chat::Message;
use crate::cli::output::{clean, say};
use crate::request::Event;

pub(super) struct Keeper {
    state: State,
    hidden: Arc<Hidden>,
    /// Text of a reply that waits for what follows it: a secret may be spelled over many of its pieces.
    waiting: String,
}

enum State {
    /// Nothing is kept.
    Off,
    /// There is nothing to keep yet.
    Later {
        path: PathBuf,
        first: Vec<Line>,
    },
    Open(SessionFile),
}

impl Keeper {
    pub(super) fn off(hidden: Arc<Hidden>) -> Self {
        Self { state: State::Off, hidden, waiting: String::new() }
    }

    /// Will write a new session to `path`, which begins with `first`.
    pub(super) fn later(path: PathBuf, first: Vec<Line>, hidden: Arc<Hidden>) -> Self {
        Self { state: State::Later { path, first }, ..Self::off(hidden) }
    }

    pub(super) fn open(file: SessionFile, hidden: Arc<Hidden>) -> Self {
        Self { state: State::Open(file), ..Self::off(hidden) }
    }

    /// Goes on with the session at `path` and in its file; where nothing is kept, that is only read.
    ///
    /// # Errors
    /// When it cannot be read, or is written by somebody else.
    pub(super) fn load(&mut self, path: &Path) -> Result<Session, SessionError> {
        if self.is_off() {
            return SessionFile::read(path);
        }
        let (file, session) = SessionFile::resume(path, self.hidden())?;
        *self = Self::open(file, self.hidden());
        Ok(session)
    }

    pub(super) fn hidden(&self) -> Arc<Hidden> {
        Arc::clone(&self.hidden)
    }

    /// Where the session is, once there is something in it.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Off | State::Later { .. } => None,
            State::Open(file) => Some(file.path()),
        }
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// The conversation is this.
    pub(super) fn messages(&mut self, messages: &[Message]) {
        if let State::Later { path, first } = &self.state {
            if messages.is_empty() {
                return;
            }
            let Some((head, rest)) = first.split_first() else { return };
            let made = path.parent().map_or(Ok(()), super::place::make_folder);
            let made = made.map_err(|source| SessionError::Io { path: path.clone(), source });
            let opened = made.and_then(|()| SessionFile::create(path, head, self.hidden()));
            match opened.and_then(|mut file| file.write(rest).map(|()| file)) {
                Ok(file) => self.state = State::Open(file),
                Err(error) => return self.give_up(&error),
            }
        }
        // It is in one of them.
        self.waiting.clear();
        self.write(|file| file.write_messages(messages));
    }

    /// Something of a reply came.
    pub(super) fn event(&mut self, event: &Event) {
        if !is_kept(event) {
            return;
        }
        if let Event::Text { text } = event {
            let from = self.waiting.len();
            self.waiting.push_str(text);
            let settled = self.hidden.settled(&self.waiting, from);
            if settled > 0 {
                let rest = self.waiting.split_off(settled);
                self.flush();
                self.waiting = rest;
            }
            return;
        }
        self.flush();
        self.write(|file| file.write(&[Line::Event { event: event.clone() }]));
    }

    /// What waits is as whole as it will be.
    pub(super) fn flush(&mut self) {
        let text = std::mem::take(&mut self.waiting);
        if !text.is_empty() {
            self.write(|file| file.write(&[Line::Event { event: Event::Text { text } }]));
        }
    }

    /// A setting is another.
    pub(super) fn setting(&mut self, line: Line) {
        match &mut self.state {
            State::Later { first, .. } => first.push(line),
            State::Off | State::Open(_) => self.write(|file| file.write(&[line])),
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut SessionFile) -> Result<(), SessionError>) {
        let State::Open(file) = &mut self.state else { return };
        if let Err(error) = write(file) {
            self.give_up(&error);
        }
    }

    fn give_up(&mut self, error: &SessionError) {
        say(&format!("note: {}; from here on this session is not kept", clean(&error.to_string())));
        self.state = State::Off;
    }
}
