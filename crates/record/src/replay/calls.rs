//! The tool calls and approvals of a recorded request: their results, and the order of the answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use deftool_chat::request::Approval;
use deftool_lang::tool::{ToolError, ToolOutput};
use deftool_process::lock;
use serde_json::Value;

use crate::recording::{Line, RecordedRequest};

/// The recorded calls of a request, and the state of its replay.
#[derive(Debug)]
pub(super) struct Calls(Mutex<State>);

#[derive(Debug)]
pub(super) struct State {
    /// Recorded answers, in order.
    pub(super) answers: VecDeque<Answer>,
    /// Recorded calls by tool, in the order in which they began.
    pub(super) started: HashMap<String, VecDeque<RecordedCall>>,
    /// Calls that began in this replay, by id.
    pub(super) open: HashMap<String, (String, Option<RecordedCall>)>,
    /// Number of calls by tool that began in this replay.
    pub(super) count: HashMap<String, usize>,
    /// Calls that were approved in the recording.
    pub(super) approved: HashSet<String>,
}

/// A recorded answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// Id of the call.
    pub(super) id: String,
    pub(super) at_ms: u64,
    /// `None`: a tool result.
    pub(super) approval: Option<Approval>,
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(super) struct RecordedCall {
    pub(super) id: String,
    pub(super) arguments: Value,
    /// The result; `None`: the call was abandoned.
    pub(super) finished: Option<Result<ToolOutput, ToolError>>,
}

impl Calls {
    pub(super) fn of(request: &RecordedRequest) -> Self {
        let mut answers = VecDeque::new();
        let mut started: HashMap<String, VecDeque<RecordedCall>> = HashMap::new();
        for (_, line) in &request.lines {
            match line {
                Line::ToolStarted { id, name, arguments, .. } => {
                    let (id, arguments) = (id.clone(), arguments.clone());
                    let call = RecordedCall { id, arguments, finished: None };
                    started.entry(name.clone()).or_default().push_back(call);
                }
                Line::ToolFinished { at_ms, id, name, result, attachments, error } => {
                    let calls = started.get_mut(name).into_iter().flatten();
                    if let Some(call) = calls.rev().find(|call| call.id == *id && call.finished.is_none()) {
                        let given = match error {
                            Some(error) => Err(error.clone()),
                            None => {
                                let (value, attachments) = (result.clone(), attachments.clone());
                                Ok(ToolOutput { value: value.unwrap_or_default(), attachments })
                            }
                        };
                        call.finished = Some(given);
                    }
                    answers.push_back(Answer { id: id.clone(), at_ms: *at_ms, approval: None });
                }
                Line::Approval { at_ms, id, answer, .. } => {
                    let approval = Some(answer.clone());
                    answers.push_back(Answer { id: id.clone(), at_ms: *at_ms, approval });
                }
                Line::Session { .. }
                | Line::Request { .. }
                | Line::Response { .. }
                | Line::Data { .. }
                | Line::End { .. }
                | Line::NoConnection { .. }
                | Line::Log { .. }
                | Line::Attachment(_)
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
            approved: HashSet::new(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}
