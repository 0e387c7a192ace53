//! Reads session files. Their content is untrusted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use deftool_chat::request::{Event, INTERRUPTED, cut_result, normalize_conversation};
use deftool_chat::{Message, MessageToolCall};
use deftool_lang::spec::DEFAULT_MAX_RESULT;
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde_json::{Value, json};

use super::model::{Line, Session, VERSION};
use crate::cli::terminal::output::{clean, cut};

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Maximum size of a session file, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// A session that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SessionError {
    #[error("session {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("session {}: exceeds {} MiB", path.display(), MAX_BYTES >> 20)]
    TooLarge { path: PathBuf },
    #[error("session {}: locked by another deftool process", path.display())]
    InUse { path: PathBuf },
    #[error("{}:{line}: invalid session: {message}", path.display())]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error("{}:1: unsupported session format {found}, expected {VERSION}", path.display())]
    Version { path: PathBuf, found: u32 },
}

/// A session that was read from a file.
pub(super) struct ReadSession {
    /// The session, including a restored partial reply. Its messages are a valid conversation.
    pub(super) restored: Session,
    /// The messages in the file.
    pub(super) written: Vec<Message>,
    /// The total length of the complete lines, in bytes.
    pub(super) length: u64,
    /// Whether the last complete line has no line end.
    pub(super) lacks_line_end: bool,
}

/// Reads all lines of a session.
pub(super) fn read(file: &mut File, path: &Path) -> Result<ReadSession, SessionError> {
    let mut reading = Reading::new(path);
    reading.lines_of(file)?;
    let Reading { length, lacks_line_end, .. } = reading;
    let (session, partial) = reading.end()?;
    let written = session.messages.clone();
    let mut messages = session.messages;
    messages.extend(partial);
    let restored = Session { messages: normalize_conversation(messages), ..session };
    Ok(ReadSession { restored, written, length, lacks_line_end })
}

/// The readable part of a session, to show it.
pub(in crate::cli) struct SessionPart {
    /// The first line.
    pub(in crate::cli) first: Line,
    pub(in crate::cli) model: Option<String>,
    /// The system message of the session, the messages, and those of an incomplete reply, each with its line.
    pub(in crate::cli) messages: Vec<(usize, Message)>,
    /// The reason why the rest cannot be read.
    pub(in crate::cli) damage: Option<SessionError>,
    /// Whether the last line is incomplete.
    pub(in crate::cli) is_cut: bool,
}

impl SessionPart {
    /// Reads the file at `path` until its end or its first invalid line.
    ///
    /// # Errors
    /// If the file cannot be read, or its first line is invalid.
    pub(in crate::cli) fn read(path: &Path) -> Result<Self, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut reading = Reading::new(path);
        let damage = reading.lines_of(&mut open_regular(path).map_err(io)?).err();
        let Some(first) = reading.first.clone() else { return Err(damage.unwrap_or_else(|| empty(path))) };
        let (lines, open_line, is_cut) =
            (std::mem::take(&mut reading.lines), reading.open_line, reading.is_cut);
        let (Session { messages, system, model }, partial) = reading.end()?;
        let system = system.map(|content| (1, Message::System { content }));
        let messages = system.into_iter().chain(lines.into_iter().zip(messages));
        let messages = messages.chain(partial.into_iter().map(|message| (open_line, message))).collect();
        Ok(Self { first, model, messages, damage, is_cut })
    }
}

/// The lines of a session so far.
struct Reading<'p> {
    path: &'p Path,
    /// The number of the last line.
    number: usize,
    first: Option<Line>,
    session: Session,
    /// The line of each message.
    lines: Vec<usize>,
    /// The events of an incomplete reply, and the line of the first one.
    open: Vec<Event>,
    open_line: usize,
    attachments: AttachmentStore,
    length: u64,
    lacks_line_end: bool,
    /// Whether an incomplete last line was ignored.
    is_cut: bool,
}

impl<'p> Reading<'p> {
    fn new(path: &'p Path) -> Self {
        Self {
            path,
            number: 0,
            first: None,
            session: Session::default(),
            lines: Vec::new(),
            open: Vec::new(),
            open_line: 0,
            attachments: AttachmentStore::default(),
            length: 0,
            lacks_line_end: false,
            is_cut: false,
        }
    }

    fn malformed(&self, message: String) -> SessionError {
        SessionError::Malformed { path: self.path.to_owned(), line: self.number, message }
    }

    /// Takes all lines of a file.
    fn lines_of(&mut self, file: &mut File) -> Result<(), SessionError> {
        let path = self.path;
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        if file.metadata().map_err(io)?.len() > MAX_BYTES {
            return Err(SessionError::TooLarge { path: path.to_owned() });
        }
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut reader = BufReader::new(file);
        loop {
            let mut text = Vec::new();
            let count = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut text).map_err(io)? as u64;
            if count == 0 {
                return Ok(());
            }
            self.number += 1;
            if !text.ends_with(b"\n") {
                if count == MAX_LINE {
                    return Err(self.malformed(format!("line longer than {} MiB", MAX_LINE >> 20)));
                }
                // Ignore an incomplete last line. An incomplete first line is parsed, because nothing precedes it.
                if self.first.is_some() {
                    self.is_cut = true;
                    return Ok(());
                }
                self.lacks_line_end = true;
            }
            self.length += count;
            if !text.trim_ascii().is_empty() {
                let line = read_line(&text, self.number, path)?;
                self.line(line)?;
            }
        }
    }

    fn line(&mut self, line: Line) -> Result<(), SessionError> {
        if self.first.is_none() {
            return match line {
                Line::Chat { version: VERSION, .. } => {
                    self.first = Some(line);
                    Ok(())
                }
                Line::Chat { version, .. } => {
                    Err(SessionError::Version { path: self.path.to_owned(), found: version })
                }
                Line::Message { .. }
                | Line::Rewind { .. }
                | Line::Event { .. }
                | Line::Attachment(_)
                | Line::System { .. }
                | Line::Model { .. } => {
                    Err(self.malformed(String::from("missing session header in the first line")))
                }
            };
        }
        match line {
            Line::Chat { .. } => return Err(self.malformed(String::from("duplicate session header"))),
            Line::Message { message } => {
                self.open.clear();
                self.session.messages.push(message);
                self.lines.push(self.number);
            }
            Line::Rewind { to } => {
                let length = self.session.messages.len();
                if to > length {
                    return Err(self.malformed(format!("cannot rewind to message {to} of {length}")));
                }
                self.open.clear();
                self.session.messages.truncate(to);
                self.lines.truncate(to);
            }
            Line::Event { event } => {
                if self.open.is_empty() {
                    self.open_line = self.number;
                }
                self.open.push(event);
            }
            Line::Attachment(data) => self.attachments.add(&data),
            Line::System { text } => self.session.system = text,
            Line::Model { name } => self.session.model = Some(name),
        }
        Ok(())
    }

    /// Returns the session in the file, and the messages of its incomplete reply.
    fn end(self) -> Result<(Session, Vec<Message>), SessionError> {
        if self.first.is_none() {
            return Err(empty(self.path));
        }
        let Self { mut session, open, attachments, .. } = self;
        let mut partial = if open.is_empty() { Vec::new() } else { messages_of(open) };
        for messages in [&mut session.messages, &mut partial] {
            attachments.restore(messages.iter_mut().flat_map(Message::attachments_mut));
        }
        Ok((session, partial))
    }
}

fn empty(path: &Path) -> SessionError {
    SessionError::Malformed { path: path.to_owned(), line: 1, message: String::from("the file is empty") }
}

/// Parses a line. Error messages do not contain the position within the line.
fn read_line(text: &[u8], number: usize, path: &Path) -> Result<Line, SessionError> {
    serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(&message);
        let is_recording = number == 1
            && serde_json::from_slice::<Value>(text).is_ok_and(|line| line["record"] == "session");
        let message = if is_recording { "this is a recording of `deftool run --record`" } else { message };
        let message = cut(&clean(message), 200);
        SessionError::Malformed { path: path.to_owned(), line: number, message }
    })
}

/// Restores the messages of an incomplete reply.
fn messages_of(events: Vec<Event>) -> Vec<Message> {
    let (mut text, mut tool_calls, mut results) = (String::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Text { text: more } => text.push_str(&more),
            Event::ToolCall { id, name, arguments } => {
                tool_calls.push(MessageToolCall::new(id, name, arguments.to_string()));
            }
            Event::ToolFinished { id, result, attachments, error, .. } => {
                let content = match (result, error) {
                    (_, Some(error)) => json!({ "error": error }),
                    (result, None) => result.unwrap_or_default(),
                };
                let content = cut_result(content.to_string(), DEFAULT_MAX_RESULT);
                results.push(Message::Tool { tool_call_id: id, content, attachments });
            }
            // Not stored.
            _ => {}
        }
    }
    let mut content = text.trim().to_owned();
    if tool_calls.is_empty() && !content.is_empty() {
        content = format!("{content}\n\n{INTERRUPTED}");
    }
    let reply = Message::Assistant { content, tool_calls, received: None };
    std::iter::once(reply).chain(results).collect()
}
