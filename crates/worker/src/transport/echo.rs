//! Detects an API key in a reply that the redaction of single reads does not find: split over several deltas, or
//! written with escape sequences.
//!
//! Shown text cannot be removed, so the reply ends before the delta that completes the key is shown. Every text of a
//! server that may get into events, failures or warnings is checked here, after [`super::key_tail`], which checks only
//! the texts of streams.

use deftool_chat::{ChatEvent, RawArguments, RawCall, Reply, ReplyStatus, ServerError, StreamNotes};
use deftool_record::Redactor;
use serde_json::Value;

/// Checks one reply.
pub(crate) struct EchoGuard<'t> {
    redactor: &'t Redactor,
    /// Maximum length of a secret, in bytes; 0 without secrets.
    longest: usize,
    text: String,
    reasoning: String,
}

impl<'t> EchoGuard<'t> {
    pub(crate) fn new(redactor: &'t Redactor) -> Self {
        let longest = redactor.longest();
        Self { redactor, longest, text: String::new(), reasoning: String::new() }
    }

    /// Whether `events` complete the key, together with the previous events.
    pub(crate) fn completes_key(&mut self, events: &[ChatEvent]) -> bool {
        let Self { redactor, longest, .. } = *self;
        // A secret may begin in the last bytes of the previous text.
        let Some(kept) = longest.checked_sub(1) else { return false };
        events.iter().any(|event| match event {
            ChatEvent::Text { text } => completes(&mut self.text, text, kept, redactor),
            ChatEvent::Reasoning { text } => completes(&mut self.reasoning, text, kept, redactor),
            ChatEvent::ToolCallDelta { name, .. } => redactor.is_in(name),
            ChatEvent::Progress { .. } => false,
            ChatEvent::Ended { reply } => self.is_in_reply(reply),
        })
    }

    /// Whether an error contains the key.
    pub(crate) fn is_in_error(&self, error: &ServerError) -> bool {
        let ServerError { message, failed_generation, kind: _, code: _ } = error;
        // The text that the server could not parse continues the text of the reply.
        let written = failed_generation.as_ref().map(|text| format!("{}{text}", self.text));
        self.redactor.is_in(message) || written.is_some_and(|written| self.redactor.is_in(&written))
    }

    /// Whether any string in the JSON of an error contains the key. The whole body is recorded.
    pub(crate) fn is_in_json(&self, body: &[u8]) -> bool {
        serde_json::from_slice::<Value>(body).is_ok_and(|value| self.is_in_value(&value))
    }

    /// Whether a name, string or number in a value contains the key.
    fn is_in_value(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => self.redactor.is_in(&number.to_string()),
            Value::String(text) => self.redactor.is_in(text),
            Value::Array(items) => items.iter().any(|item| self.is_in_value(item)),
            Value::Object(members) => {
                members.iter().any(|(name, value)| self.redactor.is_in(name) || self.is_in_value(value))
            }
        }
    }

    /// Whether the notes about an unusual reply contain the key.
    pub(crate) fn is_in_notes(&self, notes: &StreamNotes) -> bool {
        let StreamNotes { body_start, transport_error, foreign_items, .. } = notes;
        let mut texts = body_start.iter().chain(transport_error).chain(foreign_items);
        texts.any(|text| self.redactor.is_in(text))
    }

    /// Whether a reply contains the key. The model name and the id are only passed to an [`Observer`](crate::Observer),
    /// so they are not checked.
    fn is_in_reply(&self, reply: &Reply) -> bool {
        // Opaque parts are not shown: a part with a secret is dropped.
        let Reply {
            status,
            calls,
            lost_frames: _,
            finish_reason,
            finish_detail,
            usage: _,
            model: _,
            opaque: _,
        } = reply;
        let is_in_status = match status {
            ReplyStatus::ServerError { error } => self.is_in_error(error),
            ReplyStatus::Incomplete { cause } => {
                cause.as_ref().is_some_and(|cause| self.redactor.is_in(cause))
            }
            ReplyStatus::Complete | ReplyStatus::CallTruncated { .. } | ReplyStatus::Empty => false,
        };
        // An unknown finish reason is shown in a warning, as is the explanation of a refusal.
        let is_in_finish = finish_reason.iter().chain(finish_detail).any(|text| self.redactor.is_in(text));
        is_in_status || is_in_finish || calls.iter().any(|call| self.is_in_call(call))
    }

    fn is_in_call(&self, call: &RawCall) -> bool {
        let is_in_arguments = match &call.arguments {
            RawArguments::Object { value } => self.is_in_value(value),
            RawArguments::Malformed { text, .. } => self.redactor.is_in(text),
        };
        is_in_arguments || self.redactor.is_in(&call.name)
    }
}

fn completes(before: &mut String, piece: &str, kept: usize, redactor: &Redactor) -> bool {
    before.push_str(piece);
    if redactor.is_in(before) {
        return true;
    }
    let mut cut = before.len().saturating_sub(kept);
    while !before.is_char_boundary(cut) {
        cut += 1;
    }
    before.drain(..cut);
    false
}
