//! The normal calls of one reply and their states.

use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::spec::{Effect, StringResults};
use deftool_lang::text::{MAX_NAME, portable};
use deftool_lang::tool::{Attachment, ToolCall, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::model::PendingCall;
use crate::MessageToolCall;
use crate::request::config::RunConfig;
use crate::request::conversation::AnsweredCall;
use crate::request::normalize::unanswered;
use crate::request::outcome::{FailReason, Failure};
use crate::request::result_size::cut_result;

/// The name of a call without a name in the conversation.
const UNNAMED: &str = "unnamed_call";

/// The normal calls of one reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) calls: Vec<BatchCall>,
    /// Number of calls that the budget covers.
    pub(super) affordable: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BatchCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) task: Task,
    /// The arguments as the model wrote them, if they are an object and their text differs from that of the event.
    #[serde(default)]
    pub(super) written: Option<Arc<str>>,
    pub(super) state: CallState,
    /// Whether the process ended while the tool was running.
    #[serde(default)]
    pub(super) was_interrupted: bool,
}

/// The execution options of a valid call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::request) struct CallPlan {
    /// The tool's own time limit, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::request) timeout: Option<Duration>,
    /// Whether the user must approve the call first.
    pub(in crate::request) needs_approval: bool,
    /// The consequence of running it twice.
    pub(in crate::request) effect: Effect,
    /// Whether a result that is a string is sent as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::request) text_result: bool,
    /// The tool's own limit for the size of a result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::request) max_result: Option<u64>,
}

impl CallPlan {
    /// Returns the current plan with the limits of both plans.
    pub(super) fn stricter(self, current: Self) -> Self {
        let timeouts = self.timeout.into_iter().chain(current.timeout);
        Self {
            timeout: timeouts.min(),
            needs_approval: self.needs_approval || current.needs_approval,
            effect: self.effect.max(current.effect),
            text_result: current.text_result,
            max_result: current.max_result,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Task {
    /// Run the tool.
    Run { arguments: Arguments, plan: CallPlan },
    /// Report the error to the model.
    Report { arguments: Arc<Value>, error: ToolError },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum CallState {
    /// The call was not started.
    Waiting,
    /// Waiting for the user's approval.
    Asked,
    /// The tool is running.
    Running { since_ms: u64 },
    /// The call was answered with this text.
    Answered {
        answer: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// The call failed. Its failure ends the request, unless an earlier call fails, too.
    Failed { failure: Failure },
}

impl Batch {
    /// Returns the calls that must be answered now.
    pub(super) fn pending(&self) -> Vec<PendingCall> {
        self.calls.iter().filter_map(BatchCall::pending).collect()
    }

    /// Returns the ids of the pending calls, and whether they need approval.
    pub(super) fn open(&self) -> impl Iterator<Item = (&str, bool)> {
        self.calls.iter().filter_map(|call| Some((call.id.as_str(), call.needs_approval()?)))
    }

    /// Returns one pending call.
    pub(super) fn pending_of(&self, call_id: &str) -> Option<PendingCall> {
        self.calls.iter().find(|call| call.id == call_id)?.pending()
    }

    /// Returns the tool of the first call that is being answered.
    pub(super) fn tool(&self) -> Option<&str> {
        let is_open = |call: &&BatchCall| matches!(call.state, CallState::Asked | CallState::Running { .. });
        self.calls.iter().find(is_open).map(|call| call.name.as_str())
    }

    /// Returns the calls, each with its answer or an error.
    pub(super) fn into_answered(self, config: &RunConfig) -> Vec<AnsweredCall> {
        let answered = self.calls.into_iter().map(|call| {
            let limit = call.max_result(config);
            let BatchCall { id, name, task, written, state, was_interrupted: _ } = call;
            let name = if let Task::Report { .. } = task { portable_name(&name) } else { name };
            let arguments = match (written, task) {
                (Some(written), _) => written.to_string(),
                (None, Task::Run { arguments, .. }) => arguments.to_string(),
                (None, Task::Report { arguments, .. }) if arguments.is_object() => arguments.to_string(),
                // Some servers reject a conversation with arguments that are not an object. The answer contains them.
                (None, Task::Report { .. }) => String::from("{}"),
            };
            let (content, attachments) = match state {
                CallState::Answered { answer, attachments } => (answer, attachments),
                CallState::Failed { failure: Failure { reason: _, kind, detail } } => (
                    json!({"error": {"kind": kind, "message": cut_result(detail, limit)}}).to_string(),
                    Vec::new(),
                ),
                CallState::Waiting | CallState::Asked | CallState::Running { .. } => {
                    (unanswered(), Vec::new())
                }
            };
            AnsweredCall { call: MessageToolCall::new(id, name, arguments), content, attachments }
        });
        answered.collect()
    }

    /// Registers that a call failed with `error`. Later calls are no longer pending.
    pub(super) fn fail_call(&mut self, index: usize, error: &ToolError) {
        let Some(call) = self.calls.get(index) else { return };
        let detail = failure_detail(&call.name, error);
        self.end_with(index, Failure::new(FailReason::ToolExecutionError, error.kind.as_str(), detail));
    }

    /// Registers that a call fails the request. Later calls are no longer pending.
    pub(super) fn end_with(&mut self, index: usize, failure: Failure) {
        let mut calls = self.calls.iter_mut().skip(index);
        let Some(call) = calls.next() else { return };
        call.state = CallState::Failed { failure };
        let is_open =
            |call: &&mut BatchCall| matches!(call.state, CallState::Asked | CallState::Running { .. });
        calls.filter(is_open).for_each(|later| later.state = CallState::Waiting);
    }

    pub(super) fn position(&self, call_id: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.id == call_id)
    }

    /// Returns the failure of the first failed call if every earlier call is answered.
    pub(super) fn decided_failure(&self) -> Option<&Failure> {
        let is_answered = |call: &&BatchCall| matches!(call.state, CallState::Answered { .. });
        match self.calls.iter().find(|call| !is_answered(call)).map(|call| &call.state) {
            Some(CallState::Failed { failure }) => Some(failure),
            Some(
                CallState::Waiting
                | CallState::Asked
                | CallState::Running { .. }
                | CallState::Answered { .. },
            )
            | None => None,
        }
    }
}

/// Replaces the parts of an unknown name that servers reject in a conversation.
fn portable_name(name: &str) -> String {
    let mut portable = if name.is_empty() { String::from(UNNAMED) } else { portable(name) };
    portable.truncate(MAX_NAME);
    portable
}

fn failure_detail(tool: &str, error: &ToolError) -> String {
    let path = error.path.as_deref().unwrap_or_default();
    let details = error.details.as_deref().map(|details| format!("\n{details}")).unwrap_or_default();
    format!("{tool}{path}: {}{details}", error.message)
}

impl BatchCall {
    /// Returns a result for the model: JSON, or a string without quotes if the tool returns text or the worker sends
    /// raw strings. A result above the limit is cut; a cut string has no quotes.
    pub(super) fn text_of(&self, result: Value, config: &RunConfig) -> String {
        let returns_text = matches!(self.task, Task::Run { plan: CallPlan { text_result: true, .. }, .. });
        let limit = self.max_result(config);
        match result {
            Value::String(text) if returns_text || config.string_results == StringResults::Raw => {
                cut_result(text, limit)
            }
            result => {
                let json = result.to_string();
                match result {
                    Value::String(text) if json.len() as u64 > limit => cut_result(text, limit),
                    _ => cut_result(json, limit),
                }
            }
        }
    }

    /// Returns the limit for the size of a result: the tool's own, or the worker's.
    pub(super) fn max_result(&self, config: &RunConfig) -> u64 {
        let own = match &self.task {
            Task::Run { plan, .. } => plan.max_result,
            Task::Report { .. } => None,
        };
        own.unwrap_or(config.max_result)
    }

    /// The arguments: an object, or unreadable text as a string.
    pub(super) fn arguments(&self) -> &Arc<Value> {
        match &self.task {
            Task::Run { arguments, .. } => arguments.shared(),
            Task::Report { arguments, .. } => arguments,
        }
    }

    /// Whether the call has neither an answer nor a failure.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.state, CallState::Waiting | CallState::Asked | CallState::Running { .. })
    }

    /// Whether the call needs approval; `None` if it is not pending.
    fn needs_approval(&self) -> Option<bool> {
        match self.state {
            CallState::Asked => Some(true),
            CallState::Running { .. } => Some(false),
            CallState::Waiting | CallState::Answered { .. } | CallState::Failed { .. } => None,
        }
    }

    fn pending(&self) -> Option<PendingCall> {
        let needs_approval = self.needs_approval()?;
        let Task::Run { arguments, plan } = &self.task else { return None };
        let call = ToolCall { id: self.id.clone(), name: self.name.clone(), arguments: arguments.clone() };
        Some(PendingCall { call, timeout: plan.timeout, needs_approval, effect: plan.effect })
    }
}
