//! What a reply's stream says, decoded: deltas as they come, then one [`Reply`] that judges the whole.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing the stream said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatEvent {
    /// More of the reply's text. Deltas of one read come as one event.
    Text {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// A tool call grew; only for progress, the calls come whole in the [`Reply`].
    ToolCallDelta {
        /// Position of the call in the reply.
        index: usize,
        /// The tool's name as far as it is known.
        name: String,
    },
    /// The server tells how far it is with the prompt.
    Progress {
        /// Tokens processed.
        processed: u64,
        /// Tokens in the prompt.
        total: u64,
    },
    /// The reply is over, well or not. Always the last event, exactly once.
    Ended {
        /// The judged reply.
        reply: Reply,
    },
}

/// A whole reply, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether it is whole, and if not, why.
    pub status: ReplyStatus,
    /// Tool calls in the order they began.
    pub calls: Vec<RawCall>,
    /// Events of the stream that could not be decoded and may have held text or a part of a call.
    #[serde(default)]
    pub lost_frames: usize,
    /// The server's finish reason as it was sent, the last one that was not null; of a response what chat completions
    /// would have said.
    pub finish_reason: Option<String>,
    /// Token counts, if the server told them.
    pub usage: Option<Usage>,
    /// The model's name as the server told it.
    pub model: Option<String>,
}

impl Reply {
    /// A reply of which there is nothing but the server's error.
    pub fn failed(error: ServerError) -> Self {
        let status = ReplyStatus::ServerError { error };
        Self { status, calls: Vec::new(), lost_frames: 0, finish_reason: None, usage: None, model: None }
    }
}

/// Whether a reply is whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ReplyStatus {
    /// Whole.
    Complete,
    /// Ended inside the arguments of a tool call.
    CallTruncated {
        /// Whether the server reported the reply as over, by a finish reason or `[DONE]`.
        is_over: bool,
    },
    /// The server reported an error inside the stream.
    ServerError {
        /// The error.
        error: ServerError,
    },
    /// Ended, or was cut, before anything said that it was over.
    Incomplete {
        /// The transport's error, if that cut it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
    /// HTTP 200 with a body that held no event and no text.
    Empty,
}

/// What sort of error a server reported, by its body and HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerErrorKind {
    /// The prompt is larger than the model's context.
    ContextOverflow,
    /// Not yet: loading a model, too many requests.
    Unavailable,
    /// The key is missing or wrong.
    Unauthorized,
    /// Any other error by HTTP status.
    Http,
    /// Any other error inside a stream.
    Server,
}

/// An error a server reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerError {
    /// What sort.
    pub kind: ServerErrorKind,
    /// Its message, or the start of a body that held none (at most 2 KiB).
    pub message: String,
    /// The HTTP status, or the `code` of an error inside a stream.
    pub code: Option<u16>,
    /// Text of a tool call that the server itself could not parse (Groq's `failed_generation`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_generation: Option<String>,
}

/// A call as the model made it, before any check against a tool set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawCall {
    /// The server's id, if it gave one.
    pub id: Option<String>,
    /// The name as it was written.
    pub name: String,
    /// The arguments.
    pub arguments: RawArguments,
}

/// Arguments of a call, parsed or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "parsed", rename_all = "snake_case")]
pub enum RawArguments {
    /// A JSON object.
    Object {
        /// Its members, in order.
        value: Map<String, Value>,
    },
    /// Anything else.
    Malformed {
        /// What came.
        text: String,
        /// Why it is not a JSON object.
        error: String,
        /// The reply ended before the arguments did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
}

/// Token counts of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
}
