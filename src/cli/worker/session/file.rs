//! Session files: one JSON object per line, appended immediately, so that a killed process loses only incomplete data.
//!
//! A message is written when it is complete. Until then, an incomplete reply is written as events, from which a reader
//! restores the partial reply. The file is append-only; `rewind` removes messages. Secrets are redacted
//! ([`Line::redacted`]).

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Event, INTERRUPTED, cut_result, normalize_conversation};
use deftool_chat::{Message, MessageToolCall};
use deftool_lang::spec::DEFAULT_MAX_RESULT;
use deftool_lang::tool::{AttachmentData, AttachmentStore};
use deftool_process::files::{create_new_private, lock_private, open_private};
use deftool_record::Redaction;
use serde_json::{Value, json};

use super::model::{Line, Session, VERSION};
use super::paths::is_markdown;
use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{clean, cut};

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Maximum size of a session file, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// Maximum wait for the lock of a session.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

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

/// A session file open for writing.
pub(in crate::cli) struct SessionFile {
    path: PathBuf,
    file: File,
    redaction: Arc<Redaction>,
    /// The conversation in the file.
    written: Vec<Message>,
    /// The digests of the images and audio in the file.
    attachments: HashSet<String>,
}

impl SessionFile {
    /// Creates a session file.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub(in crate::cli) fn create(
        path: &Path,
        first: &Line,
        redaction: Arc<Redaction>,
    ) -> Result<Self, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let file = create_new_private(path, File::options().append(true)).map_err(io)?;
        lock(&file, path)?;
        let (written, attachments) = (Vec::new(), HashSet::new());
        let mut session = Self { path: path.to_owned(), file, redaction, written, attachments };
        session.write(std::slice::from_ref(first))?;
        Ok(session)
    }

    /// Opens a session file to continue it, and returns its content. Removes an incomplete last line.
    ///
    /// # Errors
    /// If the file cannot be read, is not a session, or is locked by another process.
    pub(in crate::cli) fn resume(
        path: &Path,
        redaction: Arc<Redaction>,
    ) -> Result<(Self, Session), SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut file = open_private(path, File::options().read(true).append(true)).map_err(io)?;
        lock(&file, path)?;
        let ReadSession { restored: session, written, length, lacks_line_end } = read(&mut file, path)?;
        file.set_len(length).map_err(io)?;
        if lacks_line_end {
            file.write_all(b"\n").map_err(io)?;
        }
        let attachments = written.iter().flat_map(Message::attachments);
        let stored = attachments.filter(|attachment| attachment.bytes().is_some());
        let attachments = stored.map(|attachment| attachment.sha256().to_owned()).collect();
        let mut resumed = Self { path: path.to_owned(), file, redaction, written, attachments };
        // Store the restored partial reply.
        resumed.write_messages(&session.messages)?;
        Ok((resumed, session))
    }

    /// Reads a session without changing its file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a session.
    pub(in crate::cli) fn read(path: &Path) -> Result<Session, SessionError> {
        let io = |source| SessionError::Io { path: path.to_owned(), source };
        let mut file = open_private(path, File::options().read(true)).map_err(io)?;
        Ok(read(&mut file, path)?.restored)
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines that change the conversation in the file to `messages`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(in crate::cli) fn write_messages(&mut self, messages: &[Message]) -> Result<(), SessionError> {
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

    /// Appends lines in a single write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(in crate::cli) fn write(&mut self, lines: &[Line]) -> Result<(), SessionError> {
        let mut text = String::new();
        for line in lines {
            let data = AttachmentData::unwritten(&mut self.attachments, line.attachments());
            let data: Vec<Line> = data.into_iter().map(Line::Attachment).collect();
            for line in data.iter().chain([line]) {
                text.push_str(&line.redacted(&self.redaction).to_string());
                text.push('\n');
            }
        }
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| SessionError::Io { path: self.path.clone(), source })
    }
}

/// Returns the error of a session that cannot be resumed.
pub(in crate::cli) fn resume_error(path: &Path, error: SessionError) -> CliError {
    CliError::Usage(match error {
        SessionError::Malformed { .. } if is_markdown(path) => format!(
            "{} is a Markdown copy; use `last` for the newest session of this project, or /save NAME.jsonl for a copy that can be loaded",
            path.display()
        ),
        error => error.to_string(),
    })
}

/// Returns whether an event of an incomplete reply is stored.
pub(in crate::cli) fn is_stored(event: &Event) -> bool {
    matches!(event, Event::Text { .. } | Event::ToolCall { .. } | Event::ToolFinished { .. })
}

/// Locks the file, so that it has one writer. The lock is released when the process ends. A session on a file system
/// without locks is not locked, nor on Windows, where a lock would also prevent reading.
fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    if cfg!(unix) && matches!(lock_private(file, LOCK_LIMIT), Ok(false)) {
        return Err(SessionError::InUse { path: path.to_owned() });
    }
    Ok(())
}

/// A session that was read from a file.
struct ReadSession {
    /// The session, including a restored partial reply. Its messages are a valid conversation.
    restored: Session,
    /// The messages in the file.
    written: Vec<Message>,
    /// The total length of the complete lines, in bytes.
    length: u64,
    /// Whether the last complete line has no line end.
    lacks_line_end: bool,
}

/// Reads all lines of a session.
fn read(file: &mut File, path: &Path) -> Result<ReadSession, SessionError> {
    let io = |source| SessionError::Io { path: path.to_owned(), source };
    if file.metadata().map_err(io)?.len() > MAX_BYTES {
        return Err(SessionError::TooLarge { path: path.to_owned() });
    }
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut reader = BufReader::new(file);
    let mut session: Option<Session> = None;
    let mut open: Vec<Event> = Vec::new();
    let mut attachments = AttachmentStore::default();
    let (mut length, mut number, mut lacks_line_end) = (0, 0, false);
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
                return Err(malformed(format!("line longer than {} MiB", MAX_LINE >> 20)));
            }
            // Ignore an incomplete last line. An incomplete first line is parsed, because nothing precedes it.
            if session.is_some() {
                break;
            }
            lacks_line_end = true;
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
                | Line::Attachment(_)
                | Line::System { .. }
                | Line::Model { .. } => {
                    return Err(malformed(String::from("missing session header in the first line")));
                }
            }
            continue;
        };
        match line {
            Line::Chat { .. } => return Err(malformed(String::from("duplicate session header"))),
            Line::Message { message } => {
                open.clear();
                session.messages.push(message);
            }
            Line::Rewind { to } => {
                if to > session.messages.len() {
                    let length = session.messages.len();
                    return Err(malformed(format!("cannot rewind to message {to} of {length}")));
                }
                open.clear();
                session.messages.truncate(to);
            }
            Line::Event { event } => open.push(event),
            Line::Attachment(data) => attachments.add(&data),
            Line::System { text } => session.system = text,
            Line::Model { name } => session.model = Some(name),
        }
    }
    let Some(mut session) = session else {
        let message = String::from("the file is empty");
        return Err(SessionError::Malformed { path: path.to_owned(), line: 1, message });
    };
    attachments.restore(session.messages.iter_mut().flat_map(Message::attachments_mut));
    let written = session.messages.clone();
    let mut messages = session.messages;
    let mut partial = messages_of(open);
    attachments.restore(partial.iter_mut().flat_map(Message::attachments_mut));
    messages.extend(partial);
    let session = Session { messages: normalize_conversation(messages), ..session };
    Ok(ReadSession { restored: session, written, length, lacks_line_end })
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
