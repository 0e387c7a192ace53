//! Writes recordings: one unbuffered write per line, so that a crash loses at most the last line.
//!
//! If the user has secrets, the chunks of a reply are written at its end, because a secret may be split over many
//! chunks. A crash then loses that reply.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use deftool_lang::tool::AttachmentData;
use deftool_process::files::create_private;
use serde_json::Value;

use super::format::{Line, RecordingError, Session, VERSION};
use crate::secrets::{Mask, Piece, Redactor, Secrets, redact_reply};

/// Maximum size of a reply that is buffered for redaction, in bytes.
const MAX_WAITING: usize = 64 << 20;
/// The first bytes of every recording.
const BEGINNING: &str = r#"{"record":"#;

/// A writer of a recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    /// Redacts the API key.
    redactor: Redactor,
    /// Redacts all other secrets.
    mask: Mask,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    error: Option<std::io::Error>,
    /// The number of requests.
    requests: u32,
    /// Buffered chunks of replies, by request.
    waiting: HashMap<u32, Waiting>,
    /// The digests of the images and audio in the file.
    attachments: HashSet<String>,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: Vec<Piece>,
    size: usize,
}

impl Recorder {
    /// Creates the file at `path`, or truncates an existing recording. Only the user can access the file.
    ///
    /// # Errors
    /// When the file cannot be created, or exists and is not a recording.
    pub fn create(path: &Path) -> Result<Self, RecordingError> {
        let file = create_private(path, "recording", BEGINNING)
            .map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
        let state =
            State { file, error: None, requests: 0, waiting: HashMap::new(), attachments: HashSet::new() };
        Ok(Self {
            path: path.to_owned(),
            redactor: Redactor::new(None),
            mask: Mask::new(Secrets::default()),
            state: Mutex::new(state),
        })
    }

    /// Redacts the API key everywhere, for example in prompts and tool results.
    #[must_use]
    pub fn without(mut self, key: Option<&str>) -> Self {
        self.redactor = Redactor::new(key);
        self
    }

    /// Redacts these secrets in addition to the API key.
    #[must_use]
    pub fn without_secrets(mut self, secrets: Secrets) -> Self {
        self.mask = Mask::new(secrets);
        self
    }

    /// Writes buffered chunks and returns the first write error, if any. After an error the recording is incomplete.
    ///
    /// # Errors
    /// The first write error.
    pub fn close(&self) -> Result<(), RecordingError> {
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        let open: Vec<u32> = state.waiting.keys().copied().collect();
        for request in open {
            self.write_waiting(&mut state, request);
        }
        let error = state.error.take();
        error.map_or(Ok(()), |source| Err(RecordingError::Io { path: self.path.clone(), source }))
    }

    /// Starts the recording of the next request.
    pub fn begin(self: &Arc<Self>, session: &Session) -> RequestRecorder {
        let request = self.state.lock().map_or(1, |mut state| {
            state.requests += 1;
            state.requests
        });
        let recorder = RequestRecorder { recorder: Arc::clone(self), request };
        recorder.write(Line::Session { version: VERSION, session: Box::new(session.clone()) });
        recorder
    }

    fn write(&self, request: u32, mut line: Line) {
        line.redact(&self.mask);
        line.fit();
        let Ok(mut state) = self.state.lock() else { return };
        self.write_waiting(&mut state, request);
        self.write_line(&mut state, request, &line);
        for data in AttachmentData::unwritten(&mut state.attachments, line.attachments()) {
            self.write_line(&mut state, request, &Line::Attachment(data));
        }
    }

    fn data(&self, request: u32, piece: Piece) {
        let Ok(mut state) = self.state.lock() else { return };
        if !self.mask.has_secrets() {
            let piece = Piece { bytes: self.mask.bytes(piece.bytes), ..piece };
            return self.write_line(&mut state, request, &line_of(piece));
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
        for piece in redact_reply(state.waiting.remove(&request).unwrap_or_default().pieces, &self.mask) {
            self.write_line(state, request, &line_of(piece));
        }
    }

    fn write_line(&self, state: &mut State, request: u32, line: &Line) {
        if state.error.is_some() {
            return;
        }
        let text = if request == 1 && self.redactor.is_empty() {
            serde_json::to_string(line)
        } else {
            serde_json::to_value(line).map(|mut line| {
                self.redactor.value(&mut line);
                if request > 1
                    && let Value::Object(members) = &mut line
                {
                    members.insert(String::from("request"), Value::from(request));
                }
                line.to_string()
            })
        };
        let written = text.map_err(std::io::Error::other);
        let written = written.and_then(|text| state.file.write_all(format!("{text}\n").as_bytes()));
        state.error = written.err();
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

    /// Writes a log line of a script, before the buffered chunks: the reply may not have ended.
    pub fn log(&self, mut line: Line) {
        line.redact(&self.recorder.mask);
        if let Ok(mut state) = self.recorder.state.lock() {
            self.recorder.write_line(&mut state, self.request, &line);
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
