//! The decoded stream of a reply: deltas as they arrive, then one [`Reply`] with the status.

use std::sync::Arc;

use deftool_lang::schema::{Arguments, Repair};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::body::BodyFallback;
use crate::dialect::Dialect;
use crate::finish::FinishMeaning;
use crate::received::Opaque;

/// One event of a reply's stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatEvent {
    /// More of the reply's text. The deltas of one read are merged into one event.
    Text {
        /// The delta.
        text: String,
    },
    /// More of the model's reasoning.
    Reasoning {
        /// The delta.
        text: String,
    },
    /// A part of a tool call was received. For progress only: the [`Reply`] contains the complete calls. A call is
    /// complete with its last delta.
    ToolCallDelta {
        /// The number of the call in the stream: [`RawCall::index`].
        index: usize,
        /// The part of the tool's name that was received.
        name: String,
        /// The size of the arguments that were received so far, in bytes.
        #[serde(default)]
        size: usize,
    },
    /// The server's progress in processing the prompt.
    Progress {
        /// Number of processed tokens.
        processed: u64,
        /// Number of tokens in the prompt.
        total: u64,
    },
    /// The reply ended. Always the last event, exactly once.
    Ended {
        /// The reply with its status.
        reply: Reply,
    },
}

/// A complete reply and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether the reply is complete, or why not.
    pub status: ReplyStatus,
    /// Tool calls in the order in which they began.
    pub calls: Vec<RawCall>,
    /// Number of stream events that could not be decoded and may have contained text or a part of a call.
    #[serde(default)]
    pub lost_frames: usize,
    /// The last finish reason that was not null, as the server sent it. For the Responses API, the equivalent finish
    /// reason of chat completions.
    pub finish_reason: Option<String>,
    /// The server's explanation of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_detail: Option<Box<str>>,
    /// Token counts, if the server sent them.
    pub usage: Option<Usage>,
    /// The model's name as the server sent it.
    pub model: Option<String>,
    /// The parts that only the server can read, without those of the calls.
    #[serde(default, skip_serializing_if = "Opaque::is_empty")]
    pub opaque: Box<Opaque>,
}

impl Reply {
    /// Creates a reply that contains only a server error.
    pub fn failed(error: ServerError) -> Self {
        let status = ReplyStatus::ServerError { error };
        Self {
            status,
            calls: Vec::new(),
            lost_frames: 0,
            finish_reason: None,
            finish_detail: None,
            usage: None,
            model: None,
            opaque: Box::default(),
        }
    }

    /// Whether the server reports that the model finished the reply.
    pub fn is_finished(&self, dialect: Dialect) -> bool {
        self.status == ReplyStatus::Complete
            && matches!(self.finish(dialect), Some(FinishMeaning::Finished | FinishMeaning::Called))
    }

    /// Returns the meaning of the finish reason, if it is known.
    pub fn finish(&self, dialect: Dialect) -> Option<FinishMeaning> {
        dialect.finish_meaning(self.finish_reason.as_deref()?)
    }
}

/// The status of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ReplyStatus {
    /// The reply is complete.
    Complete,
    /// The reply ended inside the arguments of a tool call.
    CallTruncated {
        /// Whether the server reported the end, by a finish reason or `[DONE]`.
        is_over: bool,
    },
    /// The server reported an error inside the stream.
    ServerError {
        /// The error.
        error: ServerError,
    },
    /// The reply stopped before the server reported its end.
    Incomplete {
        /// The transport's error, if it broke the connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
    /// HTTP 200 with a body that contains neither events nor text.
    Empty,
}

/// The kind of a server error, by its body and HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerErrorKind {
    /// The prompt is larger than the model's context.
    ContextOverflow,
    /// Temporarily unavailable: overloaded, or too many requests.
    Unavailable,
    /// The server is loading its model.
    Loading,
    /// The server failed. A hosted one may succeed later.
    Temporary,
    /// A member of the request, or its form.
    Rejected,
    /// The server could not parse the call that its model wrote.
    UnparsedCall,
    /// The model or its server takes no tools.
    NoTools,
    /// The quota of the account is used up. The request fails until the user or the provider raises it.
    QuotaExhausted,
    /// The API key is missing or wrong.
    Unauthorized,
    /// Any other HTTP error.
    Http,
    /// Any other error inside a stream.
    Server,
}

/// An error that a server reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerError {
    /// The kind.
    pub kind: ServerErrorKind,
    /// The server's message, or the start of a body without a message (at most 2 KiB).
    pub message: String,
    /// The HTTP status, or the `code` of an error inside a stream.
    pub code: Option<u16>,
    /// Text of a tool call that the server could not parse (Groq's `failed_generation`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_generation: Option<String>,
    /// The changes to the request that may help, the most likely first.
    #[serde(default, skip_serializing_if = "<[BodyFallback]>::is_empty")]
    pub changes: Box<[BodyFallback]>,
    /// The delay that the server asks for in the body, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u32>,
}

impl ServerError {
    /// Creates an error without a code.
    pub fn new(kind: ServerErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            kind,
            message,
            code: None,
            failed_generation: None,
            changes: Box::default(),
            retry_after_ms: None,
        }
    }
}

/// A call as the model wrote it, before validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawCall {
    /// The number of the call in the stream, starting at 0. Repeated calls are left out of the reply, and calls that
    /// the server merged have the same number.
    #[serde(default)]
    pub index: usize,
    /// The server's id, if it sent one.
    pub id: Option<String>,
    /// The name as the model wrote it.
    pub name: String,
    /// The arguments.
    pub arguments: RawArguments,
    /// The text of arguments that are one object, if it differs from that of the parsed object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Arc<str>>,
    /// The members that only the server can read, such as a signature.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub opaque: Map<String, Value>,
    /// The repairs of the text of the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

/// Arguments of a call, parsed or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "parsed", rename_all = "snake_case")]
pub enum RawArguments {
    /// A JSON object.
    Object {
        /// The object.
        value: Arguments,
    },
    /// Anything else.
    Malformed {
        /// The text that was received.
        text: String,
        /// The parse error.
        error: String,
        /// Whether the reply ended inside the arguments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}

/// Token counts of a reply, or of all replies of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// Tokens of the prompt that the server had cached, if it reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens of the reply's reasoning, if the server reported them. Most servers count them as `completion_tokens`,
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Number of repeated requests. If no reply had token counts, the counts are 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
}

impl Usage {
    /// Adds other counts.
    pub fn add(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.retries = self.retries.saturating_add(other.retries);
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn is_zero(number: &u32) -> bool {
    *number == 0
}
