//! The format of a recording: its lines, and the inputs of a request.

use deftool_chat::request::{Event, Failure, RequestOptions, RunStart};
use deftool_chat::{Api, BodyFallbacks, Capabilities, Message};
use deftool_lang::tool::AttachmentData;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::RequestTrace;

/// The first bytes of every recording.
pub(super) const BEGINNING: &str = r#"{"record":"session""#;

/// The inputs of a request from its environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The request's id.
    pub request_id: String,
    /// The job's name, or empty.
    pub job_name: String,
    /// The worker's name.
    pub worker: String,
    /// The conversation at the start of the request.
    pub conversation: Vec<Message>,
    /// Options of the request, in addition to the worker's configuration.
    #[serde(default, skip_serializing_if = "RequestOptions::is_empty")]
    pub options: RequestOptions,
    /// The URL of the server, as in messages.
    pub url: String,
    /// The API. Recordings without it use chat completions.
    #[serde(default)]
    pub api: Api,
    /// The model's name.
    pub model: String,
    /// Capabilities of the server.
    pub server: Capabilities,
    /// Request variants that the server required in earlier requests.
    #[serde(default, skip_serializing_if = "BodyFallbacks::is_empty")]
    #[serde(rename = "swaps")]
    pub body_fallbacks: BodyFallbacks,
    /// Whether the model's template supports several calls in one message.
    pub parallel_tool_calls: bool,
    /// Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// Name of the time zone.
    pub zone: String,
    /// Local time in the BIOS.
    pub local_time: String,
    /// Seed of call ids.
    pub id_seed: u64,
    /// Version of deftool that wrote the recording.
    pub engine: String,
    /// The trace that the request belongs to.
    #[serde(default, skip_serializing_if = "RequestTrace::is_empty")]
    pub trace: RequestTrace,
}

impl Session {
    /// Returns the start of the request machine.
    pub fn run_start(&self) -> RunStart {
        RunStart {
            request_id: self.request_id.clone(),
            job_name: self.job_name.clone(),
            conversation: self.conversation.clone(),
            options: self.options.clone(),
            submitted_at_ms: self.submitted_at_ms,
            zone: self.zone.clone(),
            local_time: self.local_time.clone(),
            id_seed: self.id_seed,
        }
    }
}

/// Returns the API of a recorded request. It may differ from the session's, because some models require the responses
/// API.
pub(crate) fn api_of(session: Api, body: &Value) -> Api {
    match session {
        Api::Messages => Api::Messages,
        Api::ChatCompletions | Api::Responses if body.get("input").is_some() => Api::Responses,
        Api::ChatCompletions | Api::Responses => Api::ChatCompletions,
    }
}

/// Returns the messages of a recorded request.
pub(crate) fn conversation_member(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions | Api::Messages => "messages",
        Api::Responses => "input",
    }
}

/// One line of a recording. Times are milliseconds since the submission of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[allow(missing_docs)] // Names and types are enough for most fields.
pub enum Line {
    /// The first line of a request.
    Session {
        version: u32,
        #[serde(flatten)]
        session: Box<Session>,
    },
    /// A chat request.
    Request {
        turn: u32,
        attempt: u32,
        at_ms: u64,
        /// Digest of the tool set of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<String>,
        /// Generation of the tool set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
        body: Value,
    },
    /// The head of a response.
    Response {
        at_ms: u64,
        status: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        should_retry: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
    },
    /// A chunk of a body.
    Data {
        at_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// A chunk that is not valid UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<Vec<u8>>,
    },
    /// The end of a body, or the error that interrupted it.
    End {
        at_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The connection to the server failed, or was lost before the head of a response.
    NoConnection {
        at_ms: u64,
        message: String,
        refused: bool,
        /// Whether at least a part of the request was sent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sent: bool,
    },
    /// An event of the request. The text and the reasoning of a reply are in its body.
    Event { at_ms: u64, event: Event },
    /// The bytes of an image or audio, once in the file. Other lines name them by their digest, also request bodies.
    Attachment(AttachmentData),
    /// A log line of a script.
    Log {
        at_ms: u64,
        /// The call.
        id: String,
        text: String,
    },
    /// The end of the request by something other than the model.
    Stopped(Stopped),
}

impl Line {
    /// Returns the line of a chat request with null as its body. Other lines stay as they are.
    pub(super) fn without_body(self) -> Self {
        match self {
            Self::Request { turn, attempt, at_ms, tools, generation, body: _ } => {
                Self::Request { turn, attempt, at_ms, tools, generation, body: Value::Null }
            }
            line => line,
        }
    }
}

/// The end of a request by a timer, the transport or a cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// Milliseconds since the submission of the request.
    pub at_ms: u64,
    /// `None`: it was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Whether it ended before its first turn, usually while it waited for a slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_queue: bool,
    /// Whether it ended while it waited for the next attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_retry: bool,
}

impl Stopped {
    /// Returns the end of a request that had begun its first turn.
    pub fn of(at_ms: u64, failure: Option<Failure>) -> Self {
        Self { at_ms, failure, in_queue: false, in_retry: false }
    }
}
