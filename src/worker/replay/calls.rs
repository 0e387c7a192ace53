//! The tool calls and approvals of a recorded request: what a call gave, and in which order calls were answered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::Script;
use crate::request::Approval;
use crate::tool::{ToolCall, ToolError, ToolErrorKind};
use crate::worker::compare::differences;
use crate::worker::recording::{Line, RecordedRequest, Stopped, fit};

/// What a replay knows of the calls of its request.
#[derive(Debug)]
pub(super) struct Calls(Mutex<State>);

#[derive(Debug)]
struct State {
    /// In the order they came.
    answers: VecDeque<Answer>,
    /// The calls of each tool, in the order they began.
    begun: HashMap<String, VecDeque<RecordedCall>>,
    /// Those that were begun in this replay, by their ids.
    open: HashMap<String, (String, Option<RecordedCall>)>,
    /// How many calls of each tool were begun in this replay.
    count: HashMap<String, usize>,
    /// Whether the recording tells calls apart.
    has_ids: bool,
    /// Calls that an approval in the recording allows.
    approved: HashSet<String>,
}

/// Something that was answered.
#[derive(Debug)]
struct Answer {
    /// `None` in the first format.
    id: Option<String>,
    at_ms: u64,
    /// `None`: a tool's result.
    approval: Option<Approval>,
}

/// A call that was begun.
#[derive(Debug, Clone)]
struct RecordedCall {
    id: String,
    at_ms: u64,
    arguments: Value,
    /// When it was over and what it gave; `None`: it was given up.
    finished: Option<(u64, Result<Value, ToolError>)>,
}

/// Which answer the machine gets next.
#[derive(Debug)]
pub(in crate::worker) enum Next {
    /// That of this call; its approval, or its result.
    Of {
        /// The call.
        id: String,
        /// Whether it is an approval.
        is_approval: bool,
    },
    /// Whichever comes first.
    Any,
    /// None: the recorded request was stopped here.
    Stop(Stopped),
}

/// What is done with a call.
#[derive(Debug)]
pub(in crate::worker) enum CallPlan {
    /// The tool runs.
    Run,
    /// It gives this, after a while.
    Give(Result<Value, ToolError>, Option<Duration>),
    /// Nothing: the recorded call was given up before it gave anything.
    Never,
}

impl Calls {
    pub(super) fn of(request: &RecordedRequest) -> Self {
        let mut answers = VecDeque::new();
        let mut begun: HashMap<String, VecDeque<RecordedCall>> = HashMap::new();
        for (_, line) in &request.lines {
            match line {
                Line::Tool { finished_ms, .. } => {
                    answers.push_back(Answer { id: None, at_ms: *finished_ms, approval: None });
                }
                Line::ToolStarted { at_ms, id, name, arguments } => {
                    let (id, arguments) = (id.clone(), arguments.clone());
                    let call = RecordedCall { id, at_ms: *at_ms, arguments, finished: None };
                    begun.entry(name.clone()).or_default().push_back(call);
                }
                Line::ToolFinished { at_ms, id, name, result, error } => {
                    let calls = begun.get_mut(name).into_iter().flatten();
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
            begun,
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

impl Script {
    /// Which answer comes next.
    pub(in crate::worker) fn next_answer(&self) -> Next {
        match self.calls.lock().answers.front() {
            Some(Answer { id: Some(id), approval, .. }) => {
                Next::Of { id: id.clone(), is_approval: approval.is_some() }
            }
            Some(Answer { id: None, .. }) => Next::Any,
            None => self.stopped().map_or(Next::Any, Next::Stop),
        }
    }

    /// What a person answered about a call, and after what time. Nobody is asked in a replay.
    pub(in crate::worker) fn approval(&self, id: &str) -> (Approval, Option<Duration>) {
        let mut calls = self.calls.lock();
        let is_of = |answer: &&Answer| answer.id.as_deref() == Some(id) && answer.approval.is_some();
        match calls.answers.iter().find(is_of) {
            Some(Answer { at_ms, approval: Some(approval), .. }) => {
                let gap = Duration::from_millis(at_ms.saturating_sub(self.clock().now_ms()));
                let approval = approval.clone();
                calls.approved.insert(id.to_owned());
                (approval, self.paced(gap))
            }
            // The recorded request may have ended before it: a difference it is once it is taken.
            Some(_) | None => {
                (Approval::Refused { reason: String::from("the recording holds no answer") }, None)
            }
        }
    }

    /// What is done with a call that begins. `allows`: calls that need an approval have that of whoever plays. That of a
    /// recording is the word of whoever wrote it, for what was done then: such a call gives what it gave.
    pub(in crate::worker) fn begin_call(&self, call: &ToolCall, allows: bool) -> CallPlan {
        let is_stopped = self.stopped().is_some();
        let mut calls = self.calls.lock();
        let gives = self.options.recorded_tools || (!allows && calls.approved.contains(&call.id));
        let recorded = calls.begun.get_mut(&call.name).and_then(VecDeque::pop_front);
        let count = calls.count.entry(call.name.clone()).or_default();
        *count += 1;
        let place = format!("call {count} of {}", call.name);
        let gave_up = match &recorded {
            Some(recorded) => recorded.finished.is_none(),
            None => is_stopped && !calls.has_ids && calls.answers.is_empty(),
        };
        let has_ids = calls.has_ids;
        calls.open.insert(call.id.clone(), (place.clone(), recorded.clone()));
        drop(calls);
        if gave_up && (is_stopped || gives) {
            return CallPlan::Never;
        }
        if !gives {
            return CallPlan::Run;
        }
        let Some(RecordedCall { at_ms, arguments, finished: Some((end_ms, given)), .. }) = recorded else {
            let message = if has_ids {
                format!("the recording holds no result of {place}")
            } else {
                String::from("this recording is of format 1, which holds no results of tools; let them run")
            };
            self.tell(&place, String::from("was not recorded"), None);
            return CallPlan::Give(Err(ToolError::new(ToolErrorKind::Internal, message)), None);
        };
        let mut now = Value::Object(call.arguments.clone());
        self.mask.value(&mut now);
        fit(&mut now);
        self.tell_fields(&format!("{place}, arguments"), differences(&arguments, &now, false));
        let took = Duration::from_millis(end_ms.saturating_sub(at_ms));
        CallPlan::Give(given, self.paced(took))
    }

    /// A call was answered by a person; the clock reaches the time of the recorded answer.
    pub(in crate::worker) fn approved(&self, id: &str, name: &str) {
        let is_of = |answer: &Answer| answer.id.as_deref() == Some(id) && answer.approval.is_some();
        let is_recorded = self.calls.lock().answers.iter().any(is_of);
        if !is_recorded {
            let message = String::from("asks for an approval now, which the recording has no answer to");
            self.tell(&format!("a call of {name}"), message, None);
        }
        self.take(id, true);
    }

    /// A tool gave something; the clock reaches the time when the recorded one did.
    pub(in crate::worker) fn finished(&self, id: &str, result: &Result<Value, ToolError>) {
        self.take(id, false);
        if self.options.recorded_tools {
            return;
        }
        let Some((place, Some(RecordedCall { finished: Some((_, recorded)), .. }))) =
            self.calls.lock().open.remove(id)
        else {
            return;
        };
        let mut now = told(result);
        self.mask.value(&mut now);
        fit(&mut now);
        self.tell_fields(&place, differences(&told(&recorded), &now, false));
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

/// What a call gave, as differences name it. Not its details: where in a script it failed is for people.
fn told(result: &Result<Value, ToolError>) -> Value {
    match result {
        Ok(value) => json!({"result": value}),
        Err(ToolError { kind, message, path, .. }) => {
            json!({"error": {"kind": kind, "message": message, "path": path}})
        }
    }
}
