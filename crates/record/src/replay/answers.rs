//! The answers of a replay to tool calls and approvals, in the recorded order.

use std::collections::VecDeque;

use deftool_chat::request::Approval;
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind, ToolOutput};
use serde_json::{Value, json};

use super::calls::{Answer, RecordedCall};
use super::cursor::ReplayCursor;
use crate::compare::differences;
use crate::recording::Stopped;
use crate::stored::fit;

/// The next answer for the request machine.
#[derive(Debug)]
pub enum NextAnswer {
    /// The approval or the result of this call.
    Of {
        /// The call.
        id: String,
        /// Whether it is an approval.
        is_approval: bool,
    },
    /// The first answer to any call.
    Any,
    /// The recorded request was stopped here.
    Stop(Stopped),
}

/// The way in which a replay answers a call.
#[derive(Debug)]
pub enum CallPlan {
    /// Run the tool.
    Run,
    /// Return this result.
    Return(Result<ToolOutput, ToolError>),
    /// Never answer: the recorded call was abandoned.
    Never,
}

impl ReplayCursor {
    /// Returns the next answer.
    pub fn next_answer(&self) -> NextAnswer {
        match self.calls.lock().answers.front() {
            Some(Answer { id, approval, .. }) => {
                NextAnswer::Of { id: id.clone(), is_approval: approval.is_some() }
            }
            None => self.stopped().map_or(NextAnswer::Any, NextAnswer::Stop),
        }
    }

    /// Returns the recorded approval of a call. A replay does not ask the user.
    pub fn approval(&self, id: &str) -> Approval {
        let mut calls = self.calls.lock();
        let is_of = |answer: &&Answer| answer.id == id && answer.approval.is_some();
        match calls.answers.iter().find(is_of) {
            Some(Answer { approval: Some(approval), .. }) => {
                let approval = approval.clone();
                calls.approved.insert(id.to_owned());
                approval
            }
            // The recorded request may have ended earlier. The difference is reported when the answer is used.
            Some(_) | None => {
                Approval::Refused { reason: String::from("no approval is recorded for this call") }
            }
        }
    }

    /// Returns the plan for a call that begins. `allows`: the user of the replay approves calls that require approval.
    /// An approval in a recording is not sufficient to run a tool: such a call returns its recorded result.
    pub fn begin_call(&self, call: &ToolCall, allows: bool) -> CallPlan {
        let is_stopped = self.stopped().is_some();
        let mut calls = self.calls.lock();
        let uses_recorded = self.options.recorded_tools || (!allows && calls.approved.contains(&call.id));
        let recorded = calls.started.get_mut(&call.name).and_then(VecDeque::pop_front);
        let count = calls.count.entry(call.name.clone()).or_default();
        *count += 1;
        let place = format!("call {count} of {}", call.name);
        let is_abandoned = recorded.as_ref().is_some_and(|recorded| recorded.finished.is_none());
        calls.open.insert(call.id.clone(), (place.clone(), recorded.clone()));
        drop(calls);
        if is_abandoned && (is_stopped || uses_recorded) {
            return CallPlan::Never;
        }
        if !uses_recorded {
            return CallPlan::Run;
        }
        let Some(RecordedCall { arguments, finished: Some(given), .. }) = recorded else {
            let message = format!("no result is recorded for {place}");
            self.report(&place, String::from("was not recorded"), None);
            return CallPlan::Return(Err(ToolError::new(ToolErrorKind::Internal, message)));
        };
        let mut now = call.arguments.to_value();
        self.mask.value(&mut now);
        fit(&mut now);
        self.report_fields(&format!("{place}, arguments"), differences(&arguments, &now));
        CallPlan::Return(given)
    }

    /// Handles the approval of a call. Advances the clock to the time of the recorded answer.
    pub fn on_approval(&self, id: &str, name: &str) {
        let is_of = |answer: &Answer| answer.id == id && answer.approval.is_some();
        let is_recorded = self.calls.lock().answers.iter().any(is_of);
        if !is_recorded {
            let message = String::from("requires an approval now, but none is recorded");
            self.report(&format!("a call of {name}"), message, None);
        }
        self.take(id, true);
    }

    /// Handles the result of a tool. Advances the clock to the time of the recorded result, and compares the results.
    pub fn on_result(&self, id: &str, result: &Result<ToolOutput, ToolError>) {
        self.take(id, false);
        if self.options.recorded_tools {
            return;
        }
        let Some((place, Some(RecordedCall { finished: Some(recorded), .. }))) =
            self.calls.lock().open.remove(id)
        else {
            return;
        };
        let mut now = comparable(result);
        self.mask.value(&mut now);
        fit(&mut now);
        self.report_fields(&place, differences(&comparable(&recorded), &now));
    }

    fn take(&self, id: &str, is_approval: bool) {
        let mut calls = self.calls.lock();
        let is_it = |answer: &Answer| answer.id == id && answer.approval.is_some() == is_approval;
        if let Some(index) = calls.answers.iter().position(is_it)
            && let Some(answer) = calls.answers.remove(index)
        {
            self.time.advance_to(answer.at_ms);
        }
        if !is_approval {
            calls.answers.retain(|answer| answer.id != id);
        }
    }
}

/// Returns the result of a call for a comparison, without the details of an error.
fn comparable(result: &Result<ToolOutput, ToolError>) -> Value {
    match result {
        Ok(ToolOutput { value, attachments }) if attachments.is_empty() => json!({"result": value}),
        Ok(ToolOutput { value, attachments }) => json!({"result": value, "attachments": attachments}),
        Err(ToolError { kind, message, path, .. }) => {
            json!({"error": {"kind": kind, "message": message, "path": path}})
        }
    }
}
