//! Writes recordings.
//!
//! If the user has secrets, the chunks of a reply are written at its end, because a secret may be split over many
//! chunks. A crash then loses that reply.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_process::files::{create_private, open_or_create_private};

use super::format::{BEGINNING, Line, Session};
use super::read::{Parts, Recording, StoredRequests, read_requests};
use crate::secrets::{Piece, Redaction, redact_reply};
use crate::stored::{StoredFile, StoredFileError, StoredForm, continue_after, lock};

const FORM: StoredForm = StoredForm::Recording;

/// Maximum size of a reply that is buffered for redaction, in bytes.
const MAX_WAITING: usize = 64 << 20;

/// A writer of a recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    redaction: Arc<Redaction>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: StoredFile,
    error: Option<std::io::Error>,
    /// The number of requests.
    requests: u32,
    /// Buffered chunks of replies, by request.
    waiting: HashMap<u32, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: Vec<Piece>,
    size: usize,
}

impl Recorder {
    /// Creates the file at `path`, or truncates an existing recording. Only the user can access the file. It contains no
    /// secrets of `redaction`, for example in prompts and tool results.
    ///
    /// # Errors
    /// When the file cannot be created, or exists and is not a recording.
    pub fn create(path: &Path, redaction: impl Into<Arc<Redaction>>) -> Result<Self, StoredFileError> {
        let redaction = redaction.into();
        let file = create_private(path, "recording", BEGINNING).map_err(StoredFileError::io(FORM, path))?;
        let file = StoredFile::new(file, Arc::clone(&redaction), []);
        let state = State { file, error: None, requests: 0, waiting: HashMap::new() };
        Ok(Self { path: path.to_owned(), redaction, state: Mutex::new(state) })
    }

    /// Opens the recording at `path` to add requests to it, or creates it. Returns what it contains, as
    /// [`Recording::read_replies`] does; `None`: no request. Removes an incomplete last line.
    ///
    /// # Errors
    /// When the file cannot be opened or created, is not a recording, or is written by another process.
    pub fn resume(
        path: &Path,
        redaction: impl Into<Arc<Redaction>>,
    ) -> Result<(Self, Option<Recording>), StoredFileError> {
        let io = StoredFileError::io(FORM, path);
        let mut file = open_or_create_private(path, File::options().read(true).append(true)).map_err(&io)?;
        lock(&file, FORM, path)?;
        let (StoredRequests { requests, last_number }, mut lines) =
            read_requests(&file, path, Parts::Replies)?;
        if let Some(damage) = lines.damage.take() {
            return Err(damage);
        }
        continue_after(&mut file, &lines).map_err(&io)?;
        let redaction = redaction.into();
        let stored = requests.iter().flat_map(|request| request.session.conversation.iter());
        let file = StoredFile::new(file, Arc::clone(&redaction), stored.flat_map(Message::attachments));
        let state = State { file, error: None, requests: last_number, waiting: HashMap::new() };
        Ok((
            Self { path: path.to_owned(), redaction, state: Mutex::new(state) },
            Recording::of(path, requests),
        ))
    }

    /// Writes buffered chunks and returns the first write error, if any. After an error the recording is incomplete.
    ///
    /// # Errors
    /// The first write error.
    pub fn close(&self) -> Result<(), StoredFileError> {
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        let open: Vec<u32> = state.waiting.keys().copied().collect();
        for request in open {
            self.write_waiting(&mut state, request);
        }
        let error = state.error.take();
        error.map_or(Ok(()), |error| Err(StoredFileError::io(FORM, &self.path)(error)))
    }

    /// Starts the recording of the next request.
    pub fn begin(self: &Arc<Self>, session: &Session) -> RequestRecorder {
        let request = self.state.lock().map_or(1, |mut state| {
            state.requests = state.requests.saturating_add(1);
            state.requests
        });
        let recorder = RequestRecorder { recorder: Arc::clone(self), request };
        recorder.write(Line::Session { version: FORM.version(), session: Box::new(session.clone()) });
        recorder
    }

    fn write(&self, request: u32, line: Line) {
        let Ok(mut state) = self.state.lock() else { return };
        self.write_waiting(&mut state, request);
        state.append(request, line);
    }

    fn data(&self, request: u32, piece: Piece) {
        let Ok(mut state) = self.state.lock() else { return };
        let mask = self.redaction.mask();
        if !mask.has_secrets() {
            let piece = Piece { bytes: mask.bytes(piece.bytes), ..piece };
            return state.append(request, line_of(piece));
        }
        if state.error.is_some() {
            return;
        }
        let waiting = state.waiting.entry(request).or_default();
        waiting.size += piece.bytes.len();
        waiting.pieces.push(piece);
        if waiting.size > MAX_WAITING {
            let limit = MAX_WAITING >> 20;
            let message = format!("a reply is larger than {limit} MiB, the limit for redacting secrets");
            state.waiting.clear();
            state.error = Some(std::io::Error::other(message));
        }
    }

    fn write_waiting(&self, state: &mut State, request: u32) {
        let pieces = state.waiting.remove(&request).unwrap_or_default().pieces;
        for piece in redact_reply(pieces, self.redaction.mask()) {
            state.append(request, line_of(piece));
        }
    }
}

impl State {
    fn append(&mut self, request: u32, line: Line) {
        if self.error.is_none() {
            self.error = self.file.append(request, &mut [line]).err();
        }
    }
}

/// A writer of the lines of one request.
#[derive(Debug)]
pub struct RequestRecorder {
    recorder: Arc<Recorder>,
    request: u32,
}

impl RequestRecorder {
    /// Writes a line, after the buffered chunks.
    pub fn write(&self, line: Line) {
        self.recorder.write(self.request, line);
    }

    /// Writes events that occurred at `at_ms`, before the buffered chunks: the reply may not have ended. Text and
    /// reasoning are in the chunks.
    pub fn events(&self, at_ms: u64, events: &[Event]) {
        for event in events {
            let line = || Line::Event { at_ms, event: event.clone() };
            match event {
                Event::Submitted { .. } | Event::Text { .. } | Event::Reasoning { .. } => {}
                Event::Finished(_) => self.write(line()),
                _ => self.append(line()),
            }
        }
    }

    /// Writes a log line of a script, before the buffered chunks.
    pub fn log(&self, at_ms: u64, id: String, text: String) {
        self.append(Line::Log { at_ms, id, text });
    }

    fn append(&self, line: Line) {
        if let Ok(mut state) = self.recorder.state.lock() {
            state.append(self.request, line);
        }
    }

    /// Writes a chunk of the body of a reply.
    pub fn data(&self, at_ms: u64, bytes: &[u8]) {
        self.recorder.data(self.request, Piece { at_ms, bytes: bytes.to_vec() });
    }
}

/// Returns the line of a chunk of a body.
fn line_of(piece: Piece) -> Line {
    let Piece { at_ms, bytes } = piece;
    match String::from_utf8(bytes) {
        Ok(text) => Line::Data { at_ms, text: Some(text), bytes: None },
        Err(error) => Line::Data { at_ms, text: None, bytes: Some(error.into_bytes()) },
    }
}
