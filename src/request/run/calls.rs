//! The normal calls of a reply: in listed order, or all at the same time.
//!
//! All were validated before the first runs. A call whose arguments are reported, or that was refused, is answered
//! without a tool, in its turn. Results keep the listed order, whichever came first; of several failures that of the
//! first call in this order decides.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{PendingCall, Phase, Run};
use crate::chat::MessageToolCall;
use crate::request::approval::Approval;
use crate::request::config::RunConfig;
use crate::request::conversation::{Answered, append_answered};
use crate::request::emission::Checked;
use crate::request::event::Event;
use crate::request::outcome::{FailReason, Failure, kind};
use crate::request::valid::unanswered;
use crate::spec::{BudgetUnit, OnFailure};
use crate::tool::{ToolCall, ToolError, ToolErrorKind};

/// The normal calls of one reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Batch {
    calls: Vec<BatchCall>,
    /// How many calls the budget pays for.
    affordable: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BatchCall {
    id: String,
    name: String,
    task: Task,
    state: CallState,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Task {
    /// Run the tool.
    Run { arguments: Map<String, Value>, timeout: Option<Duration>, needs_approval: bool },
    /// Tell the model what is wrong with its arguments.
    Report { arguments: Value, detail: String },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum CallState {
    /// Its turn has not come.
    Waiting,
    /// A person is asked.
    Asked,
    /// Its tool runs.
    Running { since_ms: u64 },
    /// Answered, with JSON text.
    Answered { answer: String },
    /// It failed, and its failure will end the request unless that of an earlier call does.
    Failed { failure: Failure },
}

impl Batch {
    /// The calls that are to be answered now, and are not.
    pub(super) fn pending(&self) -> Vec<PendingCall> {
        self.calls.iter().filter_map(BatchCall::pending).collect()
    }

    /// The ids of these, and whether a person is asked.
    pub(super) fn open(&self) -> impl Iterator<Item = (&str, bool)> {
        self.calls.iter().filter_map(|call| Some((call.id.as_str(), call.needs_approval()?)))
    }

    /// One of them.
    pub(super) fn pending_of(&self, call_id: &str) -> Option<PendingCall> {
        self.calls.iter().find(|call| call.id == call_id)?.pending()
    }

    /// The first tool whose call is being answered.
    pub(super) fn tool(&self) -> Option<&str> {
        let is_open = |call: &&BatchCall| matches!(call.state, CallState::Asked | CallState::Running { .. });
        self.calls.iter().find(is_open).map(|call| call.name.as_str())
    }

    fn position(&self, call_id: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.id == call_id)
    }

    /// The first failure, once every call before it is answered.
    fn decided_failure(&self) -> Option<&Failure> {
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

impl BatchCall {
    /// Whether a person is asked; `None`: it is not to be answered now.
    fn needs_approval(&self) -> Option<bool> {
        match self.state {
            CallState::Asked => Some(true),
            CallState::Running { .. } => Some(false),
            CallState::Waiting | CallState::Answered { .. } | CallState::Failed { .. } => None,
        }
    }

    fn pending(&self) -> Option<PendingCall> {
        let needs_approval = self.needs_approval()?;
        let Task::Run { arguments, timeout, .. } = &self.task else { return None };
        let call = ToolCall { id: self.id.clone(), name: self.name.clone(), arguments: arguments.clone() };
        Some(PendingCall { call, timeout: *timeout, needs_approval })
    }
}

impl Run {
    /// Takes the result of a call that [`super::Step::AnswerCalls`] named; any other is ignored.
    pub fn on_tool_result(&mut self, call_id: &str, result: Result<Value, ToolError>, at_ms: u64) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(index) = batch.position(call_id) else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let CallState::Running { since_ms } = call.state else { return };
        let elapsed_ms = at_ms.saturating_sub(since_ms);
        if let Err(error) = &result
            && self.config.on_tool_error == OnFailure::Fail
        {
            let detail = failure_detail(&call.name, error);
            let failure = Failure::new(FailReason::ToolExecutionError, error.kind.as_str(), detail);
            call.state = CallState::Failed { failure };
            // What comes after it will not be asked for any more.
            let is_open =
                |call: &&mut BatchCall| matches!(call.state, CallState::Asked | CallState::Running { .. });
            for later in batch.calls.iter_mut().skip(index + 1).filter(is_open) {
                later.state = CallState::Waiting;
            }
            self.see(at_ms);
            self.tell_answer(index, &result, elapsed_ms);
        } else {
            self.see(at_ms);
            self.answer_call(index, result, elapsed_ms);
        }
        self.go_on();
    }

    /// Takes the answer to a call that needs one; any other is ignored.
    pub fn on_approval(&mut self, call_id: &str, approval: Approval, at_ms: u64) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(index) = batch.position(call_id) else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let CallState::Asked = call.state else { return };
        let (id, name) = (call.id.clone(), call.name.clone());
        self.at_ms = self.at_ms.max(at_ms);
        if approval == Approval::Allowed {
            call.state = CallState::Running { since_ms: self.at_ms };
        }
        let told = Event::Approval {
            id: id.clone(),
            name: name.clone(),
            arguments: None,
            answer: Some(approval.clone()),
        };
        self.events.push(told);
        match approval {
            Approval::Allowed => self.events.push(Event::ToolStarted { id, name }),
            Approval::Refused { reason } => {
                let mut answer = json!({"refused": "the user did not allow this call"});
                if let (false, Some(members)) = (reason.is_empty(), answer.as_object_mut()) {
                    members.insert(String::from("reason"), Value::String(reason));
                }
                self.answer_call(index, Ok(answer), 0);
            }
        }
        self.go_on();
    }

    pub(super) fn begin_batch(&mut self, calls: Vec<((Option<&str>, &str), Checked)>) {
        let affordable = self.budget.affords(calls.len());
        let mut batch = Batch { calls: Vec::new(), affordable };
        for ((server_id, name), checked) in calls {
            let id = self.ids.admit(server_id);
            let (task, arguments) = match checked {
                Checked::Valid { arguments, timeout, needs_approval } => {
                    let told = Value::Object(arguments.clone());
                    (Task::Run { arguments, timeout, needs_approval }, told)
                }
                Checked::Invalid { arguments, detail } => {
                    (Task::Report { arguments: arguments.clone(), detail }, arguments)
                }
            };
            self.events.push(Event::ToolCall { id: id.clone(), name: name.to_owned(), arguments });
            batch.calls.push(BatchCall { id, name: name.to_owned(), task, state: CallState::Waiting });
        }
        self.phase = Phase::Calling(batch);
        self.go_on();
    }

    /// Opens the calls whose turn has come, or ends the batch.
    fn go_on(&mut self) {
        loop {
            let Phase::Calling(batch) = &self.phase else { return };
            if let Some(failure) = batch.decided_failure() {
                let failure = failure.clone();
                return self.finish_failed(failure);
            }
            let any_failed = batch.calls.iter().any(|call| matches!(call.state, CallState::Failed { .. }));
            let any_open = batch.tool().is_some();
            if any_failed || (any_open && !self.config.parallel) {
                return;
            }
            let waiting = |call: &BatchCall| matches!(call.state, CallState::Waiting);
            match batch.calls.iter().position(waiting) {
                Some(index) if index < batch.affordable => self.open_call(index),
                // The rest of the calls is not paid for.
                Some(_) if !any_open => {
                    let failure = budget_failure(&self.config);
                    return self.finish_failed(failure);
                }
                None if !any_open => return self.end_batch(),
                Some(_) | None => return,
            }
        }
    }

    fn open_call(&mut self, index: usize) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let (id, name) = (call.id.clone(), call.name.clone());
        match &call.task {
            Task::Run { needs_approval: true, arguments, .. } => {
                let arguments = Some(Value::Object(arguments.clone()));
                call.state = CallState::Asked;
                self.events.push(Event::Approval { id, name, arguments, answer: None });
            }
            Task::Run { needs_approval: false, .. } => {
                call.state = CallState::Running { since_ms: self.at_ms };
                self.events.push(Event::ToolStarted { id, name });
            }
            Task::Report { arguments: _, detail } => {
                let error = ToolError::new(ToolErrorKind::InvalidArguments, detail.clone());
                self.answer_call(index, Err(error), 0);
            }
        }
    }

    fn answer_call(&mut self, index: usize, result: Result<Value, ToolError>, elapsed_ms: u64) {
        self.tell_answer(index, &result, elapsed_ms);
        let Phase::Calling(batch) = &mut self.phase else { return };
        if let Some(call) = batch.calls.get_mut(index) {
            let answer = match result {
                Ok(value) => value.to_string(),
                Err(error) => json!({"error": error_for_model(&error)}).to_string(),
            };
            call.state = CallState::Answered { answer };
        }
        if self.budget.pay_call() {
            self.tell_budget();
        }
    }

    fn tell_answer(&mut self, index: usize, result: &Result<Value, ToolError>, elapsed_ms: u64) {
        let Phase::Calling(batch) = &self.phase else { return };
        let Some(call) = batch.calls.get(index) else { return };
        let (value, error) = match result {
            Ok(value) => (Some(value.clone()), None),
            Err(error) => (None, Some(json!(error))),
        };
        self.events.push(Event::ToolFinished {
            id: call.id.clone(),
            name: call.name.clone(),
            ok: error.is_none(),
            result: value,
            error,
            elapsed_ms,
        });
    }

    /// 7. and 8.: the history grows by calls and results, the budget shrinks, the next turn is due.
    fn end_batch(&mut self) {
        let Phase::Calling(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        self.append_batch(batch);
        self.tool_iterations += 1;
        if self.budget.pay_iteration() {
            self.tell_budget();
        }
    }

    /// Writes the calls of a reply, each with what there is of its answer, into the conversation.
    pub(super) fn append_batch(&mut self, batch: Batch) {
        let answered = batch.calls.into_iter().map(|BatchCall { id, name, task, state }| {
            let arguments = match task {
                Task::Run { arguments, .. } => Value::Object(arguments),
                Task::Report { arguments: arguments @ Value::Object(_), .. } => arguments,
                // Arguments that are not an object make some servers refuse the conversation for ever.
                Task::Report { .. } => json!({}),
            };
            let content = match state {
                CallState::Answered { answer } => answer,
                CallState::Failed { failure: Failure { reason: _, kind, detail } } => {
                    json!({"error": {"kind": kind, "message": detail}}).to_string()
                }
                CallState::Waiting | CallState::Asked | CallState::Running { .. } => unanswered(),
            };
            Answered { call: MessageToolCall::new(id, name, arguments.to_string()), content }
        });
        append_answered(
            &mut self.conversation,
            self.text.get(self.turn_text_start..).unwrap_or_default(),
            answered.collect(),
            self.config.parallel_tool_calls_supported,
        );
    }

    fn tell_budget(&mut self) {
        self.events.push(Event::Budget { left: self.budget.left(), unit: self.budget.unit() });
    }
}

pub(super) fn budget_failure(config: &RunConfig) -> Failure {
    let unit = match config.budget_unit {
        BudgetUnit::Iteration => "iteration",
        BudgetUnit::Call => "call",
    };
    let (budget, s) = (config.tool_budget, if config.tool_budget == 1 { "" } else { "s" });
    let detail = format!("tool budget exhausted: {budget} {unit}{s} (the worker's :tool-budget)");
    Failure::new(FailReason::ToolExecutionError, kind::BUDGET_EXHAUSTED, detail)
}

fn failure_detail(tool: &str, error: &ToolError) -> String {
    let path = error.path.as_deref().unwrap_or_default();
    let details = error.details.as_deref().map(|details| format!("\n{details}")).unwrap_or_default();
    format!("{tool}{path}: {}{details}", error.message)
}

/// The error as the model gets it: without what is meant for a person.
fn error_for_model(error: &ToolError) -> Value {
    let ToolError { kind, message, path, details: _ } = error;
    match path {
        Some(path) => json!({"kind": kind, "message": message, "path": path}),
        None => json!({"kind": kind, "message": message}),
    }
}
