//! Replies as the body of an answer, in the format of any API. The stub encodes them. The variations of servers are edits
//! of its events.

use std::collections::BTreeSet;

use deftool_chat::Api;
use deftool_test_support::server::{delta, encode_events, encode_whole, finish, usage};
use serde_json::{Value, json};

use super::reply::{Reply, pieces};
use super::script::{Frame, PROMPT_TOKENS, ReplyEnd, ScriptedCall, Tail};

/// The end of the stream of a chat completion, and of some responses.
const DONE: &str = "[DONE]";

/// Whether an event only marks the end.
fn is_mark(event: &Value) -> bool {
    event == DONE || event["type"] == "message_stop"
}

/// Whether an event contains the finish reason.
fn is_finish(event: &Value) -> bool {
    event.pointer("/choices/0/finish_reason").is_some_and(Value::is_string)
        || matches!(
            event["type"].as_str(),
            Some("message_delta" | "response.completed" | "response.incomplete")
        )
}

/// Returns what a type such as `response.output_text.delta` reports of its subject.
fn last_word(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or_default()
}

fn delta_with(member: &str, value: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {member: value}}]})
}

fn remove(value: &mut Value, member: &str) {
    if let Value::Object(members) = value {
        members.shift_remove(member);
    }
}

/// Adds a suffix to the ids of the items in an event of a response. Without a suffix, removes them.
fn change_ids(event: &mut Value, suffix: Option<usize>) {
    let change = |holder: &mut Value, member: &str| match (holder.get_mut(member), suffix) {
        (Some(id), Some(suffix)) => *id = json!(format!("{}_{suffix}", id.as_str().unwrap_or_default())),
        (Some(_), None) => remove(holder, member),
        (None, _) => {}
    };
    change(event, "item_id");
    event.get_mut("item").into_iter().for_each(|item| change(item, "id"));
    let output = event.pointer_mut("/response/output").and_then(Value::as_array_mut);
    output.into_iter().flatten().for_each(|item| change(item, "id"));
}

impl Frame {
    /// Returns the frame of an event, without its bytes. `text` is the size of the text in the frames before.
    fn of(event: &Value, text: usize) -> Self {
        let kind = event["type"].as_str().unwrap_or_default();
        let delta = match event.pointer("/choices/0/delta") {
            Some(delta) => delta,
            None => &event["delta"],
        };
        let piece = match kind {
            "response.output_text.delta" => delta,
            "content_block_delta" => &delta["text"],
            _ => &delta["content"],
        };
        let items = event.pointer("/response/output").and_then(Value::as_array).into_iter().flatten();
        let mut messages = items.filter(|item| item["type"] == "message");
        let output = messages.find_map(|item| item.pointer("/content/0/text")?.as_str());
        let is_token = match kind {
            "" => delta.as_object().is_some_and(|delta| !delta.is_empty()),
            "content_block_start" => event["content_block"]["type"] == "tool_use",
            "content_block_delta" => delta["type"] != "signature_delta",
            "response.output_item.added" => event["item"]["type"] == "function_call",
            _ => last_word(kind) == "delta",
        };
        let is_last = is_mark(event)
            || event.get("error").is_some()
            || matches!(kind, "response.completed" | "response.incomplete" | "response.failed");
        let counts = ["/usage", "/message/usage", "/response/usage"].map(|at| event.pointer(at));
        let counts = counts.into_iter().flatten();
        Self {
            text: piece.as_str().map_or(0, str::len).max(output.map_or(0, |output| output.len() - text)),
            is_token,
            is_progress: event.get("prompt_progress").is_some(),
            is_usage: counts
                .flat_map(|counts| [&counts["prompt_tokens"], &counts["input_tokens"]])
                .any(|count| *count == PROMPT_TOKENS),
            is_finish: is_finish(event) && !is_last,
            is_last,
            ..Self::default()
        }
    }
}

impl Reply<'_, '_> {
    /// Returns true with this probability, and counts the feature then.
    fn has(&mut self, percent: u32, feature: &'static str) -> bool {
        let has = self.dice.chance(percent);
        if has {
            self.count(feature);
        }
        has
    }

    /// Returns the calls. The Responses API has no duplicate ids, since an id identifies a call there.
    fn calls(&self) -> Vec<ScriptedCall> {
        let mut calls = self.script.content.calls.clone();
        let mut used = BTreeSet::new();
        for call in calls.iter_mut().filter(|_| self.context.api == Api::Responses) {
            call.id.take_if(|id| !used.insert(id.clone()));
        }
        calls
    }

    /// Returns the chunks with the content: reasoning, text, calls.
    fn content(&mut self) -> Vec<Value> {
        let mut chunks = Vec::new();
        if self.has(25, "reasoning") {
            let members: &[&str] = match self.context.api {
                Api::Messages => &["reasoning_content"],
                Api::ChatCompletions | Api::Responses => &["reasoning_content", "reasoning"],
            };
            let (words, member) = (self.words(), *self.dice.pick(members));
            chunks.push(delta_with(member, &json!(words)));
        }
        chunks.extend(pieces(self.dice, &self.script.content.text()).iter().map(|piece| delta(piece)));
        let calls = self.calls();
        let in_one_piece = !calls.is_empty() && self.has(15, "calls in one piece");
        for (index, call) in calls.into_iter().enumerate() {
            let whole = call.arguments.filter(|arguments| in_one_piece && *arguments != json!({}));
            let rest = if whole.is_some() { Vec::new() } else { pieces(self.dice, &call.text) };
            let function = json!({"name": call.name, "arguments": whole.unwrap_or_else(|| json!(""))});
            let mut first = json!({"index": index, "type": "function", "function": function});
            if let Some(id) = call.id {
                first["id"] = json!(id);
            }
            let rest = rest.iter().map(|piece| json!({"index": index, "function": {"arguments": piece}}));
            chunks.extend(
                [first].into_iter().chain(rest).map(|entry| delta_with("tool_calls", &json!([entry]))),
            );
        }
        chunks
    }

    fn finish_reason(&mut self) -> &'static str {
        if self.script.content.end == ReplyEnd::Truncated {
            return "length";
        }
        let rare = if self.context.api == Api::Messages { "stop_sequence" } else { "eos" };
        let without_calls = ["stop", "stop", "length", rare];
        let with_calls = ["tool_calls", "stop", "function_call"];
        let is_text = self.script.content.calls.is_empty();
        self.dice.pick::<&str>(if is_text { &without_calls } else { &with_calls })
    }

    /// Returns the chunk of an error, whose kind becomes the end of the reply. `is_first`: before any content.
    fn error(&mut self, is_first: bool) -> Value {
        let overflow = self.dice.chance(30);
        self.script.content.end = match (self.context.api, overflow) {
            (_, true) => ReplyEnd::Overflow,
            // The number is that of a status.
            (Api::ChatCompletions, false) if is_first => ReplyEnd::Unavailable,
            (_, false) => ReplyEnd::ServerError,
        };
        let error = match (self.context.api, overflow) {
            (Api::ChatCompletions, true) => {
                json!({"message": "too long", "type": "exceed_context_size_error", "code": 400})
            }
            (Api::ChatCompletions, false) => json!({"message": "it broke", "code": 500}),
            (Api::Responses, true) => json!({"code": "context_length_exceeded", "message": "too long"}),
            (Api::Responses, false) => json!({"code": "server_error", "message": "it broke"}),
            (Api::Messages, true) => {
                json!({"type": "invalid_request_error", "message": "prompt is too long"})
            }
            (Api::Messages, false) => json!({"type": "api_error", "message": "it broke"}),
        };
        json!({"error": error})
    }

    /// Writes the whole reply as JSON.
    pub(super) fn write_json(&mut self) {
        let mut chunks = self.content();
        chunks.push(finish(self.finish_reason()));
        let body = encode_whole(self.context.api, &chunks);
        // The content is only known at the end.
        self.script.frames.push(Frame { bytes: body.to_string().into_bytes(), ..Frame::default() });
    }

    /// Writes text without an end.
    pub(super) fn write_text(&mut self, text: &str) {
        self.push_all(&encode_events(self.context.api, &[delta(text)]));
    }

    pub(super) fn write_stream(&mut self, kind: &'static str) {
        let api = self.context.api;
        let is_cut = matches!(kind, "reply: breaks" | "reply: falls silent" | "reply: no finish reason");
        let is_failed = kind == "reply: error in the stream";
        let is_whole = !is_cut && !is_failed;
        let mut chunks = self.content();
        if is_failed {
            let error = self.error(chunks.is_empty());
            chunks.push(error);
        }
        if is_whole {
            chunks.push(finish(self.finish_reason()));
        }
        // The first event of a message already has them.
        if (is_whole || api == Api::Messages) && self.has(60, "usage") {
            chunks.push(usage(PROMPT_TOKENS, 7));
        }
        let mut events = encode_events(api, &chunks);
        if is_whole {
            self.vary_end(&mut events);
        }
        match api {
            Api::ChatCompletions => self.vary_chunks(&mut events),
            Api::Responses => self.vary_response(&mut events),
            Api::Messages => self.vary_message(&mut events),
        }
        self.push_all(&events);
        if is_cut {
            self.end_without_finish(kind);
        }
    }

    fn push_all(&mut self, events: &[Value]) {
        let mut text = 0;
        for event in events {
            let frame = Frame::of(event, text);
            text += frame.text;
            match event {
                Value::String(mark) => self.push(mark, frame),
                event => self.push(&event.to_string(), frame),
            }
        }
    }

    fn vary_chunks(&mut self, events: &mut Vec<Value>) {
        if self.has(15, "progress") {
            let progress =
                |done| json!({"choices": [], "prompt_progress": {"processed": done, "total": 100}});
            events.splice(0..0, (0..3).map(progress));
        }
    }

    fn vary_message(&mut self, events: &mut Vec<Value>) {
        if self.has(25, "blocks: no index") {
            for event in events.iter_mut() {
                remove(event, "index");
            }
        }
        let (no_start, no_ends) = (self.has(20, "blocks: no start"), self.has(20, "blocks: no ends"));
        events.retain(|event| match event["type"].as_str() {
            Some("message_start") => !no_start,
            Some("content_block_stop") => !no_ends,
            _ => true,
        });
    }

    fn vary_response(&mut self, events: &mut Vec<Value>) {
        let only_last = events.iter().any(is_finish) && self.has(12, "events: only the last");
        let no_index = self.has(25, "events: no index");
        let no_ids = self.has(25, "events: no id");
        // Then the index identifies the item.
        let changes_ids = !no_index && !no_ids && self.has(20, "events: changing ids");
        let only_deltas = self.has(30, "events: only deltas");
        let (no_start, no_output) = (self.dice.chance(30), self.dice.chance(30));
        events.retain(|event| {
            let kind = event["type"].as_str().unwrap_or_default();
            // Without an index, the end of a call separates it from the next.
            let ends_call =
                kind == "response.function_call_arguments.done" || event["item"]["type"] == "function_call";
            match kind {
                "response.created" | "response.in_progress" => !no_start,
                _ if only_last => is_finish(event) || is_mark(event),
                _ => !only_deltas || last_word(kind) != "done" || (no_index && ends_call),
            }
        });
        for (number, event) in events.iter_mut().enumerate() {
            if no_index {
                remove(event, "output_index");
            }
            if no_output && !only_last && is_finish(event) {
                remove(&mut event["response"], "output");
            }
            if no_ids || changes_ids {
                change_ids(event, changes_ids.then_some(number));
            }
            self.vary_last(event);
        }
    }

    /// Changes the last event of a response to another with the same meaning.
    fn vary_last(&mut self, event: &mut Value) {
        let is_incomplete = event["type"] == "response.incomplete";
        if is_incomplete {
            self.count("events: incomplete");
        }
        // vLLM uses one name for both.
        if is_incomplete && self.dice.chance(50) {
            event["type"] = json!("response.completed");
        }
        if event["type"] == "error" && self.dice.chance(50) {
            let response = json!({"status": "failed", "error": event["error"], "output": []});
            *event = json!({"type": "response.failed", "response": response});
        }
    }

    /// Changes the end of a complete reply: the finish reason, the mark after it, or the end of the body.
    fn vary_end(&mut self, events: &mut Vec<Value>) {
        if self.context.api != Api::Messages {
            events.push(json!(DONE));
        }
        let end = *self.dice.pick(&[
            "only the mark",
            "no mark",
            "open without a mark",
            "broken without a mark",
            "open",
            "complete",
        ]);
        match end {
            "only the mark" => events.retain(|event| !is_finish(event)),
            "no mark" | "open without a mark" | "broken without a mark" => {
                events.retain(|event| !is_mark(event));
            }
            _ => {}
        }
        self.script.tail = match end {
            "open without a mark" | "open" => Tail::Silence,
            "broken without a mark" => Tail::Break,
            _ => Tail::End,
        };
        if end == "only the mark" && events.iter().all(|event| !Frame::of(event, 0).is_token) {
            self.script.content.end = ReplyEnd::Empty;
        }
        self.script.features.push(format!("{:?} end: {end}", self.context.api));
    }

    /// Sets the end of a reply without a finish reason.
    fn end_without_finish(&mut self, kind: &'static str) {
        let is_silent = self.script.frames.iter().all(|frame| !frame.is_token);
        let (end, tail) = match kind {
            "reply: breaks" => (ReplyEnd::Incomplete, Tail::Break),
            "reply: falls silent" => (ReplyEnd::Incomplete, Tail::Silence),
            _ if is_silent => (ReplyEnd::Empty, Tail::End),
            _ => (ReplyEnd::Incomplete, Tail::End),
        };
        self.script.content.end = end;
        self.script.tail = tail;
    }
}
