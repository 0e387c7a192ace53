//! How a request ended.

use serde::{Deserialize, Serialize};

use super::signal::Signal;
use crate::chat::Usage;

/// The terminal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalState {
    /// The model answered.
    Completed,
    /// It did not; see the failure.
    Failed,
    /// The submitter gave up.
    Canceled,
}

/// Why the text ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The server's limit of tokens; its `length`.
    MaxTokens,
    /// The server's content filter.
    ContentFilter,
    /// The request was canceled.
    Canceled,
    /// The request failed.
    Failed,
}

/// Why a request failed. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// The worker restarted its server under the request.
    WorkerRestarted,
    /// The server's process died.
    ServerDied,
    /// No connection.
    ConnectFailed,
    /// No response headers in time.
    HeadersTimeout,
    /// The stream stalled.
    StallTimeout,
    /// A call that cannot be made: unknown name, arguments that are not valid, cut off, not parseable.
    ToolParseError,
    /// A tool failed, or the tool budget is spent.
    ToolExecutionError,
    /// The model repeated itself.
    RepeatedLineLoop,
    /// The submitter gave up.
    Canceled,
    /// Anything else; see the kind.
    UnknownError,
}

impl FailReason {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkerRestarted => "worker_restarted",
            Self::ServerDied => "server_died",
            Self::ConnectFailed => "connect_failed",
            Self::HeadersTimeout => "headers_timeout",
            Self::StallTimeout => "stall_timeout",
            Self::ToolParseError => "tool_parse_error",
            Self::ToolExecutionError => "tool_execution_error",
            Self::RepeatedLineLoop => "repeated_line_loop",
            Self::Canceled => "canceled",
            Self::UnknownError => "unknown_error",
        }
    }
}

impl std::fmt::Display for FailReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The finer kinds of failure that this machine and its driver name. A failed tool's kind is its error's
/// ([`crate::tool::ToolErrorKind`]).
pub mod kind {
    /// An HTTP error.
    pub const HTTP_ERROR: &str = "http_error";
    /// The prompt is larger than the model's context.
    pub const CONTEXT_OVERFLOW: &str = "context_overflow";
    /// An error inside the stream.
    pub const SERVER_ERROR: &str = "server_error";
    /// The stream ended before anything said that it was over.
    pub const STREAM_INCOMPLETE: &str = "stream_incomplete";
    /// A stream without an event.
    pub const EMPTY_STREAM: &str = "empty_stream";
    /// No connection to the server.
    pub const CONNECT_FAILED: &str = "connect_failed";
    /// No response headers in time.
    pub const HEADERS_TIMEOUT: &str = "headers_timeout";
    /// Nothing came for too long; [`FIRST_TOKEN_TIMEOUT`] and [`TOKEN_STALL`] are about tokens.
    pub const STALL_TIMEOUT: &str = "stall_timeout";
    /// Neither token nor progress in time.
    pub const FIRST_TOKEN_TIMEOUT: &str = "first_token_timeout";
    /// No token after the first ones.
    pub const TOKEN_STALL: &str = "token_stall";
    /// The request's own limit.
    pub const TOTAL_TIMEOUT: &str = "total_timeout";
    /// Normal calls and no budget.
    pub const BUDGET_EXHAUSTED: &str = "budget_exhausted";
    /// A call of no tool.
    pub const UNKNOWN_TOOL: &str = "unknown_tool";
    /// Arguments that break their schema or are no object.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
    /// A call that the reply's end cut off.
    pub const CALL_TRUNCATED: &str = "call_truncated";
    /// A call written as text that does not parse.
    pub const MALFORMED_CALL: &str = "malformed_call";
    /// An event of the stream was lost, and calls that came with it cannot be trusted.
    pub const LOST_FRAME: &str = "lost_frame";
    /// The server reported a tool call and sent none.
    pub const MISSING_TOOL_CALL: &str = "missing_tool_call";
    /// A driver gave a reply with another tool set than its request was sent with.
    pub const TOOL_SET_CHANGED: &str = "tool_set_changed";
    /// A replay asks for what the recording does not have.
    pub const REPLAY_DIFFERS: &str = "replay_differs";
    /// A fault of this program.
    pub const INTERNAL: &str = "internal";
}

/// A failure, as it is told to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Why; stable.
    pub reason: FailReason,
    /// Finer, or empty.
    pub kind: String,
    /// For a person.
    pub detail: String,
}

impl Failure {
    /// A failure.
    pub fn new(reason: FailReason, kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason, kind: kind.into(), detail: detail.into() }
    }
}

/// How a request ended; also the members of the `finished` event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Completed, failed or canceled.
    pub state: FinalState,
    /// Why the text ends where it ends.
    pub finish_reason: FinishReason,
    /// Why it failed or was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_reason: Option<FailReason>,
    /// Finer than the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// For a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// All text of all turns, in order, without recognised directives.
    pub text: String,
    /// The signals in the order they came.
    pub signals: Vec<Signal>,
    /// Tokens of all turns together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Replies whose normal calls were all answered.
    pub tool_iterations: u32,
    /// The model's reasoning of all turns, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// All text as it came, where that differs from `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
}

impl Outcome {
    /// The end of a request of which nothing came: failed, or canceled.
    pub(crate) fn without_reply(failure: Option<Failure>) -> Self {
        let (state, finish_reason) = match failure {
            Some(_) => (FinalState::Failed, FinishReason::Failed),
            None => (FinalState::Canceled, FinishReason::Canceled),
        };
        let Failure { reason, kind, detail } =
            failure.unwrap_or_else(|| Failure::new(FailReason::Canceled, "", ""));
        let told = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            state,
            finish_reason,
            fail_reason: Some(reason),
            kind: told(kind),
            detail: told(detail),
            text: String::new(),
            signals: Vec::new(),
            usage: None,
            tool_iterations: 0,
            reasoning: None,
            raw_text: None,
        }
    }

    /// All text as it came.
    pub fn raw_text(&self) -> &str {
        self.raw_text.as_deref().unwrap_or(&self.text)
    }
}
