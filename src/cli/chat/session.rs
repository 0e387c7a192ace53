//! A session's file: one JSON object a line, written as it happens, so that a process that is killed loses nothing that was
//! whole.
//!
//! A message is written when it is whole; until then what comes of a reply is written as events, its text word by word, of
//! which a reader makes what there was of it. `rewind` takes messages back: nothing in the file is ever changed. No secret is
//! in any of it ([`Hidden`]).

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::hidden::Hidden;
use crate::chat::{Message, MessageToolCall};
use crate::cli::output::clean;
use crate::request::{Event, INTERRUPTED, valid_conversation};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// A line that is longer is nobody's.
const MAX_LINE: u64 = 64 << 20;

/// A session that is larger is not read.
const MAX_BYTES: u64 = 512 << 20;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first.
    Chat {
        version: u32,
        /// Unix time in milliseconds.
        created_at_ms: u64,
        project: String,
        worker: String,
        model: String,
    },
    /// The conversation is longer by this.
    Message { message: Message },
    /// It is as long as this again.
    Rewind { to: usize },
    /// Something of a reply that is not whole yet.
    Event { event: Event },
    /// The system message beside the worker's.
    System {
        #[serde(default)]
        text: Option<String>,
    },
    /// The model, where another was chosen.
    Model { name: String },
}

/// What a session holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Session {
    pub(super) messages: Vec<Message>,
    pub(super) system: Option<String>,
    pub(super) model: Option<String>,
}

/// A session that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("session {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("session {}: it is no regular file", path.display())]
    NoFile { path: PathBuf },
    #[error("session {}: it is larger than {} MiB", path.display(), MAX_BYTES >> 20)]
    TooLarge { path: PathBuf },
    #[error("session {}: another deftool writes it", path.display())]
    InUse { path: PathBuf },
    #[error("{}:{line}: this is no line of a session: {message}", path.display())]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error("{}:1: a session of format {found}; this deftool reads format {VERSION}", path.display())]
    Version { path: PathBuf, found: u32 },
}

/// A session being written.
pub(super) struct SessionFile {
    path: PathBuf,
    file: File,
    hidden: Arc<Hidden>,
    /// The conversation as the file has it.
    written: Vec<Message>,
}

impl SessionFile {
    /// A new session's file; it must not be there yet.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn create(path: &Path, first: &Line, hidden: Arc<Hidden>) -> Result<Self, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(io)?;
        lock(&file, path)?;
        let mut session = Self { path: path.to_owned(), file, hidden, written: Vec::new() };
        session.write(std::slice::from_ref(first))?;
        Ok(session)
    }

    /// A session that goes on, and what it holds. A last line that was cut is taken away.
    ///
    /// # Errors
    /// When it cannot be read, or is no session, or is written by somebody else.
    pub(super) fn resume(path: &Path, hidden: Arc<Hidden>) -> Result<(Self, Session), SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut file = open(path, OpenOptions::new().read(true).append(true))?;
        lock(&file, path)?;
        let Found { whole: session, written, length, ends_open } = read(&mut file, path)?;
        file.set_len(length).map_err(io)?;
        if ends_open {
            file.write_all(b"\n").map_err(io)?;
        }
        let mut resumed = Self { path: path.to_owned(), file, hidden, written };
        // What was not whole is, from now on.
        resumed.write_messages(&session.messages)?;
        Ok((resumed, session))
    }

    /// What a session holds; its file stays as it is.
    ///
    /// # Errors
    /// When it cannot be read, or is no session.
    pub(super) fn read(path: &Path) -> Result<Session, SessionError> {
        let mut file = open(path, OpenOptions::new().read(true))?;
        Ok(read(&mut file, path)?.whole)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is other in `messages` than in the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write_messages(&mut self, messages: &[Message]) -> Result<(), SessionError> {
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

    /// Writes lines, in one piece.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn write(&mut self, lines: &[Line]) -> Result<(), SessionError> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&self.hidden.line(line).to_string());
            text.push('\n');
        }
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| SessionError::Io { path: self.path.clone(), source })
    }
}

/// Whether an event is written while its reply is not whole.
pub(super) fn is_kept(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::ToolCall { .. } | Event::ToolFinished { .. })
}

/// What is no file is not waited for.
fn open(path: &Path, options: &OpenOptions) -> Result<File, SessionError> {
    let io = |source| SessionError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(SessionError::NoFile { path: path.to_owned() });
    }
    options.open(path).map_err(io)
}

/// One writer a file; a process that ends gives it back, however it ends.
fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    #[cfg(unix)]
    if let Err(error) = rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        && std::io::Error::from(error).kind() == ErrorKind::WouldBlock
    {
        return Err(SessionError::InUse { path: path.to_owned() });
    }
    let _ = (file, path, ErrorKind::WouldBlock);
    Ok(())
}

/// A session as it was read.
struct Found {
    /// With what there was of the last reply, and valid.
    whole: Session,
    /// The messages as they stand in the file.
    written: Vec<Message>,
    /// How many of its bytes are whole lines.
    length: u64,
    /// Whether the last of them lacks its end.
    ends_open: bool,
}

fn read(file: &mut File, path: &Path) -> Result<Found, SessionError> {
    let io = |source| SessionError::Io { path: path.to_owned(), source };
    if file.metadata().map_err(io)?.len() > MAX_BYTES {
        return Err(SessionError::TooLarge { path: path.to_owned() });
    }
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut reader = BufReader::new(file);
    let mut session: Option<Session> = None;
    let mut open: Vec<Event> = Vec::new();
    let (mut length, mut number, mut ends_open) = (0, 0, false);
    loop {
        let mut text = Vec::new();
        let count = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut text).map_err(io)? as u64;
        number += 1;
        let malformed =
            |message: String| SessionError::Malformed { path: path.to_owned(), line: number, message };
        if count == 0 {
            break;
        }
        if !text.ends_with(b"\n") {
            if count == MAX_LINE {
                return Err(malformed(format!("it is longer than {} MiB", MAX_LINE >> 20)));
            }
            // Its writer was stopped in the middle of it; before the first line there is nothing to save.
            if session.is_some() {
                break;
            }
            ends_open = true;
        }
        length += count;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line = read_line(&text, number, path)?;
        let Some(session) = &mut session else {
            match line {
                Line::Chat { version: VERSION, .. } => session = Some(Session::default()),
                Line::Chat { version, .. } => {
                    return Err(SessionError::Version { path: path.to_owned(), found: version });
                }
                Line::Message { .. }
                | Line::Rewind { .. }
                | Line::Event { .. }
                | Line::System { .. }
                | Line::Model { .. } => {
                    return Err(malformed(String::from("the first line must say whose session it is")));
                }
            }
            continue;
        };
        match line {
            Line::Chat { .. } => return Err(malformed(String::from("a second session begins here"))),
            Line::Message { message } => {
                open.clear();
                session.messages.push(message);
            }
            Line::Rewind { to } => {
                if to > session.messages.len() {
                    let length = session.messages.len();
                    return Err(malformed(format!("it goes back to message {to}, and there are {length}")));
                }
                open.clear();
                session.messages.truncate(to);
            }
            Line::Event { event } => open.push(event),
            Line::System { text } => session.system = text,
            Line::Model { name } => session.model = Some(name),
        }
    }
    let Some(session) = session else {
        let message = String::from("the file is empty");
        return Err(SessionError::Malformed { path: path.to_owned(), line: 1, message });
    };
    let written = session.messages.clone();
    let mut messages = session.messages;
    messages.extend(messages_of(open));
    let session = Session { messages: valid_conversation(messages), ..session };
    Ok(Found { whole: session, written, length, ends_open })
}

/// A line; what is wrong with it is told without its place within the line.
fn read_line(text: &[u8], number: usize, path: &Path) -> Result<Line, SessionError> {
    serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(&message);
        let is_recording = number == 1
            && serde_json::from_slice::<Value>(text).is_ok_and(|line| line["record"] == "session");
        let message = if is_recording { "it is a recording of `deftool run --record`" } else { message };
        let message = crate::cli::output::cut(&clean(message), 200);
        SessionError::Malformed { path: path.to_owned(), line: number, message }
    })
}

/// What there was of a reply that was never whole.
fn messages_of(events: Vec<Event>) -> Vec<Message> {
    let (mut text, mut tool_calls, mut results) = (String::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Text { text: more } => text.push_str(&more),
            Event::ToolCall { id, name, arguments } => {
                tool_calls.push(MessageToolCall::new(id, name, arguments.to_string()));
            }
            Event::ToolFinished { id, result, error, .. } => {
                let content = match (result, error) {
                    (_, Some(error)) => json!({ "error": error }),
                    (result, None) => result.unwrap_or_default(),
                };
                results.push(Message::Tool { tool_call_id: id, content: content.to_string() });
            }
            Event::Submitted { .. }
            | Event::TurnStarted { .. }
            | Event::Reasoning { .. }
            | Event::Approval { .. }
            | Event::ToolStarted { .. }
            | Event::Signal(_)
            | Event::Budget { .. }
            | Event::Retry { .. }
            | Event::Reloaded { .. }
            | Event::Warning { .. }
            | Event::Finished(_) => {}
        }
    }
    let mut content = text.trim().to_owned();
    if tool_calls.is_empty() && !content.is_empty() {
        content = format!("{content}\n\n{INTERRUPTED}");
    }
    let reply = Message::Assistant { content, tool_calls };
    std::iter::once(reply).chain(results).collect()
}
