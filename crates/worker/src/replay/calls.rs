//! The tool calls and approvals of a recorded request: their results, and the order of the answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deftool_chat::request::Approval;
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::ReplayCursor;
use crate::compare::differences;
use crate::recording::{Line, RecordedRequest, Stopped, fit};

/// The recorded calls of a request, and the state of its replay.
#[derive(Debug)]
pub(super) struct Calls(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Recorded answers, in order.
    answers: VecDeque<Answer>,
    /// Recorded calls by tool, in the order in which they began.
    started: HashMap<String, VecDeque<RecordedCall>>,
    /// Calls that began in this replay, by id.
    open: HashMap<String, (String, Option<RecordedCall>)>,
    /// Number of calls by tool that began in this replay.
    count: HashMap<String, usize>,
    /// Whether the recording contains call ids.
    has_ids: bool,
    /// Calls that were approved in the recording.
    approved: HashSet<String>,
}

/// A recorded answer.
#[derive(Debug)]
struct Answer {
    /// `None` in format 1.
    id: Option<String>,
    at_ms: u64,
    /// `None`: a tool result.
    approval: Option<Approval>,
}

/// A recorded call.
#[derive(Debug, Clone)]
struct RecordedCall {
    id: String,
    at_ms: u64,
    arguments: Value,
    /// End time and result; `None`: the call was abandoned.
    finished: Option<(u64, Result<Value, ToolError>)>,
}

/// The next answer for the request machine.
#[derive(Debug)]
pub(crate) enum NextAnswer {
    /// The approval or the result of this call.
    Of {
        /// The call.
        id: String,
        /// Whether it is an approval.
        is_approval: bool,
    },
    /// The first answer of any call.
    Any,
    /// The recorded request was stopped here.
    Stop(Stopped),
}

/// How a replay answers a call.
#[derive(Debug)]
pub(crate) enum CallPlan {
    /// Run the tool.
    Run,
    /// Return this result, after a delay.
    Return(Result<Value, ToolError>, Option<Duration>),
    /// Never answer: the recorded call was abandoned.
    Never,
}

impl Calls {
    pub(super) fn of(request: &RecordedRequest) -> Self {
        let mut answers = VecDeque::new();
        let mut started: HashMap<String, VecDeque<RecordedCall>> = HashMap::new();
        for (_, line) in &request.lines {
            match line {
                Line::Tool { finished_ms, .. } => {
                    answers.push_back(Answer { id: None, at_ms: *finished_ms, approval: None });
                }
                Line::ToolStarted { at_ms, id, name, arguments } => {
                    let (id, arguments) = (id.clone(), arguments.clone());
                    let call = RecordedCall { id, at_ms: *at_ms, arguments, finished: None };
                    started.entry(name.clone()).or_default().push_back(call);
                }
                Line::ToolFinished { at_ms, id, name, result, error } => {
                    let calls = started.get_mut(name).into_iter().flatten();
                    if let Some(call) = calls.rev().find(|call| call.id == *id && call.finished.is_none()) {
                        let given = match error {
                            Some(error) => Err(error.clone()),
                            None => Ok(result.clone().unwrap_or_default()),
                        };
                        call.finished = Some((*at_ms, given));
                    }
                    answers.push_back(Answer { id: Some(id.clone()), at_ms: *at_ms, approval: None });
                }
                Line::Approval { at_ms, id, answer, .. } => {
                    let approval = Some(answer.clone());
                    answers.push_back(Answer { id: Some(id.clone()), at_ms: *at_ms, approval });
                }
                Line::Session { .. }
                | Line::Request { .. }
                | Line::Response { .. }
                | Line::Data { .. }
                | Line::End { .. }
                | Line::NoConnection { .. }
                | Line::Reloaded { .. }
                | Line::Stopped(_)
                | Line::Finished { .. } => {}
            }
        }
        Self(Mutex::new(State {
            answers,
            started,
            open: HashMap::new(),
            count: HashMap::new(),
            has_ids: request.holds_results(),
            approved: HashSet::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplayCursor {
    /// Returns the next answer.
    pub(crate) fn next_answer(&self) -> NextAnswer {
        match self.calls.lock().answers.front() {
            Some(Answer { id: Some(id), approval, .. }) => {
                NextAnswer::Of { id: id.clone(), is_approval: approval.is_some() }
            }
            Some(Answer { id: None, .. }) => NextAnswer::Any,
            None => self.stopped().map_or(NextAnswer::Any, NextAnswer::Stop),
        }
    }

    /// Returns the recorded approval of a call and its delay. A replay does not ask the user.
    pub(crate) fn approval(&self, id: &str) -> (Approval, Option<Duration>) {
        let mut calls = self.calls.lock();
        let is_of = |answer: &&Answer| answer.id.as_deref() == Some(id) && answer.approval.is_some();
        match calls.answers.iter().find(is_of) {
            Some(Answer { at_ms, approval: Some(approval), .. }) => {
                let gap = Duration::from_millis(at_ms.saturating_sub(self.clock().now_ms()));
                let approval = approval.clone();
                calls.approved.insert(id.to_owned());
                (approval, self.paced(gap))
            }
            // The recorded request may have ended before. A difference is reported once the answer is used.
            Some(_) | None => {
                (Approval::Refused { reason: String::from("no approval is recorded for this call") }, None)
            }
        }
    }

    /// Returns how to answer a call that begins. `allows`: the user of the replay approves calls that require approval.
    /// An approval in a recording is not sufficient to run a tool: such a call returns its recorded result.
    pub(crate) fn begin_call(&self, call: &ToolCall, allows: bool) -> CallPlan {
        let is_stopped = self.stopped().is_some();
        let mut calls = self.calls.lock();
        let uses_recorded = self.options.recorded_tools || (!allows && calls.approved.contains(&call.id));
        let recorded = calls.started.get_mut(&call.name).and_then(VecDeque::pop_front);
        let count = calls.count.entry(call.name.clone()).or_default();
        *count += 1;
        let place = format!("call {count} of {}", call.name);
        let is_abandoned = match &recorded {
            Some(recorded) => recorded.finished.is_none(),
            None => is_stopped && !calls.has_ids && calls.answers.is_empty(),
        };
        let has_ids = calls.has_ids;
        calls.open.insert(call.id.clone(), (place.clone(), recorded.clone()));
        drop(calls);
        if is_abandoned && (is_stopped || uses_recorded) {
            return CallPlan::Never;
        }
        if !uses_recorded {
            return CallPlan::Run;
        }
        let Some(RecordedCall { at_ms, arguments, finished: Some((end_ms, given)), .. }) = recorded else {
            let message = if has_ids {
                format!("no result is recorded for {place}")
            } else {
                String::from("recordings of format 1 contain no tool results; run the tools instead")
            };
            self.report(&place, String::from("was not recorded"), None);
            return CallPlan::Return(Err(ToolError::new(ToolErrorKind::Internal, message)), None);
        };
        let mut now = Value::Object(call.arguments.clone());
        self.mask.value(&mut now);
        fit(&mut now);
        self.report_fields(&format!("{place}, arguments"), differences(&arguments, &now, false));
        let took = Duration::from_millis(end_ms.saturating_sub(at_ms));
        CallPlan::Return(given, self.paced(took))
    }

    /// Handles the approval of a call. Advances the clock to the time of the recorded answer.
    pub(crate) fn approved(&self, id: &str, name: &str) {
        let is_of = |answer: &Answer| answer.id.as_deref() == Some(id) && answer.approval.is_some();
        let is_recorded = self.calls.lock().answers.iter().any(is_of);
        if !is_recorded {
            let message = String::from("requires an approval now, but none is recorded");
            self.report(&format!("a call of {name}"), message, None);
        }
        self.take(id, true);
    }

    /// Handles the result of a tool. Advances the clock to the time of the recorded result, and compares the results.
    pub(crate) fn finished(&self, id: &str, result: &Result<Value, ToolError>) {
        self.take(id, false);
        if self.options.recorded_tools {
            return;
        }
        let Some((place, Some(RecordedCall { finished: Some((_, recorded)), .. }))) =
            self.calls.lock().open.remove(id)
        else {
            return;
        };
        let mut now = comparable(result);
        self.mask.value(&mut now);
        fit(&mut now);
        self.report_fields(&place, differences(&comparable(&recorded), &now, false));
    }

    fn take(&self, id: &str, is_approval: bool) {
        let mut calls = self.calls.lock();
        let is_it = |answer: &Answer| match &answer.id {
            Some(known) => known == id && answer.approval.is_some() == is_approval,
            None => !is_approval,
        };
        if let Some(index) = calls.answers.iter().position(is_it)
            && let Some(answer) = calls.answers.remove(index)
        {
            self.clock().reach(answer.at_ms);
        }
        if !is_approval {
            calls.answers.retain(|answer| answer.id.as_deref() != Some(id));
        }
    }
}

/// Returns the result of a call for a comparison, without the details of an error.
fn comparable(result: &Result<Value, ToolError>) -> Value {
    match result {
        Ok(value) => json!({"result": value}),
        Err(ToolError { kind, message, path, .. }) => {
            json!({"error": {"kind": kind, "message": message, "path": path}})
        }
    }
}
