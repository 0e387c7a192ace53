//! Reads recordings. Their content is untrusted.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::{Event, FinalState, Outcome};
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde::Deserialize;

use super::format::{BEGINNING, Line, Session, Stopped};
use crate::stored::{LineError, ReadLines, StoredFileError, StoredForm, read_lines};

const FORM: StoredForm = StoredForm::Recording;

/// A parsed recording with at least one request.
#[derive(Debug, Clone)]
pub struct Recording {
    path: PathBuf,
    requests: Vec<RecordedRequest>,
}

/// One request of a recording.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The inputs of the request from its environment.
    pub session: Session,
    /// The connection of the request: each line with its number in the file, from 1.
    pub(crate) lines: Vec<(usize, Line)>,
    /// The events. They are in none of the other lines, because one may occur while a reply is received.
    pub(crate) events: Vec<RecordedEvent>,
    /// The log lines of scripts, by the id of their call. Scripts may log at any time.
    pub(crate) logs: HashMap<String, Vec<String>>,
}

/// An event of a recording.
#[derive(Debug, Clone)]
pub(crate) struct RecordedEvent {
    /// The number of the line, from 1.
    pub(crate) line: usize,
    /// Milliseconds since the submission of the request.
    pub(crate) at_ms: u64,
    pub(crate) event: Event,
}

/// The part of a line that names its request.
#[derive(Deserialize)]
struct Head {
    #[serde(default = "first")]
    request: u32,
}

fn first() -> u32 {
    1
}

impl Recording {
    /// Reads the file at `path`. Ignores an incomplete last line.
    ///
    /// # Errors
    /// When the file cannot be read or is not a recording.
    pub fn read(path: &Path) -> Result<Self, StoredFileError> {
        Self::undamaged(Self::read_parts(path, Parts::All)?)
    }

    /// Like [`read`](Self::read), without the bodies of the chat requests, which are most of a recording with many
    /// requests. A [lenient](crate::ReplayOptions::lenient) replay does not need them.
    ///
    /// # Errors
    /// When the file cannot be read or is not a recording.
    pub fn read_replies(path: &Path) -> Result<Self, StoredFileError> {
        Self::undamaged(Self::read_parts(path, Parts::Replies)?)
    }

    fn undamaged(read: (Self, Option<StoredFileError>)) -> Result<Self, StoredFileError> {
        match read {
            (recording, None) => Ok(recording),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Reads the file at `path` until its end or its first invalid line. Returns the error of that line with the requests
    /// before it.
    ///
    /// # Errors
    /// When the file cannot be read, or no request precedes the first invalid line.
    pub fn read_until_damage(path: &Path) -> Result<(Self, Option<StoredFileError>), StoredFileError> {
        Self::read_parts(path, Parts::All)
    }

    fn read_parts(path: &Path, parts: Parts) -> Result<(Self, Option<StoredFileError>), StoredFileError> {
        let file = open_regular(path).map_err(StoredFileError::io(FORM, path))?;
        let (StoredRequests { requests, .. }, ReadLines { damage, .. }) = read_requests(&file, path, parts)?;
        if requests.is_empty() {
            let empty = || StoredFileError::malformed(FORM, path, 1, "the file is empty");
            return Err(damage.unwrap_or_else(empty));
        }
        Ok((Self { path: path.to_owned(), requests }, damage))
    }

    /// Returns a recording with only the request at `index`; `None`: no such request.
    pub fn only(&self, index: usize) -> Option<Self> {
        Self::of(&self.path, vec![self.requests.get(index)?.clone()])
    }

    /// Returns a recording with these requests; `None`: no request.
    pub(super) fn of(path: &Path, requests: Vec<RecordedRequest>) -> Option<Self> {
        (!requests.is_empty()).then(|| Self { path: path.to_owned(), requests })
    }

    /// Whether the file at `path` begins like a recording. A cheap check for selecting files.
    pub fn is_at(path: &Path) -> bool {
        let mut start = [0; BEGINNING.len()];
        let read = open_regular(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == BEGINNING.as_bytes()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the requests, in submission order.
    pub fn requests(&self) -> &[RecordedRequest] {
        &self.requests
    }

    /// Returns the requests by value.
    pub fn into_requests(self) -> Vec<RecordedRequest> {
        self.requests
    }
}

/// The parts of a recording that are kept when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Everything.
    All,
    /// Everything except the bodies of chat requests.
    Replies,
}

/// The requests of a file.
pub(super) struct StoredRequests {
    pub(super) requests: Vec<RecordedRequest>,
    /// The highest number of a request; 0 without requests.
    pub(super) last_number: u32,
}

/// Reads the requests of a file until its end or its first invalid line.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn read_requests(
    file: &File,
    path: &Path,
    parts: Parts,
) -> Result<(StoredRequests, ReadLines), StoredFileError> {
    let mut reading = Reading::of(parts);
    let lines = read_lines(file, FORM, path, |number, text| reading.line(number, text))?;
    reading.restore_attachments();
    let last_number = reading.by_number.keys().copied().max().unwrap_or_default();
    Ok((StoredRequests { requests: reading.requests, last_number }, lines))
}

struct Reading {
    parts: Parts,
    requests: Vec<RecordedRequest>,
    /// Index of each request, by its `request` number.
    by_number: HashMap<u32, usize>,
    /// Request ids so far.
    ids: HashSet<String>,
    /// The images and audio so far.
    attachments: AttachmentStore,
}

impl Reading {
    fn of(parts: Parts) -> Self {
        let (requests, by_number, ids, attachments) = Default::default();
        Self { parts, requests, by_number, ids, attachments }
    }

    fn line(&mut self, number: usize, text: &[u8]) -> Result<(), LineError> {
        let Head { request } = serde_json::from_slice(text)?;
        match serde_json::from_slice(text)? {
            Line::Session { version, session } => {
                if version != FORM.version() {
                    return Err(LineError::Version(version));
                }
                let is_known = self.by_number.insert(request, self.requests.len()).is_some();
                if is_known || !self.ids.insert(session.request_id.clone()) {
                    return Err("duplicate `session` line for this request".into());
                }
                self.requests.push(RecordedRequest {
                    session: *session,
                    lines: Vec::new(),
                    events: Vec::new(),
                    logs: HashMap::new(),
                });
            }
            Line::Attachment(data) => self.attachments.add(&data),
            line => {
                let index = self.by_number.get(&request);
                let Some(request) = index.and_then(|index| self.requests.get_mut(*index)) else {
                    return Err("expected a `session` line first".into());
                };
                match line {
                    Line::Event { at_ms, event } => {
                        request.events.push(RecordedEvent { line: number, at_ms, event });
                    }
                    Line::Log { id, text, .. } => request.logs.entry(id).or_default().push(text),
                    line if self.parts == Parts::Replies => request.lines.push((number, line.without_body())),
                    line => request.lines.push((number, line)),
                }
            }
        }
        Ok(())
    }

    /// Restores the bytes of images and audio, which may follow the lines that name them.
    fn restore_attachments(&mut self) {
        for request in &mut self.requests {
            let messages = request.session.conversation.iter_mut();
            self.attachments.restore(messages.flat_map(Message::attachments_mut));
            for RecordedEvent { event, .. } in &mut request.events {
                if let Event::ToolFinished { attachments, .. } = event {
                    self.attachments.restore(attachments);
                }
            }
        }
    }
}

impl RecordedRequest {
    /// Returns where the request was stopped, if it was not ended by the model.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.lines.iter().rev().find_map(|(_, line)| match line {
            Line::Stopped(stopped) => Some(stopped.clone()),
            _ => None,
        })
    }

    /// Returns the outcome, if it was recorded.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.events.iter().rev().find_map(|recorded| match &recorded.event {
            Event::Finished(outcome) => Some(&**outcome),
            _ => None,
        })
    }

    /// Whether the recorded request is complete.
    pub fn is_whole(&self) -> bool {
        self.outcome().is_some()
    }

    /// Returns the time from its submission to its end, if the request completed.
    pub fn duration(&self) -> Option<Duration> {
        self.events.iter().rev().find_map(|RecordedEvent { at_ms, event, .. }| match event {
            Event::Finished(outcome) if outcome.state == FinalState::Completed => {
                Some(Duration::from_millis(*at_ms))
            }
            _ => None,
        })
    }

    /// Returns the number of chat requests, including retries.
    pub fn exchanges(&self) -> usize {
        self.lines.iter().filter(|(_, line)| matches!(line, Line::Request { .. })).count()
    }

    /// Returns the number of calls that ran a tool.
    pub fn tool_calls(&self) -> usize {
        let calls = self.events.iter().filter(|recorded| matches!(recorded.event, Event::ToolStarted { .. }));
        calls.count()
    }
}
