//! The events that a consumer receives, in order. They are the same in the library, `--json`, RPC and tests.
//!
//! The machine emits all events except `retry` and `reloaded`, which the driver emits.

use std::sync::Arc;

use deftool_lang::schema::RepairKind;
use deftool_lang::spec::BudgetUnit;
use deftool_lang::tool::Attachment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outcome::{Outcome, Signal};

/// Version of the event format, sent in `submitted`. Members and types may be added within a version.
pub(super) const EVENT_VERSION: u32 = 1;

/// An event of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The request was submitted. Always the first event.
    Submitted {
        /// The version of the event format: 1.
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
        /// Number of the turn, starting at 1.
        turn: u32,
        /// Digest of the turn's tool set.
        tools: String,
        /// Remaining units of the tool budget.
        budget_left: u32,
    },
    /// Text of the reply.
    Text {
        /// The delta.
        text: String,
    },
    /// Reasoning of the reply.
    Reasoning {
        /// The delta.
        text: String,
    },
    /// The model called a normal tool and the call will be answered.
    ToolCall {
        /// The call's id in the conversation.
        id: String,
        /// The tool.
        name: String,
        /// An object, or invalid arguments as a string.
        arguments: Arc<Value>,
    },
    /// Damaged arguments of a call were repaired without loss. The arguments in other events are the repaired ones.
    ArgumentsRepaired {
        /// The call; `None` for a call of an exit tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool.
        name: String,
        /// Path into the arguments, as in `.items[2]`; empty for all arguments and for the name.
        path: String,
        /// What was repaired.
        kind: RepairKind,
    },
    /// The user's approval is requested or was given.
    Approval {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, in an approval request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<Value>>,
        /// The answer; `None` in an approval request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Approval>,
    },
    /// A tool was started.
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
        /// The result; may be `null`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        result: Option<Value>,
        /// The images and audio of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The error: `kind`, `message` and optionally `path` and `details`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
        /// Duration of the execution in milliseconds.
        elapsed_ms: u64,
    },
    /// The model called an exit tool.
    Signal(Signal),
    /// The tool budget changed.
    Budget {
        /// Remaining units.
        left: u32,
        /// The unit of the budget.
        unit: BudgetUnit,
    },
    /// The driver sends a request again.
    Retry {
        /// Number of the attempt; 2 for the first retry.
        attempt: u32,
        /// Delay before the retry, in milliseconds.
        delay_ms: u64,
        /// The reason.
        detail: String,
    },
    /// The next turn uses a new generation of the tools.
    Reloaded {
        /// The generation's number.
        generation: u64,
        /// The changes, for the user.
        detail: String,
    },
    /// The request continues after its process ended. The reply that was being received is requested again.
    Resumed {
        /// The text of that reply, which was emitted before and does not count.
        superseded: String,
    },
    /// A problem that does not fail the request.
    Warning {
        /// The message for the user.
        message: String,
    },
    /// The request ended. Always the last event, exactly once.
    Finished(Arc<Outcome>),
}

/// Deserialises a member that is present, so that `null` becomes `Some(Value::Null)`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The user's answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Approval {
    /// The call is executed.
    Allowed,
    /// The call is not executed. The model receives a regular result that reports it.
    Refused {
        /// The reason for the model; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}
