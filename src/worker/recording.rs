//! A recorded request: one JSON object a line, written as it happens, so that a crash loses nothing.
//!
//! It holds what the model's side said and when, and everything the engine would otherwise draw from the world:
//! clock, zone, ids, model, what the probes found. Not the tools' results: tools run for real in a replay. The API
//! key is in none of it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redact::Redactor;
use crate::chat::{Api, Capabilities, Message, Swaps};
use crate::request::{Failure, RequestOptions};

/// Version of the format.
const VERSION: u32 = 1;

/// What the engine drew from the world when a request began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The request's id.
    pub request_id: String,
    /// The job's name, or empty.
    pub job_name: String,
    /// The worker's name.
    pub worker: String,
    /// The conversation it began with.
    pub conversation: Vec<Message>,
    /// What it had of its own, beside its worker's configuration.
    #[serde(default, skip_serializing_if = "RequestOptions::is_empty")]
    pub options: RequestOptions,
    /// Where the requests went, as messages name it.
    pub url: String,
    /// The API they went to; recordings that do not tell are of chat completions.
    #[serde(default)]
    pub api: Api,
    /// The model's name.
    pub model: String,
    /// Whose server it is, and what it told of itself.
    #[serde(alias = "llama_cpp")]
    pub server: Capabilities,
    /// What the server had refused before, so that requests were written otherwise.
    #[serde(default, skip_serializing_if = "Swaps::is_empty")]
    pub swaps: Swaps,
    /// Whether the model's template takes several calls in one message.
    pub parallel_tool_calls: bool,
    /// Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// The zone's name.
    pub zone: String,
    /// The local time as the BIOS tells it.
    pub local_time: String,
    /// Where the ids of calls come from.
    pub id_seed: u64,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Line {
    Session {
        version: u32,
        #[serde(flatten)]
        session: Box<Session>,
    },
    Request {
        turn: u32,
        attempt: u32,
        at_ms: u64,
        body: Value,
    },
    Response {
        at_ms: u64,
        status: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
    },
    Data {
        at_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// A piece that is not UTF-8 by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<Vec<u8>>,
    },
    /// The body's end; with an error: it broke.
    End {
        at_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// No connection.
    NoConnection {
        at_ms: u64,
        message: String,
        refused: bool,
    },
    Tool {
        started_ms: u64,
        finished_ms: u64,
    },
    Stopped(Stopped),
}

/// A timer, the transport or the submitter ended the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopped {
    pub(super) at_ms: u64,
    /// `None`: it was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Failure>,
}

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be opened, written or read.
    #[error("recording {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what a recording holds.
    #[error("{}:{line}: this is no line of a recording: {message}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        message: String,
    },
    /// Another version's format.
    #[error("{}: a recording of format {found}; this deftool reads format {VERSION}", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// Writes a recording.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    redactor: Redactor,
    file: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: std::fs::File,
    error: Option<std::io::Error>,
}

impl Recorder {
    /// Creates or empties the file at `path`.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn create(path: &Path) -> Result<Self, RecordingError> {
        match std::fs::File::create(path) {
            Ok(file) => {
                let file = Mutex::new(State { file, error: None });
                Ok(Self { path: path.to_owned(), redactor: Redactor::new(None), file })
            }
            Err(source) => Err(RecordingError::Io { path: path.to_owned(), source }),
        }
    }

    /// Leaves `key` out, wherever it stands: in the prompt, in a tool's result.
    #[must_use]
    pub fn without(mut self, key: Option<&str>) -> Self {
        self.redactor = Redactor::new(key);
        self
    }

    /// The first error of writing, if there was one: the recording is not whole.
    ///
    /// # Errors
    /// That error.
    pub fn close(&self) -> Result<(), RecordingError> {
        let error = self.file.lock().ok().and_then(|mut state| state.error.take());
        error.map_or(Ok(()), |source| Err(RecordingError::Io { path: self.path.clone(), source }))
    }

    pub(super) fn begin(&self, session: &Session) {
        self.write(&Line::Session { version: VERSION, session: Box::new(session.clone()) });
    }

    pub(super) fn data(&self, at_ms: u64, bytes: &[u8]) {
        let (text, bytes) = match std::str::from_utf8(bytes) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(bytes.to_vec())),
        };
        self.write(&Line::Data { at_ms, text, bytes });
    }

    /// One small write a line, straight to the file: the reader of a crashed session misses at most its last line.
    pub(super) fn write(&self, line: &Line) {
        let Ok(mut state) = self.file.lock() else { return };
        if state.error.is_some() {
            return;
        }
        let written = serde_json::to_value(line).map_err(std::io::Error::other).and_then(|mut line| {
            redact(&mut line, &self.redactor);
            state.file.write_all(format!("{line}\n").as_bytes())
        });
        state.error = written.err();
    }
}

/// Takes the key out of every string. Names of members and numbers are the format's own.
fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redactor)),
        Value::Object(members) => members.values_mut().for_each(|member| redact(member, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A recording, read.
#[derive(Debug, Clone)]
pub struct Recording {
    /// What the engine drew from the world.
    pub session: Session,
    pub(super) lines: Vec<Line>,
}

impl Recording {
    /// Reads the file at `path`. A last line that was cut is left out.
    ///
    /// # Errors
    /// When it cannot be read, or is no recording.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let bytes = std::fs::read(path).map_err(io)?;
        let mut session = None;
        let mut lines = Vec::new();
        for (index, text) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if text.trim_ascii().is_empty() {
                continue;
            }
            let malformed = |message: String| RecordingError::Malformed {
                path: path.to_owned(),
                line: index + 1,
                message,
            };
            match serde_json::from_slice(text) {
                Ok(Line::Session { version, session: found }) => {
                    if version != VERSION {
                        return Err(RecordingError::Version { path: path.to_owned(), found: version });
                    }
                    session = Some(*found);
                }
                Ok(line) if session.is_some() => lines.push(line),
                Ok(_) => return Err(malformed(String::from("the session's line must come first"))),
                // Only the last line has no end, and only if its writer was stopped in the middle of it.
                Err(_) if !text.ends_with(b"\n") && session.is_some() => {}
                Err(error) => return Err(malformed(describe_json_error(&error))),
            }
        }
        match session {
            Some(session) => Ok(Self { session, lines }),
            None => Err(RecordingError::Malformed {
                path: path.to_owned(),
                line: 1,
                message: String::from("the file is empty"),
            }),
        }
    }

    /// Where the request was stopped, if the model's side did not end it.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        match self.lines.last() {
            Some(Line::Stopped(stopped)) => Some(stopped.clone()),
            _ => None,
        }
    }

    /// Start and end of each tool call.
    pub(super) fn tool_times(&self) -> Vec<(u64, u64)> {
        let times = self.lines.iter().filter_map(|line| match line {
            Line::Tool { started_ms, finished_ms } => Some((*started_ms, *finished_ms)),
            _ => None,
        });
        times.collect()
    }
}

/// The error without its line number, which counts within the one line.
fn describe_json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").and_then(|at| text.get(..at)).unwrap_or(&text).to_owned()
}
