//! The messages of a session → a timeline: a request for each message of the user.

use std::path::Path;
use std::sync::Arc;

use deftool_chat::request::{Event, INTERRUPTED};
use deftool_chat::{Message, MessageToolCall};
use serde_json::{Map, Value};

use super::builder::Builder;
use super::model::{EntryKind, Place, RequestTimeline, Timeline, TimelineSource, TurnEntry, json_of};
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
        let mut requests: Vec<Builder> = Vec::new();
        let mut new = Vec::new();
        let mut has_prompt = false;
        for (line, message) in messages {
            let is_prompt = matches!(message, Message::User { .. });
            if requests.is_empty() || (is_prompt && has_prompt) {
                // The time of the first message is that of the session.
                let submitted_at_ms = if requests.is_empty() { about.submitted_at_ms } else { 0 };
                requests.push(Builder::of(RequestTimeline { submitted_at_ms, ..about.clone() }));
            }
            has_prompt |= is_prompt;
            if let Some(request) = requests.last_mut() {
                add(request, &mut new, Place { at_ms: 0, line }, message);
            }
        }
        if requests.is_empty() {
            requests.push(Builder::of(about.clone()));
        }
        let requests = requests.into_iter().map(Builder::finish).collect();
        Self { source: TimelineSource::Session, damage: Vec::new(), requests }
    }
}

/// Appends a message. `new`: the messages since the last reply.
fn add(builder: &mut Builder, new: &mut Vec<Value>, place: Place, message: Message) {
    builder.request.add_images(message.attachments());
    if !matches!(message, Message::Assistant { .. }) {
        new.push(json_of(&message));
        builder.request.outcome.clear();
    }
    match message {
        Message::System { .. } => {}
        Message::User { content, .. } => builder.request.prompt = content,
        Message::Assistant { content, tool_calls, .. } => {
            let turn = TurnEntry { attempt: 1, messages: std::mem::take(new), ..TurnEntry::default() };
            builder.push(place, EntryKind::Turn(Box::new(turn)));
            if tool_calls.is_empty() && !content.ends_with(INTERRUPTED) {
                let state = (String::from("state"), Value::from("completed"));
                builder.request.outcome = Map::from_iter([state]);
            }
            if !content.is_empty() {
                builder.event(place, Event::Text { text: content });
            }
            for MessageToolCall { id, function, .. } in tool_calls {
                let (name, arguments) = (function.name, function.arguments);
                let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                let arguments = Arc::new(arguments);
                builder.event(place, Event::ToolCall { id: id.clone(), name: name.clone(), arguments });
                builder.event(place, Event::ToolStarted { id, name });
            }
        }
        Message::Tool { tool_call_id: id, content, attachments } => {
            let (result, error) = answer(content);
            let (name, ok) = (String::new(), error.is_none());
            let finished = Event::ToolFinished { id, name, ok, result, attachments, error, elapsed_ms: 0 };
            builder.event(place, finished);
        }
    }
}

/// Returns the result or the error in the content of a message. The form of a failed call is
/// `{"error": {"kind": …, "message": …}}`.
fn answer(content: String) -> (Option<Value>, Option<Value>) {
    let result = serde_json::from_str(&content).unwrap_or(Value::String(content));
    let error = result.get("error").filter(|error| error.get("kind").is_some_and(Value::is_string));
    match error.cloned() {
        Some(error) => (None, Some(error)),
        None => (Some(result), None),
    }
}
