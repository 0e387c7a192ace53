//! The answers to calls, and the end of a request whose model repeats a failing call.
//!
//! A model that gets the same error for the same call rarely finds a way out. After three identical failures in a row
//! the answer contains a warning, and the fifth ends the request. Identical calls of one reply count once, because the
//! model had no answer in between.

use std::sync::Arc;

use deftool_lang::tool::{ToolError, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::{Batch, CallState};
use crate::request::config::RunConfig;
use crate::request::outcome::{FailReason, Failure, FailureKind};
use crate::request::result_size::cut_result;

/// Number of identical failures in a row from which on the model is warned.
const WARN_AT: u32 = 3;

/// Number of identical failures in a row that ends the request.
const END_AT: u32 = 5;

/// Maximum number of failed calls of a reply that are compared with those of the next one.
const MAX_COMPARED: usize = 16;

/// The failed calls of the last two replies. A call that succeeds clears them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RepeatedFailures {
    /// The turn of the last failure.
    turn: u32,
    /// The failed calls of that turn, and of the one before.
    calls: Vec<FailedCall>,
    before: Vec<FailedCall>,
}

/// A call that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FailedCall {
    name: String,
    arguments: Arc<Value>,
    /// The number of replies in a row in which it failed.
    count: u32,
}

impl RepeatedFailures {
    /// Counts a failed call. Returns the number of replies in a row in which it failed.
    fn count(&mut self, turn: u32, name: &str, arguments: &Arc<Value>) -> u32 {
        if self.turn != turn {
            self.turn = turn;
            self.before = std::mem::take(&mut self.calls);
        }
        let count_in = |calls: &[FailedCall]| {
            let is_same = |call: &&FailedCall| {
                call.name == name && (Arc::ptr_eq(&call.arguments, arguments) || call.arguments == *arguments)
            };
            calls.iter().find(is_same).map(|call| call.count)
        };
        if let Some(count) = count_in(&self.calls) {
            return count;
        }
        let count = count_in(&self.before).unwrap_or_default() + 1;
        if self.calls.len() < MAX_COMPARED {
            self.calls.push(FailedCall { name: name.to_owned(), arguments: Arc::clone(arguments), count });
        }
        count
    }

    /// Answers a call of `batch`, or lets it fail the request.
    pub(super) fn answer(
        &mut self,
        batch: &mut Batch,
        index: usize,
        result: Result<ToolOutput, ToolError>,
        (turn, config): (u32, &RunConfig),
    ) {
        let Some(call) = batch.calls.get_mut(index) else { return };
        let error = match result {
            Ok(ToolOutput { value, attachments }) => {
                *self = Self::default();
                call.state = CallState::Answered { answer: call.text_of(value, config), attachments };
                return;
            }
            Err(error) => error,
        };
        let count = self.count(turn, &call.name, call.arguments());
        let mut answer = json!({"error": error_for_model(&error, call.max_result(config))});
        if let (WARN_AT.., Some(members)) = (count, answer.as_object_mut()) {
            let warning = format!(
                "this call failed {count} times in a row with the same arguments; do not repeat it: change the arguments, \
                 use another tool, or answer without it"
            );
            members.insert(String::from("warning"), Value::String(warning));
        }
        call.state = CallState::Answered { answer: answer.to_string(), attachments: Vec::new() };
        if count >= END_AT {
            let detail = format!(
                "the model repeated a call that failed {count} times in a row: {}: {}",
                call.name, error.message
            );
            let failure = Failure::new(FailReason::ToolExecutionError, FailureKind::RepeatedFailure, detail);
            batch.end_with(index, failure);
        }
    }
}

/// Returns the error for the model, without the details for the user. A message that is longer than `limit` bytes is cut.
fn error_for_model(error: &ToolError, limit: u64) -> Value {
    let ToolError { kind, message, path, details: _ } = error;
    let message = cut_result(message.clone(), limit);
    match path {
        Some(path) => json!({"kind": kind, "message": message, "path": path}),
        None => json!({"kind": kind, "message": message}),
    }
}
