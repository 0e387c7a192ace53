//! The normal calls of a reply, answered in order or in parallel.
//!
//! All calls are validated before the first one runs. A call with reported argument errors and a denied call are
//! answered without running a tool. Results keep the order of the calls. If several calls fail, the failure of the
//! first one in this order ends the request.

use std::sync::Arc;

use deftool_lang::spec::{BudgetUnit, OnFailure};
use deftool_lang::tool::{ToolError, ToolOutput};
use serde_json::{Value, json};

use super::batch::{Batch, BatchCall, CallPlan, CallState, Task};
use super::state::{Phase, Run};
use crate::RawCall;
use crate::request::config::RunConfig;
use crate::request::event::{Approval, Event};
use crate::request::outcome::{FailReason, Failure, FailureKind, FinalState, FinishReason};
use crate::request::validate::Checked;

impl Run {
    /// Takes the result of a call from [`Step::AnswerCalls`](super::Step::AnswerCalls). Ignores other ids.
    pub fn on_tool_result(&mut self, call_id: &str, result: Result<ToolOutput, ToolError>, at_ms: u64) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(index) = batch.position(call_id) else { return };
        let Some(call) = batch.calls.get(index) else { return };
        let CallState::Running { since_ms } = call.state else { return };
        let elapsed_ms = at_ms.saturating_sub(since_ms);
        if let Err(error) = &result
            && self.config.on_tool_error == OnFailure::Fail
            && !error.kind.is_result()
        {
            batch.fail_call(index, error);
            self.advance_time(at_ms);
            self.emit_tool_finished(index, &result, elapsed_ms);
        } else {
            self.advance_time(at_ms);
            self.answer_call(index, result, elapsed_ms);
        }
        self.advance_batch();
    }

    /// Takes the answer for a call that needs approval. Ignores other ids.
    pub fn on_approval(&mut self, call_id: &str, approval: Approval, at_ms: u64) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(index) = batch.position(call_id) else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let CallState::Asked = call.state else { return };
        let (id, name, was_interrupted) = (call.id.clone(), call.name.clone(), call.was_interrupted);
        self.at_ms = self.at_ms.max(at_ms);
        if approval == Approval::Allowed {
            call.state = CallState::Running { since_ms: self.at_ms };
        }
        let event = Event::Approval {
            id: id.clone(),
            name: name.clone(),
            arguments: None,
            answer: Some(approval.clone()),
        };
        self.events.push(event);
        match approval {
            Approval::Allowed => self.events.push(Event::ToolStarted { id, name }),
            Approval::Refused { reason } => {
                let refused = if was_interrupted {
                    "the process ended while the tool was running, so the call may have had an effect; the user did \
                     not allow it to run again"
                } else {
                    "the user did not allow this call"
                };
                let mut answer = json!({"refused": refused});
                if let (false, Some(members)) = (reason.is_empty(), answer.as_object_mut()) {
                    members.insert(String::from("reason"), Value::String(reason));
                }
                self.answer_call(index, Ok(answer.into()), 0);
            }
        }
        self.advance_batch();
    }

    pub(super) fn begin_batch(&mut self, calls: Vec<(Option<&RawCall>, Checked)>) {
        let affordable = self.budget.affords(calls.len());
        let mut batch = Batch { calls: Vec::new(), affordable };
        for (raw, checked) in calls {
            let id = self.ids.assign(raw.and_then(|raw| raw.id.as_deref()));
            if let Some(raw) = raw.filter(|raw| !raw.opaque.is_empty()) {
                self.received.parts.calls.insert(id.clone(), raw.opaque.clone());
            }
            let as_sent = raw.and_then(|raw| raw.written.clone());
            let (name, task, written, repairs) = match checked {
                Checked::Valid { name, arguments, written, plan, repairs } => {
                    (name, Task::Run { arguments, plan }, as_sent.or(written), repairs)
                }
                Checked::Invalid { name, arguments, error } => {
                    (name, Task::Report { arguments, error }, as_sent, Vec::new())
                }
            };
            let call =
                BatchCall { id, name, task, written, state: CallState::Waiting, was_interrupted: false };
            let (id, name, arguments) = (call.id.clone(), call.name.clone(), Arc::clone(call.arguments()));
            self.events.push(Event::ToolCall { id, name, arguments });
            self.emit_repairs(Some(&call.id), &call.name, repairs);
            batch.calls.push(call);
        }
        self.reply_state = Some(self.state_after_reply(&batch));
        let is_last = self.start.options.one_reply && !batch.calls.is_empty();
        self.phase = Phase::Calling(batch);
        if is_last { self.end_with_calls() } else { self.advance_batch() }
    }

    /// Ends a request that is complete with the calls of its reply. Only those that cannot be made have an answer.
    fn end_with_calls(&mut self) {
        let Phase::Calling(batch) = &self.phase else { return };
        let error = |(index, call): (usize, &BatchCall)| match &call.task {
            Task::Report { error, .. } => Some((index, error.clone())),
            Task::Run { .. } => None,
        };
        let errors: Vec<(usize, ToolError)> = batch.calls.iter().enumerate().filter_map(error).collect();
        for (index, error) in errors {
            self.answer_call(index, Err(error), 0);
        }
        self.finish(FinalState::Completed, FinishReason::Stop, None);
    }

    /// Continues after a reply that the server paused: the next request contains the reply. It uses one unit of the
    /// budget, so that a reply cannot be paused forever.
    pub(super) fn continue_paused(&mut self) {
        self.begin_batch(Vec::new());
        if self.budget.pay_call() {
            self.emit_budget();
        }
    }

    /// Starts the next calls, or ends the batch.
    pub(super) fn advance_batch(&mut self) {
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
                // The budget does not cover the remaining calls.
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
            Task::Run { plan: CallPlan { needs_approval: true, .. }, .. } => self.ask(index),
            Task::Run { .. } => {
                call.state = CallState::Running { since_ms: self.at_ms };
                self.events.push(Event::ToolStarted { id, name });
            }
            Task::Report { error, .. } => {
                let error = error.clone();
                self.answer_call(index, Err(error), 0);
            }
        }
    }

    /// Requests the user's approval of a call.
    pub(super) fn ask(&mut self, index: usize) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let Task::Run { arguments, .. } = &call.task else { return };
        let arguments = Some(Arc::clone(arguments.shared()));
        let (id, name) = (call.id.clone(), call.name.clone());
        call.state = CallState::Asked;
        self.events.push(Event::Approval { id, name, arguments, answer: None });
    }

    pub(super) fn answer_call(
        &mut self,
        index: usize,
        result: Result<ToolOutput, ToolError>,
        elapsed_ms: u64,
    ) {
        self.emit_tool_finished(index, &result, elapsed_ms);
        let Phase::Calling(batch) = &mut self.phase else { return };
        self.failures.answer(batch, index, result, (self.turn, &self.config));
        if self.budget.pay_call() {
            self.emit_budget();
        }
    }

    fn emit_tool_finished(&mut self, index: usize, result: &Result<ToolOutput, ToolError>, elapsed_ms: u64) {
        let Phase::Calling(batch) = &self.phase else { return };
        let Some(call) = batch.calls.get(index) else { return };
        let (value, attachments, error) = match result {
            Ok(ToolOutput { value, attachments }) => (Some(value.clone()), attachments.clone(), None),
            Err(error) => (None, Vec::new(), Some(json!(error))),
        };
        self.events.push(Event::ToolFinished {
            id: call.id.clone(),
            name: call.name.clone(),
            ok: error.is_none(),
            result: value,
            attachments,
            error,
            elapsed_ms,
        });
    }

    /// Appends calls and results to the history, and prepares the next turn.
    pub(super) fn complete_batch(&mut self) {
        let Phase::Calling(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        self.append_batch(batch);
        self.tool_iterations += 1;
        self.was_empty = false;
    }

    /// Completes the batch and reduces the budget.
    fn end_batch(&mut self) {
        self.complete_batch();
        if self.budget.pay_iteration() {
            self.emit_budget();
        }
    }

    pub(super) fn emit_budget(&mut self) {
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
    Failure::new(FailReason::ToolExecutionError, FailureKind::BudgetExhausted, detail)
}
