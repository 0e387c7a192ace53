//! Tool calls, independent of their caller and their runner.
//!
//! A [`ToolRunner`] only receives arguments that are valid under the tool's schema.

mod attachment;
mod source;
mod title;
mod trace;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::{Accepted, Arguments, ToolEntry, Violation};
use crate::spec::Effect;

pub use attachment::{
    Attachment, AttachmentData, AttachmentStore, MAX_ATTACHMENT, MediaType, Refused, ToolOutput, attach,
    data_line,
};
pub use source::{JoinedTools, ToolSource, Toolbox};
pub use title::call_title;
pub use trace::{TRACEPARENT, TRACESTATE, TraceContext};

/// A validated call of a normal tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id of the call in the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, valid under the tool's schema.
    pub arguments: Arguments,
}

/// The context of a call.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The id of the request; empty outside a request.
    pub request_id: String,
    /// The id of the call in the conversation; empty outside a request.
    pub call_id: String,
    /// The job name given at submission; may be empty.
    pub job_name: String,
    /// The name of the worker; empty outside a worker.
    pub worker: String,
    /// The idempotency key: the same each time this call runs, different for each call; empty outside a request.
    pub idempotency_key: String,
    /// The consequence of running the tool twice.
    pub effect: Effect,
    /// The span of the call, or of the caller, as the parent of the requests that the tool sends.
    pub trace: Option<TraceContext>,
    /// Time limit after which the runner stops the call; `None`: the runner's default.
    pub timeout: Option<Duration>,
    /// Receives the resource usage of the call, if the runner measures it.
    pub meter: Option<Arc<Meter>>,
}

/// Stores the resource usage of a call.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Option<Usage>>);

/// The resource usage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Duration of the script's top level.
    pub load: Duration,
    /// Duration of the script's function, including waiting.
    pub run: Duration,
    /// Peak memory in bytes beyond the initial size of the Lua state, including uncollected garbage. Sampled every
    /// millisecond and at the end. Small values fit into the initial size.
    pub memory: u64,
}

impl Meter {
    /// Stores the usage. The last value is kept.
    pub fn record(&self, usage: Usage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
    }

    /// Returns the usage; `None` if no script ran or the runner does not measure it.
    pub fn usage(&self) -> Option<Usage> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs tools, for example scripts, remote tools, or fakes in tests.
pub trait ToolRunner: Send + Sync {
    /// Runs `call` to completion. Dropping the future cancels the call and must stop everything that it started. This
    /// is the only way to cancel a call, and the caller does not wait for the cleanup: start a task for slow cleanup in
    /// the `Drop` of a guard.
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

/// The kind of a call failure. The names are stable: they appear in `error[kind]` and in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// Unknown tool.
    UnknownTool,
    /// The arguments are not a JSON object or violate the schema.
    InvalidArguments,
    /// The script could not be loaded: it is missing, does not compile, does not return a function, or its top level
    /// failed or timed out.
    Load,
    /// The script raised an error.
    Script,
    /// The script raised `error(tool.failure(…))`: an expected failure with a message for the model.
    Failure,
    /// The tool ended and reports an error as its result, as an MCP server does with `isError`. The model always
    /// receives it.
    ErrorResult,
    /// The deadline passed.
    Timeout,
    /// The memory limit was reached.
    Memory,
    /// The result is not JSON.
    Unserialisable,
    /// The result violates the tool's `:returns`.
    InvalidResult,
    /// The script needs a permission that its spec does not grant.
    Permission,
    /// The caller canceled the call.
    Canceled,
    /// The process ended while the tool was running, and the call must not be repeated.
    Interrupted,
    /// The runner failed, because of a bug or a lost thread.
    Internal,
}

impl ToolErrorKind {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::Load => "load",
            Self::Script => "script",
            Self::Failure => "failure",
            Self::ErrorResult => "error_result",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Unserialisable => "unserialisable",
            Self::InvalidResult => "invalid_result",
            Self::Permission => "permission",
            Self::Canceled => "canceled",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal",
        }
    }

    /// Whether the error is a result of the tool, which the model receives even if errors of tools fail the request.
    pub fn is_result(self) -> bool {
        self == Self::ErrorResult
    }
}

/// Validates the arguments of a call and returns those to pass to the tool.
///
/// # Errors
/// Returns an error if they are invalid.
pub fn accept_arguments(tool: &ToolEntry, arguments: Value) -> Result<Arguments, ToolError> {
    tool.accept(object_of(tool, arguments)?).map_err(|(_, violations)| invalid_arguments(tool, violations))
}

/// Like [`accept_arguments`], for a call that a model wrote: repairs arguments if that is possible without loss.
///
/// # Errors
/// Returns an error if they are invalid.
pub fn accept_call(tool: &ToolEntry, arguments: Value) -> Result<Accepted, ToolError> {
    tool.accept_repaired(object_of(tool, arguments)?)
        .map_err(|(_, violations)| invalid_arguments(tool, violations))
}

fn object_of(tool: &ToolEntry, arguments: Value) -> Result<Arguments, ToolError> {
    Arguments::try_from(arguments).map_err(|_| {
        let message = format!("the arguments of `{}` must be a JSON object", tool.name);
        ToolError::new(ToolErrorKind::InvalidArguments, message)
    })
}

fn invalid_arguments(tool: &ToolEntry, violations: Vec<Violation>) -> ToolError {
    let mut violations = violations.into_iter();
    let first = violations.next().unwrap_or_default();
    let message = format!("`{}`: {first}", tool.name);
    let mut error = ToolError::new(ToolErrorKind::InvalidArguments, message);
    error.path = Some(first.path).filter(|path| !path.is_empty());
    let more: Vec<String> = violations.map(|violation| violation.to_string()).collect();
    error.details = (!more.is_empty()).then(|| more.join("\n"));
    error
}

/// Returns the result of a call if its value matches the tool's `:returns`.
///
/// # Errors
/// Returns an error if it does not match.
pub fn check_result(tool: &ToolEntry, result: ToolOutput) -> Result<ToolOutput, ToolError> {
    let Some(Err(violations)) = tool.returns.as_ref().map(|schema| schema.validate(&result.value)) else {
        return Ok(result);
    };
    let mut violations = violations.into_iter();
    let Violation { path, message } = violations.next().unwrap_or_default();
    let message = format!("the result violates its schema: {message}");
    let mut error = ToolError::new(ToolErrorKind::InvalidResult, message);
    error.path = Some(path).filter(|path| !path.is_empty());
    let more: Vec<String> = violations.map(|violation| violation.to_string()).collect();
    error.details = (!more.is_empty()).then(|| more.join("\n"));
    Err(error)
}

impl fmt::Display for ToolErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed call, with a message for the user and the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct ToolError {
    /// The kind of failure.
    pub kind: ToolErrorKind,
    /// One clause; a script's error starts with `file:line:`.
    pub message: String,
    /// Path into the arguments or the result, as in `.items[2]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Details for the user, such as a traceback or further violations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

impl ToolError {
    /// Creates an error of `kind`.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: None, details: None }
    }

    /// Sets the path into the arguments or the result.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the details for the user.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind, self.message)
    }
}

impl std::error::Error for ToolError {}
