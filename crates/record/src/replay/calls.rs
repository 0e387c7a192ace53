//! The tool calls and approvals of a recorded request: their results, and the order of the answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use deftool_chat::request::{Approval, Event};
use deftool_lang::tool::{Attachment, ToolError, ToolErrorKind, ToolOutput};
use deftool_process::lock;
use serde::Deserialize;
use serde_json::Value;

use crate::recording::{RecordedEvent, RecordedRequest};

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
        let mut arguments: HashMap<&str, &Value> = HashMap::new();
        for RecordedEvent { at_ms, event, .. } in &request.events {
            match event {
                Event::ToolCall { id, arguments: written, .. } => drop(arguments.insert(id, written)),
                Event::ToolStarted { id, name } => {
                    let arguments = arguments.get(id.as_str()).copied().cloned().unwrap_or_default();
                    let call = RecordedCall { id: id.clone(), arguments, finished: None };
                    started.entry(name.clone()).or_default().push_back(call);
                }
                Event::ToolFinished { id, name, result, attachments, error, .. } => {
                    let calls = started.get_mut(name).into_iter().flatten();
                    // A call that no tool ran, for example because it was refused, needs no answer.
                    let open = calls.rev().find(|call| call.id == *id && call.finished.is_none());
                    let Some(call) = open else { continue };
                    call.finished = Some(given(result.as_ref(), attachments, error.as_ref()));
                    answers.push_back(Answer { id: id.clone(), at_ms: *at_ms, approval: None });
                }
                Event::Approval { id, answer: Some(answer), .. } => {
                    let approval = Some(answer.clone());
                    answers.push_back(Answer { id: id.clone(), at_ms: *at_ms, approval });
                }
                _ => {}
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

/// Returns the result of a tool from the members of its event.
fn given(
    result: Option<&Value>,
    attachments: &[Attachment],
    error: Option<&Value>,
) -> Result<ToolOutput, ToolError> {
    match error {
        None => {
            Ok(ToolOutput { value: result.cloned().unwrap_or_default(), attachments: attachments.to_vec() })
        }
        Some(error) => Err(ToolError::deserialize(error)
            .unwrap_or_else(|_| ToolError::new(ToolErrorKind::Internal, error.to_string()))),
    }
}
