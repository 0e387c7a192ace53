//! Recorded requests: one JSON object a line, written as it happens, so that a crash loses nothing.
//!
//! A file holds the requests of one session in the order they were submitted; each begins with its `session` line, and
//! from the second on every line carries the `request` that it belongs to, since requests may overlap. It holds what
//! the model's side said and when, and everything the engine would otherwise draw from the world: clock, zone, ids,
//! model, what the probes found, which tools were offered; what tools were called with and gave, what people answered,
//! what was reloaded, and how each request ended.
//!
//! Version 1 had one request, and of the tool calls only the times. It is still read.
//!
//! | file | |
//! |---|---|
//! | `recorder` | writing, redacted by `mask` of [`super::secrets`] |
//! | `reply` | redaction of a reply whose secret is spelled over many pieces |
//! | `read` | reading |

mod read;
mod recorder;
mod reply;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secrets::Mask;
use crate::chat::{Api, Capabilities, Message, Swaps};
use crate::request::{Approval, Failure, RequestOptions};
use crate::tool::ToolError;

pub use read::{RecordedRequest, Recording};
pub use recorder::Recorder;
pub(super) use recorder::RequestRecorder;
pub(super) use reply::{Channel, Frame, frames_of, rewrite_texts, texts_of};

/// Version of the format that is written.
pub(super) const VERSION: u32 = 2;

/// Values that are nested deeper are written as their JSON text: a reader would refuse the line.
const MAX_DEPTH: usize = 100;

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
    /// Version of the engine that wrote it; empty in old recordings.
    #[serde(default)]
    pub engine: String,
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
        /// Digest of the tool set that the turn was sent with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<String>,
        /// Number of the generation that it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
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
    /// A call that was answered; all that version 1 says of it.
    Tool {
        started_ms: u64,
        finished_ms: u64,
    },
    ToolStarted {
        at_ms: u64,
        id: String,
        name: String,
        arguments: Value,
    },
    ToolFinished {
        at_ms: u64,
        id: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "there")]
        result: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// What a person answered, or the worker in place of one.
    Approval {
        at_ms: u64,
        id: String,
        name: String,
        #[serde(flatten)]
        answer: Approval,
    },
    /// The turn that follows is sent with another generation of the tools.
    Reloaded {
        at_ms: u64,
        turn: u32,
        generation: u64,
        tools: String,
        detail: String,
    },
    Stopped(Stopped),
    /// How the request ended, as the `finished` event says it.
    Finished {
        at_ms: u64,
        outcome: Value,
    },
}

/// A member that is there, `null` included.
fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A timer, the transport or the submitter ended the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopped {
    pub(super) at_ms: u64,
    /// `None`: it was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Failure>,
    /// Before its first turn: it waited for its slot as a rule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_queue: bool,
}

impl Stopped {
    pub(super) fn of(at_ms: u64, failure: Option<Failure>) -> Self {
        Self { at_ms, failure, in_queue: false }
    }
}

impl Line {
    /// Takes the secrets out of what is not the format's own. A reply's pieces are `reply`'s.
    fn redact(&mut self, mask: &Mask) {
        match self {
            Self::Session { session, .. } => {
                for text in [&mut session.job_name, &mut session.url] {
                    mask.in_place(text);
                }
                session.conversation.iter_mut().for_each(|message| redact_message(message, mask));
                let RequestOptions { model: _, system_prompt, params, tools: _ } = &mut session.options;
                if let Some(text) = system_prompt {
                    mask.in_place(text);
                }
                params.values_mut().for_each(|value| mask.value(value));
            }
            Self::Request { body, .. } => mask.value(body),
            Self::Response { location, .. } => location.iter_mut().for_each(|text| mask.in_place(text)),
            Self::End { error, .. } => error.iter_mut().for_each(|text| mask.in_place(text)),
            Self::NoConnection { message, .. } => mask.in_place(message),
            Self::ToolStarted { arguments, .. } => mask.value(arguments),
            Self::ToolFinished { result, error, .. } => {
                if let Some(value) = result {
                    mask.value(value);
                }
                if let Some(ToolError { message, path, details, .. }) = error {
                    let texts = [Some(message), path.as_mut(), details.as_mut()];
                    texts.into_iter().flatten().for_each(|text| mask.in_place(text));
                }
            }
            Self::Approval { answer, .. } => match answer {
                Approval::Allowed => {}
                Approval::Refused { reason } => mask.in_place(reason),
            },
            Self::Reloaded { detail, .. } => mask.in_place(detail),
            Self::Stopped(Stopped { failure, .. }) => {
                if let Some(failure) = failure {
                    mask.in_place(&mut failure.detail);
                }
            }
            Self::Finished { outcome, .. } => redact_outcome(outcome, mask),
            Self::Data { .. } | Self::Tool { .. } => {}
        }
    }

    /// Keeps every value readable, however deep it is.
    fn fit(&mut self) {
        match self {
            Self::Request { body: value, .. }
            | Self::ToolStarted { arguments: value, .. }
            | Self::ToolFinished { result: Some(value), .. }
            | Self::Finished { outcome: value, .. } => fit(value),
            Self::Session { .. }
            | Self::Response { .. }
            | Self::Data { .. }
            | Self::End { .. }
            | Self::NoConnection { .. }
            | Self::Tool { .. }
            | Self::ToolFinished { result: None, .. }
            | Self::Approval { .. }
            | Self::Reloaded { .. }
            | Self::Stopped(_) => {}
        }
    }
}

/// Writes what is nested too deeply as its JSON text.
pub(super) fn fit(value: &mut Value) {
    fn fit_below(value: &mut Value, left: usize) {
        if !matches!(value, Value::Array(_) | Value::Object(_)) {
            return;
        }
        if left == 0 {
            *value = Value::String(value.to_string());
            return;
        }
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| fit_below(item, left - 1)),
            Value::Object(members) => members.values_mut().for_each(|member| fit_below(member, left - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    fit_below(value, MAX_DEPTH);
}

pub(crate) fn redact_message(message: &mut Message, mask: &Mask) {
    match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            mask.in_place(content);
        }
        Message::Assistant { content, tool_calls } => {
            mask.in_place(content);
            for call in tool_calls {
                mask.in_place(&mut call.function.arguments);
            }
        }
    }
}

/// The members of an outcome that hold what was said.
const SAID: [&str; 5] = ["detail", "text", "signals", "reasoning", "raw_text"];

pub(super) fn redact_outcome(outcome: &mut Value, mask: &Mask) {
    for member in SAID {
        if let Some(value) = outcome.get_mut(member) {
            mask.value(value);
        }
    }
}

impl RecordingError {
    /// What is wrong, for a reader who knows which file it is.
    pub fn without_path(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Malformed { line, message, .. } => {
                format!("line {line}: this is no line of a recording: {message}")
            }
            Self::TooLarge { limit, .. } => {
                format!("larger than {} MiB, which is no recording of a session", limit >> 20)
            }
            Self::Version { found, .. } => {
                format!("a recording of format {found}; this deftool reads formats 1 to {VERSION}")
            }
        }
    }
}

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be opened, written or read.
    #[error("recording {}: {}", path.display(), self.without_path())]
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
    /// It is larger than what is read.
    #[error("{}: {}", path.display(), self.without_path())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// Another version's format.
    #[error("{}: {}", path.display(), self.without_path())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}
