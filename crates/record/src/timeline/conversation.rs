//! The messages of a session → a timeline: a request for each message of the user.

use std::collections::HashMap;
use std::path::Path;

use deftool_chat::request::INTERRUPTED;
use deftool_chat::{Message, MessageToolCall};
use serde_json::{Map, Value};

use super::model::{
    CallEntry, CallState, Entry, EntryKind, Place, RequestTimeline, Timeline, TimelineSource, TurnEntry,
    json_of, number_turns, push_delta,
};
use crate::session::{Line, SessionPart};

impl Timeline {
    /// Returns the timeline of the session at `path`.
    pub(super) fn of_session(path: &Path, session: SessionPart) -> Self {
        let SessionPart { first, model, messages, damage, is_cut } = session;
        let about = match first {
            Line::Chat { created_at_ms, worker, model: of_worker, .. } => RequestTimeline {
                worker,
                model: model.unwrap_or(of_worker),
                submitted_at_ms: created_at_ms,
                ..RequestTimeline::default()
            },
            _ => RequestTimeline::default(),
        };
        let cut = is_cut.then(|| format!("{}: the last line is incomplete", path.display()));
        let damage = damage.iter().map(ToString::to_string).chain(cut).collect();
        Self { damage, ..Self::of_conversation(&about, messages) }
    }

    /// Returns the timeline of a conversation, with the line of each message. `about` has the members that all requests
    /// share.
    fn of_conversation(about: &RequestTimeline, messages: Vec<(usize, Message)>) -> Self {
        let mut requests: Vec<RequestTimeline> = Vec::new();
        let mut calls = HashMap::new();
        let mut new = Vec::new();
        let mut has_prompt = false;
        for (line, message) in messages {
            let is_prompt = matches!(message, Message::User { .. });
            if requests.is_empty() || (is_prompt && has_prompt) {
                // The time of the first message is that of the session.
                let submitted_at_ms = if requests.is_empty() { about.submitted_at_ms } else { 0 };
                requests.push(RequestTimeline { submitted_at_ms, ..about.clone() });
                calls.clear();
            }
            has_prompt |= is_prompt;
            if let Some(request) = requests.last_mut() {
                request.add_images(message.attachments());
                add(request, &mut calls, &mut new, Place { at_ms: 0, line }, message);
            }
        }
        if requests.is_empty() {
            requests.push(about.clone());
        }
        for request in &mut requests {
            number_turns(&mut request.entries);
        }
        Self { source: TimelineSource::Session, damage: Vec::new(), requests }
    }
}

/// Appends a message. `calls`: the indexes of calls by id. `new`: the messages since the last reply.
fn add(
    request: &mut RequestTimeline,
    calls: &mut HashMap<String, usize>,
    new: &mut Vec<Value>,
    place: Place,
    message: Message,
) {
    if !matches!(message, Message::Assistant { .. }) {
        new.push(json_of(&message));
        request.outcome.clear();
    }
    match message {
        Message::System { .. } => {}
        Message::User { content, .. } => request.prompt = content,
        Message::Assistant { content, tool_calls, .. } => {
            let turn = TurnEntry { attempt: 1, messages: std::mem::take(new), ..TurnEntry::default() };
            request.entries.push(Entry::new(place, None, EntryKind::Turn(Box::new(turn))));
            let is_answer = tool_calls.is_empty() && !content.ends_with(INTERRUPTED);
            if !content.is_empty() {
                push_delta(&mut request.entries, EntryKind::Text, &content, place);
            }
            for MessageToolCall { id, function, .. } in tool_calls {
                calls.insert(id.clone(), request.entries.len());
                let arguments =
                    serde_json::from_str(&function.arguments).unwrap_or(Value::String(function.arguments));
                let state = CallState::Abandoned;
                let call = CallEntry { id, name: function.name, arguments, state, ..CallEntry::not_run() };
                request.entries.push(Entry::new(place, None, EntryKind::Call(Box::new(call))));
            }
            if is_answer {
                request.outcome = Map::from_iter([(String::from("state"), Value::from("completed"))]);
            }
        }
        Message::Tool { tool_call_id, content, attachments } => {
            let entry = calls.get(&tool_call_id).and_then(|index| request.entries.get_mut(*index));
            if let Some(Entry { kind: EntryKind::Call(call), .. }) = entry {
                answer(call, content);
                call.attachments = attachments;
            }
        }
    }
}

/// Adds the content of a result to its call. The form of a failed call is `{"error": {"kind": …, "message": …}}`.
fn answer(call: &mut CallEntry, content: String) {
    let result = serde_json::from_str(&content).unwrap_or(Value::String(content));
    let error = result.get("error").filter(|error| error.get("kind").is_some_and(Value::is_string));
    match error.cloned() {
        Some(error) => (call.state, call.error) = (CallState::Failed, Some(error)),
        None => (call.state, call.result) = (CallState::Ok, Some(result)),
    }
}
