//! The outcome of a request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Usage;

/// A terminal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FinalState {
    /// The model answered.
    Completed,
    /// The request failed; see the failure.
    Failed,
    /// The submitter canceled the request.
    Canceled,
}

/// The reason why the text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished.
    Stop,
    /// The server's token limit, or the model's context, was reached (`length`).
    MaxTokens,
    /// The server's content filter ended the reply, or the model refused.
    ContentFilter,
    /// The request was canceled.
    Canceled,
    /// The request failed.
    Failed,
}

/// The reason why a request failed. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// The worker restarted its server during the request.
    WorkerRestarted,
    /// The server's process died.
    ServerDied,
    /// The server refused the connection or is unreachable.
    ConnectFailed,
    /// The server sent no response headers in time.
    HeadersTimeout,
    /// The stream stalled.
    StallTimeout,
    /// A call that cannot be executed: unknown name, invalid arguments, cut off, or not parseable.
    ToolParseError,
    /// A tool failed, or the tool budget is exhausted.
    ToolExecutionError,
    /// The model repeated itself.
    RepeatedLineLoop,
    /// The submitter canceled the request.
    Canceled,
    /// Any other failure; see the kind.
    UnknownError,
}

impl FailReason {
    /// Returns the stable name.
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

/// More specific kinds of failure, from this machine and its driver. The kind of a failed tool is the kind of its
/// error ([`deftool_lang::tool::ToolErrorKind`]).
pub mod kind {
    /// An HTTP error.
    pub const HTTP_ERROR: &str = "http_error";
    /// The prompt is larger than the model's context.
    pub const CONTEXT_OVERFLOW: &str = "context_overflow";
    /// An error inside the stream.
    pub const SERVER_ERROR: &str = "server_error";
    /// The stream stopped before the server reported its end.
    pub const STREAM_INCOMPLETE: &str = "stream_incomplete";
    /// The stream contained no event.
    pub const EMPTY_STREAM: &str = "empty_stream";
    /// The server refused the connection or is unreachable.
    pub const CONNECT_FAILED: &str = "connect_failed";
    /// The server sent no response headers in time.
    pub const HEADERS_TIMEOUT: &str = "headers_timeout";
    /// No data arrived in time. [`FIRST_TOKEN_TIMEOUT`] and [`TOKEN_STALL`] are about tokens.
    pub const STALL_TIMEOUT: &str = "stall_timeout";
    /// Neither a token nor progress arrived in time.
    pub const FIRST_TOKEN_TIMEOUT: &str = "first_token_timeout";
    /// No further token arrived in time.
    pub const TOKEN_STALL: &str = "token_stall";
    /// The time limit of the request was exceeded.
    pub const TOTAL_TIMEOUT: &str = "total_timeout";
    /// The model called normal tools with an exhausted budget.
    pub const BUDGET_EXHAUSTED: &str = "budget_exhausted";
    /// The model called an unknown tool.
    pub const UNKNOWN_TOOL: &str = "unknown_tool";
    /// Arguments that violate their schema or are not an object.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
    /// A call that is cut off at the end of the reply.
    pub const CALL_TRUNCATED: &str = "call_truncated";
    /// The same call failed too often in a row.
    pub const REPEATED_FAILURE: &str = "repeated_failure";
    /// A call written as text that does not parse.
    pub const MALFORMED_CALL: &str = "malformed_call";
    /// An event of the stream was lost; the calls of the reply cannot be trusted.
    pub const LOST_FRAME: &str = "lost_frame";
    /// The server reported a tool call but did not send one.
    pub const MISSING_TOOL_CALL: &str = "missing_tool_call";
    /// The driver passed a different tool set with the reply than with the request.
    pub const TOOL_SET_CHANGED: &str = "tool_set_changed";
    /// A replay requests data that the recording does not contain.
    pub const REPLAY_DIFFERS: &str = "replay_differs";
    /// The journal cannot be written.
    pub const JOURNAL_FAILED: &str = "journal_failed";
    /// An internal error of this program.
    pub const INTERNAL: &str = "internal";
}

/// A failure as input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stable reason.
    pub reason: FailReason,
    /// The specific kind, or empty.
    pub kind: String,
    /// Details for the user.
    pub detail: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(reason: FailReason, kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason, kind: kind.into(), detail: detail.into() }
    }
}

/// The outcome of a request, and the members of the `finished` event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct Outcome {
    /// Completed, failed or canceled.
    pub state: FinalState,
    /// The reason why the text ends.
    pub finish_reason: FinishReason,
    /// The reason why the request failed or was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_reason: Option<FailReason>,
    /// The specific kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Details for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The text of all turns in order, without recognised calls.
    pub text: String,
    /// The signals in order.
    pub signals: Vec<Signal>,
    /// Total tokens and retries of all turns, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The time of the first text, reasoning or call, in milliseconds since the request was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Number of replies whose normal calls were all answered.
    pub tool_iterations: u32,
    /// The model's reasoning of all turns, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The complete text as received, if it differs from `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
}

impl Outcome {
    /// Creates the outcome of a request without a reply: failed, or canceled.
    pub fn without_reply(failure: Option<Failure>) -> Self {
        let (state, finish_reason) = match failure {
            Some(_) => (FinalState::Failed, FinishReason::Failed),
            None => (FinalState::Canceled, FinishReason::Canceled),
        };
        let Failure { reason, kind, detail } =
            failure.unwrap_or_else(|| Failure::new(FailReason::Canceled, "", ""));
        let not_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            state,
            finish_reason,
            fail_reason: Some(reason),
            kind: not_empty(kind),
            detail: not_empty(detail),
            text: String::new(),
            signals: Vec::new(),
            usage: None,
            first_token_ms: None,
            tool_iterations: 0,
            reasoning: None,
            raw_text: None,
        }
    }

    /// The complete text as received.
    pub fn raw_text(&self) -> &str {
        self.raw_text.as_deref().unwrap_or(&self.text)
    }
}

/// An exit call, which is recorded and never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct Signal {
    /// The exit tool.
    pub tool_name: String,
    /// The arguments: an object, or text that is not an object as a string.
    pub arguments: Value,
    /// The reason why the arguments are invalid: they break the tool's schema, are not an object, or were cut off. It
    /// does not affect the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// The time when the call was complete, in milliseconds since the request was submitted.
    pub emitted_at_ms: u64,
}
