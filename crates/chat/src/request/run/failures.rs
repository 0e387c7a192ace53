//! The answers to calls, and the end of a request whose model repeats a failing call.
//!
//! A model that gets the same error for the same call rarely finds a way out. After three identical failures in a row
//! the answer contains a warning, and the fifth ends the request. Identical calls of one reply count once, because the
//! model had no answer in between.

use std::sync::Arc;

use deftool_lang::spec::StringResults;
use deftool_lang::tool::ToolError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::{Batch, CallState};
use crate::request::outcome::{FailReason, Failure, kind};

/// Number of identical failures in a row from which on the model is warned.
const WARN_AT: u32 = 3;

/// Number of identical failures in a row that ends the request.
const END_AT: u32 = 5;

/// The number of replies in a row in which the last call failed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RepeatedFailures {
    /// The name and the arguments of the last call, if it failed.
    call: Option<(String, Arc<Value>)>,
    /// The turn of the last failure.
    turn: u32,
    count: u32,
}

impl RepeatedFailures {
    /// Answers a call of `batch`, or lets it fail the request.
    pub(super) fn answer(
        &mut self,
        batch: &mut Batch,
        index: usize,
        result: Result<Value, ToolError>,
        (turn, strings): (u32, StringResults),
    ) {
        let Some(call) = batch.calls.get_mut(index) else { return };
        let error = match result {
            Ok(value) => {
                *self = Self::default();
                call.state = CallState::Answered { answer: call.text_of(value, strings) };
                return;
            }
            Err(error) => error,
        };
        let is_same = |(name, arguments): &(String, Arc<Value>)| {
            *name == call.name && (Arc::ptr_eq(arguments, call.arguments()) || arguments == call.arguments())
        };
        if !self.call.as_ref().is_some_and(is_same) {
            *self = Self { call: Some((call.name.clone(), Arc::clone(call.arguments()))), turn, count: 1 };
        } else if self.turn != turn {
            (self.turn, self.count) = (turn, self.count + 1);
        }
        let mut answer = json!({"error": error_for_model(&error)});
        if let (WARN_AT.., Some(members)) = (self.count, answer.as_object_mut()) {
            let warning = format!(
                "this call failed {} times in a row with the same arguments; do not repeat it: change the arguments, \
                 use another tool, or answer without it",
                self.count
            );
            members.insert(String::from("warning"), Value::String(warning));
        }
        call.state = CallState::Answered { answer: answer.to_string() };
        if self.count >= END_AT {
            let detail = format!(
                "the model repeated a call that failed {} times in a row: {}: {}",
                self.count, call.name, error.message
            );
            let failure = Failure::new(FailReason::ToolExecutionError, kind::REPEATED_FAILURE, detail);
            batch.end_with(index, failure);
        }
    }
}

/// Returns the error for the model, without the details for the user.
fn error_for_model(error: &ToolError) -> Value {
    let ToolError { kind, message, path, details: _ } = error;
    match path {
        Some(path) => json!({"kind": kind, "message": message, "path": path}),
        None => json!({"kind": kind, "message": message}),
    }
}
