//! What a consumer is told, in order: the same events in the library, `--json`, RPC and tests.
//!
//! This machine emits all but `retry` and `reloaded`, which are its driver's.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::Approval;
use super::outcome::Outcome;
use super::signal::Signal;
use crate::spec::BudgetUnit;

/// Version of the events' shape; `submitted` carries it. Members and types may be added within a version.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The request exists. Always the first event.
    Submitted {
        /// [`EVENT_VERSION`].
        version: u32,
        /// The request.
        request_id: String,
        /// The job's name, or empty.
        job_name: String,
        /// The worker.
        worker: String,
        /// The model.
        model: String,
        /// Unix time in milliseconds.
        submitted_at_ms: u64,
    },
    /// A chat request is about to be sent.
    TurnStarted {
        /// 1 for the first.
        turn: u32,
        /// Digest of the tool set it is sent with.
        tools: String,
        /// Units of the tool budget left.
        budget_left: u32,
    },
    /// More text.
    Text {
        /// The piece.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The model called a normal tool and the call will be answered.
    ToolCall {
        /// The call's id in the conversation.
        id: String,
        /// The tool.
        name: String,
        /// An object, or what came instead of one as a string.
        arguments: Value,
    },
    /// A person is asked whether a call may be made, or has answered.
    Approval {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// What it would be called with; when it is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The answer; `None`: it is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Approval>,
    },
    /// A call was handed to its tool.
    ToolStarted {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A call was answered.
    ToolFinished {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it succeeded.
        ok: bool,
        /// What it gave; `null` is a result.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "there")]
        result: Option<Value>,
        /// How it failed: `kind`, `message` and where there is one `path` and `details`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
        /// From the start of its execution.
        elapsed_ms: u64,
    },
    /// The model called an exit tool.
    Signal(Signal),
    /// The tool budget changed.
    Budget {
        /// Units left.
        left: u32,
        /// What a unit pays for.
        unit: BudgetUnit,
    },
    /// The driver sends a request again.
    Retry {
        /// 2 for the first repetition.
        attempt: u32,
        /// How long it waits first.
        delay_ms: u64,
        /// Why.
        detail: String,
    },
    /// The next turn will be sent with another generation of the tools.
    Reloaded {
        /// The generation's number.
        generation: u64,
        /// What changed, for a person.
        detail: String,
    },
    /// Something that fails nothing.
    Warning {
        /// For a person.
        message: String,
    },
    /// The request is over. Always the last event, exactly once.
    Finished(Outcome),
}

/// A member that is there, `null` included.
fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
