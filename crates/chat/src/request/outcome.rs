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
#[non_exhaustive]
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

/// Declares the kinds with their stable names.
macro_rules! failure_kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $name:literal,)*) => {
        /// A more specific kind of failure, from this machine and its driver. The kind of a failed tool is the kind of its
        /// error ([`deftool_lang::tool::ToolErrorKind`]). The names are stable; docs/worker.md describes them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailureKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl FailureKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the stable name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

failure_kinds! {
    /// An HTTP error.
    HttpError = "http_error",
    /// The server accepts no request with this API key, or none without a key.
    Unauthorized = "unauthorized",
    /// The prompt is larger than the model's context.
    ContextOverflow = "context_overflow",
    /// An error inside the stream.
    ServerError = "server_error",
    /// The stream stopped before the server reported its end.
    StreamIncomplete = "stream_incomplete",
    /// The stream contained no event.
    EmptyStream = "empty_stream",
    /// The server refused the connection or is unreachable.
    ConnectFailed = "connect_failed",
    /// The server sent no response headers in time.
    HeadersTimeout = "headers_timeout",
    /// After the first token, no data arrived in time, or only data without content for too long.
    StallTimeout = "stall_timeout",
    /// Neither a token nor progress arrived in time.
    FirstTokenTimeout = "first_token_timeout",
    /// The time limit of the request was exceeded.
    TotalTimeout = "total_timeout",
    /// The model called normal tools with an exhausted budget.
    BudgetExhausted = "budget_exhausted",
    /// The model called an unknown tool.
    UnknownTool = "unknown_tool",
    /// Arguments that violate their schema or are not an object.
    InvalidArguments = "invalid_arguments",
    /// A call that is cut off at the end of the reply.
    CallTruncated = "call_truncated",
    /// The same call failed too often in a row.
    RepeatedFailure = "repeated_failure",
    /// A call written as text that does not parse.
    MalformedCall = "malformed_call",
    /// An event of the stream was lost; the calls of the reply cannot be trusted.
    LostFrame = "lost_frame",
    /// The server reported a tool call but did not send one.
    MissingToolCall = "missing_tool_call",
    /// The driver passed a different tool set with the reply than with the request.
    ToolSetChanged = "tool_set_changed",
    /// A replay requests data that the recording does not contain.
    ReplayDiffers = "replay_differs",
    /// The journal cannot be written.
    JournalFailed = "journal_failed",
    /// An internal error of this program.
    Internal = "internal",
}

impl From<FailureKind> for String {
    fn from(kind: FailureKind) -> Self {
        kind.as_str().to_owned()
    }
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
