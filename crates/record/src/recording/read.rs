//! Reads recordings. Their content is untrusted.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use deftool_chat::Message;
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde::Deserialize;
use serde_json::Value;

use super::format::{Line, RecordingError, Session, Stopped, VERSION};

/// Maximum file size, in bytes.
const MAX_FILE: u64 = 1 << 30;

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
    /// Each line with its number in the file, from 1.
    pub(crate) lines: Vec<(usize, Line)>,
    /// The log lines of scripts, by the id of their call. They are in none of the other lines, because scripts may log at
    /// any time.
    pub(crate) logs: HashMap<String, Vec<String>>,
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
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        match Self::read_until_damage(path)? {
            (recording, None) => Ok(recording),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Reads the file at `path` until its end or its first invalid line. Returns the error of that line with the requests
    /// before it.
    ///
    /// # Errors
    /// When the file cannot be read, or no request precedes the first invalid line.
    pub fn read_until_damage(path: &Path) -> Result<(Self, Option<RecordingError>), RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let too_large = || RecordingError::TooLarge { path: path.to_owned(), limit: MAX_FILE };
        let file = open_regular(path).map_err(io)?;
        let mut reader = BufReader::with_capacity(1 << 16, file.take(MAX_FILE + 1));
        let mut reading = Reading {
            path,
            requests: Vec::new(),
            by_number: HashMap::new(),
            ids: HashSet::new(),
            attachments: AttachmentStore::default(),
        };
        let mut text = Vec::new();
        let mut size = 0;
        let mut damage = None;
        for number in 1.. {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(io)?;
            size += read as u64;
            if size > MAX_FILE {
                return Err(too_large());
            }
            if read == 0 {
                break;
            }
            if !text.trim_ascii().is_empty()
                && let Err(error) = reading.line(number, &text)
            {
                damage = Some(error);
                break;
            }
        }
        if reading.requests.is_empty() {
            return Err(damage.unwrap_or_else(|| reading.malformed(1, "the file is empty")));
        }
        reading.restore_attachments();
        Ok((Self { path: path.to_owned(), requests: reading.requests }, damage))
    }

    /// Whether the file at `path` starts like a recording. A cheap check for selecting files.
    pub fn is_at(path: &Path) -> bool {
        let mut start = Vec::new();
        let read = open_regular(path).and_then(|file| file.take(4096).read_to_end(&mut start));
        let text = String::from_utf8_lossy(&start);
        read.is_ok() && text.trim_start().starts_with("{\"record\":\"session\",")
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

struct Reading<'p> {
    path: &'p Path,
    requests: Vec<RecordedRequest>,
    /// Index of each request, by its `request` number.
    by_number: HashMap<u32, usize>,
    /// Request ids so far.
    ids: HashSet<String>,
    /// The images and audio so far.
    attachments: AttachmentStore,
}

impl Reading<'_> {
    fn line(&mut self, number: usize, text: &[u8]) -> Result<(), RecordingError> {
        let parsed = serde_json::from_slice::<Head>(text)
            .and_then(|head| serde_json::from_slice::<Line>(text).map(|line| (head.request, line)));
        let (request, line) = match parsed {
            Ok(parsed) => parsed,
            // Only the last line can lack a line break: its writer was stopped within the line.
            Err(_) if !text.ends_with(b"\n") && !self.requests.is_empty() => return Ok(()),
            Err(error) => return Err(self.malformed(number, &describe_json_error(&error))),
        };
        match line {
            Line::Session { version, session } => {
                if version != VERSION {
                    return Err(RecordingError::Version { path: self.path.to_owned(), found: version });
                }
                let is_known = self.by_number.insert(request, self.requests.len()).is_some();
                if is_known || !self.ids.insert(session.request_id.clone()) {
                    return Err(self.malformed(number, "duplicate `session` line for this request"));
                }
                self.requests.push(RecordedRequest {
                    session: *session,
                    lines: Vec::new(),
                    logs: HashMap::new(),
                });
            }
            Line::Attachment(data) => self.attachments.add(&data),
            line => {
                let index = self.by_number.get(&request);
                let Some(request) = index.and_then(|index| self.requests.get_mut(*index)) else {
                    let message = "expected a `session` line first";
                    return Err(self.malformed(number, message));
                };
                match line {
                    Line::Log { id, text, .. } => request.logs.entry(id).or_default().push(text),
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
            for (_, line) in &mut request.lines {
                if let Line::ToolFinished { attachments, .. } = line {
                    self.attachments.restore(attachments);
                }
            }
        }
    }

    fn malformed(&self, line: usize, message: &str) -> RecordingError {
        RecordingError::Malformed { path: self.path.to_owned(), line, message: message.to_owned() }
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
    pub(crate) fn outcome(&self) -> Option<&Value> {
        self.lines.iter().rev().find_map(|(_, line)| match line {
            Line::Finished { outcome, .. } => Some(outcome),
            _ => None,
        })
    }

    /// Whether the recorded request is complete.
    pub fn is_whole(&self) -> bool {
        self.outcome().is_some()
    }

    /// Returns the number of chat requests, including retries.
    pub fn exchanges(&self) -> usize {
        self.lines.iter().filter(|(_, line)| matches!(line, Line::Request { .. })).count()
    }

    /// Returns the number of answered tool calls.
    pub fn tool_calls(&self) -> usize {
        self.lines.iter().filter(|(_, line)| matches!(line, Line::ToolFinished { .. })).count()
    }
}

/// Returns the text of an error without its position, which is relative to the line.
pub(crate) fn describe_json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").and_then(|at| text.get(..at)).unwrap_or(&text).to_owned()
}
