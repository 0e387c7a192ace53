//! The types of a timeline.
//!
//! A reader in another language may change large numbers, so JSON values of tools are serialised as JSON text.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::path::PathBuf;

use deftool_chat::request::Approval;
use deftool_chat::{Message, Usage};
use deftool_lang::spec::BudgetUnit;
use deftool_lang::tool::Attachment;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::json_text::json_text;
use crate::recording::Session;
use crate::stored::StoredFileError;

/// Members of an outcome that are entries of their own.
const OUTCOME_TEXTS: [&str; 4] = ["text", "signals", "reasoning", "raw_text"];

/// The requests of one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The kind of file.
    pub source: TimelineSource,
    /// The parts of the file that cannot be read, one message each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// The requests in submission order; at least one.
    pub requests: Vec<RequestTimeline>,
}

/// The kind of file that a timeline was built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineSource {
    /// A recording, with the time of each entry.
    Recording,
    /// Requests of a journal, with the time of each entry.
    Journal,
    /// The events of `deftool run --json`. Only their order is known, so all times are 0.
    Events,
    /// A session of `deftool chat`. Only the order of its messages is known, so all times are 0.
    Session,
}

/// One request.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestTimeline {
    /// The request's id; empty if unknown.
    pub id: String,
    /// The text of the last message of the user; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The job's name, or empty.
    pub job: String,
    /// The worker's name.
    pub worker: String,
    /// The model's name.
    pub model: String,
    /// The URL of the server; empty if unknown.
    pub url: String,
    /// The version of deftool that ran the request; empty if unknown.
    pub engine: String,
    /// Unix time of the submission in milliseconds; 0 if unknown.
    pub submitted_at_ms: u64,
    /// Local time of the submission and its time zone; empty if unknown.
    pub local_time: String,
    /// The last time of an entry.
    pub end_ms: u64,
    /// The outcome without its texts and signals, which are entries; empty if the request did not finish.
    pub outcome: Map<String, Value>,
    /// The entries, ordered by time.
    pub entries: Vec<Entry>,
    /// The images of the prompt and of results, by their digests, as data URLs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
}

impl RequestTimeline {
    /// Returns the timeline of a request without its entries.
    pub(super) fn of_session(session: &Session) -> Self {
        Self {
            id: session.request_id.clone(),
            prompt: prompt_of(&session.conversation).to_owned(),
            job: session.job_name.clone(),
            worker: session.worker.clone(),
            model: session.model.clone(),
            url: session.url.clone(),
            engine: session.engine.clone(),
            submitted_at_ms: session.submitted_at_ms,
            local_time: format!("{} ({})", session.local_time, session.zone),
            ..Self::default()
        }
    }

    /// Adds images. Audio, and images whose bytes were not stored, are only lines of the text.
    pub(super) fn add_images<'a>(&mut self, attachments: impl IntoIterator<Item = &'a Attachment>) {
        for attachment in attachments.into_iter().filter(|attachment| attachment.media_type().is_image()) {
            if !self.images.contains_key(attachment.sha256())
                && let Some(url) = attachment.data_url()
            {
                self.images.insert(attachment.sha256().to_owned(), url);
            }
        }
    }
}

/// One entry of a timeline. Times are milliseconds since the request was submitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The start.
    pub at_ms: u64,
    /// The end, for entries with a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<u64>,
    /// The turn, from 1; 0 before the first turn.
    pub turn: u32,
    /// The line of the file where the entry begins, from 1; in a journal, the number of its entry.
    pub line: usize,
    /// The content.
    #[serde(flatten)]
    pub kind: EntryKind,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryKind {
    /// A chat request and its reply.
    Turn(Box<TurnEntry>),
    /// Reasoning of the model.
    Reasoning(Stream),
    /// Text of the model.
    Text(Stream),
    /// A tool call.
    Call(Box<CallEntry>),
    /// A request for the user's approval and the answer.
    Approval {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The answer; `None` if there was none.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<Approval>,
    },
    /// An exit call.
    Signal {
        /// The exit tool.
        name: String,
        /// The arguments: an object, or text that is not an object as a string.
        #[serde(serialize_with = "as_text")]
        arguments: Value,
        /// The reason why the arguments are invalid.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments_error: Option<String>,
    },
    /// A wait before a chat request is sent again.
    Retry {
        /// The number of the next attempt; 2 for the first retry.
        attempt: u32,
        /// The reason, if known.
        detail: String,
    },
    /// A failure of the server, the connection or the worker.
    Fault {
        /// The kind, such as `http_503` or `stall_timeout`.
        name: String,
        /// Details for the user.
        detail: String,
    },
    /// A new generation of the tools.
    Reloaded {
        /// The generation's number.
        generation: u64,
        /// The changes.
        detail: String,
    },
    /// The request continued after its process ended.
    Resumed {
        /// The text of the interrupted reply, which does not count.
        superseded: String,
    },
    /// A problem that does not fail the request.
    Warning {
        /// The message.
        message: String,
    },
    /// The end of the request. [`RequestTimeline::outcome`] has the details.
    Finished,
}

/// A chat request and the measurements of its reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TurnEntry {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The HTTP status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the headers of the answer arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ms: Option<u64>,
    /// When the first reasoning, text or call arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// The tool budget at the start of the turn, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLeft>,
    /// The generation of the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The messages that the previous chat request did not contain.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub messages: Vec<Value>,
    /// The other members of the body, if they differ from the previous chat request.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub settings: Option<Value>,
    /// The tool definitions, if they differ from the previous chat request.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub tools: Option<Value>,
    /// The number of offered tools.
    pub tool_count: usize,
    /// The finish reason that the server sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Token counts of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Remaining units of the tool budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BudgetLeft {
    /// The remaining units.
    pub left: u32,
    /// The unit, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<BudgetUnit>,
}

/// Text as it was streamed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stream {
    /// The complete text.
    pub text: String,
    /// For each delta: its time, and its length in UTF-16 units.
    pub deltas: Vec<(u64, usize)>,
}

/// A call of a normal tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallEntry {
    /// The call's id in the conversation; empty if the call was not answered.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The state at the end of the request.
    pub state: CallState,
    /// The arguments: an object, or invalid arguments as a string.
    #[serde(serialize_with = "as_text")]
    pub arguments: Value,
    /// The reason why the arguments are not an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// The lossless repairs of the call, each with its path in the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// When the model began and finished writing the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_ms: Option<(u64, u64)>,
    /// Whether the call was written as text.
    pub as_text: bool,
    /// When the tool started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub result: Option<Value>,
    /// The images and audio of the result. See [`RequestTimeline::images`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The error: `kind`, `message`, and optionally `path` and `details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Log lines of the tool. Recordings and journals contain them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
}

impl CallEntry {
    /// Returns a call that was not run.
    pub(super) fn not_run() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            state: CallState::NotRun,
            arguments: Value::Null,
            arguments_error: None,
            repairs: Vec::new(),
            written_ms: None,
            as_text: false,
            started_ms: None,
            result: None,
            attachments: Vec::new(),
            error: None,
            logs: Vec::new(),
        }
    }
}

/// The state of a call at the end of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The tool returned a result.
    Ok,
    /// The tool failed.
    Failed,
    /// The user refused the call.
    Refused,
    /// The tool was started and has no result.
    Abandoned,
    /// The tool was not started, for example because the arguments are invalid.
    NotRun,
}

/// An error of reading a file for a timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file has none of the expected formats.
    #[error("{}: {reason}", path.display())]
    Unknown {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The file is damaged.
    #[error(transparent)]
    Stored(#[from] StoredFileError),
}

/// The time and the line of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) at_ms: u64,
    pub(super) line: usize,
}

impl Entry {
    /// Creates an entry. [`number_turns`] sets its turn.
    pub(super) fn new(Place { at_ms, line }: Place, end_ms: Option<u64>, kind: EntryKind) -> Self {
        Self { at_ms, end_ms, turn: 0, line, kind }
    }
}

/// Appends a delta to the last entry, or begins a stream if that entry has a different kind.
pub(super) fn push_delta(entries: &mut Vec<Entry>, kind: fn(Stream) -> EntryKind, text: &str, place: Place) {
    let empty = kind(Stream::default());
    if entries.last().is_none_or(|last| discriminant(&last.kind) != discriminant(&empty)) {
        entries.push(Entry::new(place, None, empty));
    }
    if let Some(Entry { kind: EntryKind::Text(stream) | EntryKind::Reasoning(stream), end_ms, .. }) =
        entries.last_mut()
    {
        stream.text.push_str(text);
        stream.deltas.push((place.at_ms, text.encode_utf16().count()));
        *end_ms = Some(place.at_ms);
    }
}

fn as_text<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&json_text(value))
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn as_optional_text<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(json_text).serialize(serializer)
}

fn as_texts<S: Serializer>(values: &[Value], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(json_text))
}

/// Returns the text of the last message of the user, or an empty text.
pub fn prompt_of(conversation: &[Message]) -> &str {
    let prompt = conversation.iter().rev().find_map(|message| match message {
        Message::User { content, .. } => Some(content.as_str()),
        _ => None,
    });
    prompt.unwrap_or_default()
}

/// Returns the outcome without the members that are entries.
pub(super) fn short_outcome(outcome: &Value) -> Map<String, Value> {
    let mut outcome = outcome.as_object().cloned().unwrap_or_default();
    outcome.retain(|member, _| !OUTCOME_TEXTS.contains(&member.as_str()));
    outcome
}

/// Returns a message as JSON.
pub(super) fn json_of(message: &Message) -> Value {
    serde_json::to_value(message).unwrap_or_default()
}

/// Sets the turn of each entry. A repeated attempt belongs to the same turn.
pub(super) fn number_turns(entries: &mut [Entry]) {
    let mut turn = 0;
    for entry in entries {
        if matches!(&entry.kind, EntryKind::Turn(started) if started.attempt <= 1) {
            turn += 1;
        }
        entry.turn = turn;
    }
}
