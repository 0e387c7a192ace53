//! What a tool call is, apart from who makes it and who runs it.
//!
//! Arguments reach a [`ToolRunner`] only after they were validated against the tool's schema.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A validated call of a normal tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id in the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, an object valid under the tool's schema.
    pub arguments: Map<String, Value>,
}

/// On whose behalf a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The request, or empty outside one.
    pub request_id: String,
    /// The job's name as its submitter gave it, or empty.
    pub job_name: String,
    /// The worker's name, or empty outside one.
    pub worker: String,
    /// Time limit of this call; the runner stops the call at it. `None`: the runner's own default.
    pub timeout: Option<Duration>,
    /// Told what the call used, by a runner that knows.
    pub meter: Option<Arc<Meter>>,
}

/// Where a runner says what a call used.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Option<Usage>>);

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The time that the script's top level took.
    pub load: Duration,
    /// The time that its function took, waiting included.
    pub run: Duration,
    /// The most memory that it was seen to take beyond what its state had, in bytes, with what was not yet collected:
    /// looked at every millisecond and at the end. Small values fit into what a state has.
    pub memory: u64,
}

impl Meter {
    /// Says what the call used; the last word counts.
    pub fn record(&self, usage: Usage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
    }

    /// What was said; `None`: nothing, since no script ran or its runner cannot tell.
    pub fn usage(&self) -> Option<Usage> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs tools: scripts, remote tools, fakes in tests.
pub trait ToolRunner: Send + Sync {
    /// Runs `call` to its end. Dropping the future cancels the call: what it started is stopped. It is how every call is given
    /// up, and nothing waits for what a runner still does then: what takes time to clean up belongs to a task that a
    /// guard's `Drop` starts.
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<Value, ToolError>>;
}

/// Why a call failed. The names are stable: they appear in `error[kind]` and in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// No tool of that name.
    UnknownTool,
    /// Arguments that are not a JSON object or break the schema.
    InvalidArguments,
    /// The script could not be loaded: missing, does not compile, returns no function, its top level failed or ran too long.
    Load,
    /// The script raised an error.
    Script,
    /// The script said `error(tool.failure(…))`: an expected failure, worded for the model.
    Failure,
    /// The deadline passed.
    Timeout,
    /// The memory limit was reached.
    Memory,
    /// The result is not JSON.
    Unserialisable,
    /// The script used what its spec does not allow.
    Permission,
    /// The caller went away.
    Canceled,
    /// The runner itself failed; a bug or a lost thread.
    Internal,
}

impl ToolErrorKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::Load => "load",
            Self::Script => "script",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Unserialisable => "unserialisable",
            Self::Permission => "permission",
            Self::Canceled => "canceled",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ToolErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a call failed, for people and for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolError {
    /// What sort of failure.
    pub kind: ToolErrorKind,
    /// One clause; a script's error starts with `file:line:`.
    pub message: String,
    /// Path into the arguments or the result, as in `.items[2]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// More lines for a person: a traceback, further violations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

impl ToolError {
    /// A failure of `kind`.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: None, details: None }
    }

    /// With the place in the arguments or the result.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// With more lines for a person.
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
