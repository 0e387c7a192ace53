//! Reads session files. Their content is untrusted.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use deftool_chat::request::{Event, INTERRUPTED, cut_result, normalize_conversation};
use deftool_chat::{Message, MessageToolCall};
use deftool_lang::spec::DEFAULT_MAX_RESULT;
use deftool_lang::tool::AttachmentStore;
use deftool_process::files::open_regular;
use serde_json::{Value, json};

use super::line::{Line, Session};
use crate::stored::{LineError, ReadLines, StoredFileError, StoredForm, read_lines};

pub(super) const FORM: StoredForm = StoredForm::Session;

/// The reason why a recording is not a session.
const RECORDING: &str = "this is a recording of `deftool run --record`";

/// A session that was read from a file.
pub(super) struct ReadSession {
    /// The session, including a restored partial reply. Its messages are a valid conversation.
    pub(super) restored: Session,
    /// The messages in the file.
    pub(super) written: Vec<Message>,
    /// The end of the file.
    pub(super) lines: ReadLines,
}

/// Reads all lines of a session.
pub(super) fn read(file: &File, path: &Path) -> Result<ReadSession, StoredFileError> {
    let (reading, mut lines) = Reading::of(file, path)?;
    if let Some(damage) = lines.damage.take() {
        return Err(damage);
    }
    let (session, partial) = reading.end();
    let written = session.messages.clone();
    let mut messages = session.messages;
    messages.extend(partial);
    let restored = Session { messages: normalize_conversation(messages), ..session };
    Ok(ReadSession { restored, written, lines })
}

/// The readable part of a session, to show it.
pub struct SessionPart {
    /// The first line.
    pub first: Line,
    /// The model, if it is not the worker's.
    pub model: Option<String>,
    /// The system message of the session, the messages, and those of an incomplete reply, each with its line.
    pub messages: Vec<(usize, Message)>,
    /// The reason why the rest cannot be read.
    pub damage: Option<StoredFileError>,
    /// Whether the last line is incomplete.
    pub is_cut: bool,
}

impl SessionPart {
    /// Reads the file at `path` until its end or its first invalid line.
    ///
    /// # Errors
    /// If the file cannot be read, or its first line is invalid.
    pub fn read(path: &Path) -> Result<Self, StoredFileError> {
        let file = open_regular(path).map_err(StoredFileError::io(FORM, path))?;
        let (mut reading, ReadLines { damage, is_cut, .. }) = Reading::of(file, path)?;
        let Some(first) = reading.first.clone() else { return Err(damage.unwrap_or_else(|| empty(path))) };
        let (lines, open_line) = (std::mem::take(&mut reading.lines), reading.open_line);
        let (Session { messages, system, model, worker: _ }, partial) = reading.end();
        let system = system.map(|content| (1, Message::System { content }));
        let messages = system.into_iter().chain(lines.into_iter().zip(messages));
        let messages = messages.chain(partial.into_iter().map(|message| (open_line, message))).collect();
        Ok(Self { first, model, messages, damage, is_cut })
    }
}

/// The lines of a session so far.
#[derive(Default)]
struct Reading {
    first: Option<Line>,
    session: Session,
    /// The line of each message.
    lines: Vec<usize>,
    /// The events of an incomplete reply, and the line of the first one.
    open: Vec<Event>,
    open_line: usize,
    attachments: AttachmentStore,
}

impl Reading {
    /// Takes the lines of a file. Without damage, there is at least the first one.
    fn of(file: impl Read, path: &Path) -> Result<(Self, ReadLines), StoredFileError> {
        let mut reading = Self::default();
        let mut lines = read_lines(file, FORM, path, |number, text| {
            if reading.first.is_none() {
                reading.header(text)
            } else {
                reading.line(number, serde_json::from_slice(text)?)
            }
        })?;
        if reading.first.is_none() && lines.damage.is_none() {
            lines.damage = Some(empty(path));
        }
        Ok((reading, lines))
    }

    fn header(&mut self, text: &[u8]) -> Result<(), LineError> {
        match serde_json::from_slice(text) {
            Ok(Line::Chat { version, .. }) if version != FORM.version() => Err(LineError::Version(version)),
            Ok(first @ Line::Chat { .. }) => {
                self.first = Some(first);
                Ok(())
            }
            Ok(_) => Err("missing session header in the first line".into()),
            Err(error) => {
                let value = serde_json::from_slice::<Value>(text);
                let is_recording = value.is_ok_and(|line| line["record"] == "session");
                Err(if is_recording { RECORDING.into() } else { error.into() })
            }
        }
    }

    fn line(&mut self, number: usize, line: Line) -> Result<(), LineError> {
        match line {
            Line::Chat { .. } => return Err("duplicate session header".into()),
            Line::Message { message } => {
                self.open.clear();
                self.session.messages.push(message);
                self.lines.push(number);
            }
            Line::Rewind { to } => {
                let length = self.session.messages.len();
                if to > length {
                    let message = format!("cannot rewind to message {to} of {length}");
                    return Err(LineError::Misplaced(message));
                }
                self.open.clear();
                self.session.messages.truncate(to);
                self.lines.truncate(to);
            }
            Line::Event { event } => {
                if self.open.is_empty() {
                    self.open_line = number;
                }
                self.open.push(event);
            }
            Line::Attachment(data) => self.attachments.add(&data),
            Line::System { text } => self.session.system = text,
            Line::Model { name } => self.session.model = Some(name),
            Line::Worker { name } => {
                self.session.worker = Some(name);
                self.session.model = None;
            }
        }
        Ok(())
    }

    /// Returns the session in the file, and the messages of its incomplete reply.
    fn end(self) -> (Session, Vec<Message>) {
        let Self { mut session, open, attachments, .. } = self;
        let mut partial = if open.is_empty() { Vec::new() } else { messages_of(open) };
        for messages in [&mut session.messages, &mut partial] {
            attachments.restore(messages.iter_mut().flat_map(Message::attachments_mut));
        }
        (session, partial)
    }
}

fn empty(path: &Path) -> StoredFileError {
    StoredFileError::malformed(FORM, path, 1, "the file is empty")
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
