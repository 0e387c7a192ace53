//! The normal calls of a reply, answered one by one in listed order.
//!
//! All were validated before the first runs. A call whose arguments are reported is answered without a tool, in
//! its turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Phase, Run};
use crate::chat::MessageToolCall;
use crate::request::conversation::{Answered, append_answered};
use crate::request::emission::Checked;
use crate::request::event::Event;
use crate::request::outcome::{FailReason, Failure, kind};
use crate::spec::OnFailure;
use crate::tool::{ToolCall, ToolError, ToolErrorKind};

/// The normal calls of one reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Batch {
    calls: Vec<BatchCall>,
    /// The call that is being answered.
    current: usize,
    /// When it began.
    since_ms: u64,
    /// How many calls the budget pays for.
    affordable: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BatchCall {
    id: String,
    name: String,
    task: Task,
    /// The answer as JSON text.
    answer: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Task {
    /// Run the tool.
    Run { arguments: Map<String, Value>, timeout: Option<Duration> },
    /// Tell the model what is wrong with its arguments.
    Report { arguments: Value, detail: String },
}

impl Batch {
    /// The call that a tool must answer now.
    pub(super) fn call(&self) -> Option<(ToolCall, Option<Duration>)> {
        match self.calls.get(self.current) {
            Some(BatchCall { id, name, task: Task::Run { arguments, timeout }, answer: _ }) => {
                let call = ToolCall { id: id.clone(), name: name.clone(), arguments: arguments.clone() };
                Some((call, *timeout))
            }
            Some(BatchCall { task: Task::Report { .. }, .. }) | None => None,
        }
    }

    /// The tool whose call is being answered.
    pub(super) fn tool(&self) -> Option<&str> {
        self.calls.get(self.current).map(|call| call.name.as_str())
    }
}

impl Run {
    /// Takes the result of the call that [`super::Step::CallTool`] named; any other is ignored.
    pub fn on_tool_result(&mut self, call_id: &str, result: Result<Value, ToolError>, at_ms: u64) {
        let Phase::Calling(batch) = &self.phase else { return };
        if batch.calls.get(batch.current).is_none_or(|call| call.id != call_id) {
            return;
        }
        self.see(at_ms);
        match result {
            Err(error) if self.config.on_tool_error == OnFailure::Fail => {
                let detail = failure_detail(self.running_tool().unwrap_or_default(), &error);
                let failure = Failure::new(FailReason::ToolExecutionError, error.kind.as_str(), detail);
                self.tell_answer(&Err(error));
                self.finish_failed(failure);
            }
            answer => {
                self.answer_call(answer);
                self.begin_call();
            }
        }
    }

    pub(super) fn begin_batch(&mut self, calls: Vec<((Option<&str>, &str), Checked)>) {
        let affordable = self.budget.affords(calls.len());
        let mut batch = Batch { calls: Vec::new(), current: 0, since_ms: self.at_ms, affordable };
        for ((server_id, name), checked) in calls {
            let id = self.ids.admit(server_id);
            let (task, arguments) = match checked {
                Checked::Valid { arguments, timeout } => {
                    let told = Value::Object(arguments.clone());
                    (Task::Run { arguments, timeout }, told)
                }
                Checked::Invalid { arguments, detail } => {
                    (Task::Report { arguments: arguments.clone(), detail }, arguments)
                }
            };
            self.events.push(Event::ToolCall { id: id.clone(), name: name.to_owned(), arguments });
            batch.calls.push(BatchCall { id, name: name.to_owned(), task, answer: None });
        }
        self.phase = Phase::Calling(batch);
        self.begin_call();
    }

    /// Begins the next call that a tool must answer, or ends the batch. Calls that were reported are answered on
    /// the way.
    fn begin_call(&mut self) {
        loop {
            let Phase::Calling(batch) = &mut self.phase else { return };
            let Some(call) = batch.calls.get(batch.current) else {
                self.end_batch();
                return;
            };
            if batch.current >= batch.affordable {
                self.finish_failed(budget_failure());
                return;
            }
            batch.since_ms = self.at_ms;
            match &call.task {
                Task::Run { .. } => {
                    let started = Event::ToolStarted { id: call.id.clone(), name: call.name.clone() };
                    self.events.push(started);
                    return;
                }
                Task::Report { arguments: _, detail } => {
                    let error = ToolError::new(ToolErrorKind::InvalidArguments, detail.clone());
                    self.answer_call(Err(error));
                }
            }
        }
    }

    /// Answers the current call.
    fn answer_call(&mut self, result: Result<Value, ToolError>) {
        self.tell_answer(&result);
        let Phase::Calling(batch) = &mut self.phase else { return };
        if let Some(call) = batch.calls.get_mut(batch.current) {
            call.answer = Some(match result {
                Ok(value) => value.to_string(),
                Err(error) => json!({"error": error_for_model(&error)}).to_string(),
            });
        }
        batch.current += 1;
        if self.budget.pay_call() {
            self.tell_budget();
        }
    }

    fn tell_answer(&mut self, result: &Result<Value, ToolError>) {
        let Phase::Calling(batch) = &self.phase else { return };
        let Some(call) = batch.calls.get(batch.current) else { return };
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
            elapsed_ms: self.at_ms - batch.since_ms,
        });
    }

    /// 7. and 8.: the history grows by calls and results, the budget shrinks, the next turn is due.
    fn end_batch(&mut self) {
        let Phase::Calling(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        let answered = batch.calls.into_iter().map(|BatchCall { id, name, task, answer }| {
            let arguments = match task {
                Task::Run { arguments, .. } => Value::Object(arguments),
                Task::Report { arguments: arguments @ Value::Object(_), .. } => arguments,
                // Arguments that are not an object make some servers refuse the conversation for ever.
                Task::Report { .. } => json!({}),
            };
            Answered {
                call: MessageToolCall::new(id, name, arguments.to_string()),
                content: answer.unwrap_or_default(),
            }
        });
        append_answered(
            &mut self.conversation,
            self.text.get(self.turn_text_start..).unwrap_or_default(),
            answered.collect(),
            self.config.parallel_tool_calls_supported,
        );
        self.tool_iterations += 1;
        if self.budget.pay_iteration() {
            self.tell_budget();
        }
    }

    fn tell_budget(&mut self) {
        self.events.push(Event::Budget { left: self.budget.left(), unit: self.budget.unit() });
    }
}

pub(super) fn budget_failure() -> Failure {
    Failure::new(FailReason::ToolExecutionError, kind::BUDGET_EXHAUSTED, "tool budget exhausted")
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
