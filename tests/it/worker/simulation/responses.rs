//! Replies in the Responses API format: events, or a whole response.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::reply::{Reply, pieces};
use super::script::{Frame, PROMPT_TOKENS, ReplyEnd, ScriptedCall, Tail};

/// The variations of servers in their events.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
struct EventStyle {
    /// Events contain the output index of their item.
    has_indices: bool,
    /// Items have ids.
    has_ids: bool,
    /// The item id changes with each event. Then the index identifies the item.
    changes_ids: bool,
    /// The content of the deltas is repeated as a whole.
    repeats: bool,
    /// The last event contains the output.
    has_output: bool,
    /// Only the last event contains the output.
    final_event_only: bool,
}

impl EventStyle {
    /// Returns the members of an event that refer to its item.
    fn place(self, index: usize, events: usize) -> Value {
        let mut place = json!({});
        if self.has_indices {
            place["output_index"] = json!(index);
        }
        if self.has_ids {
            let suffix = if self.changes_ids { format!("_{events}") } else { String::new() };
            place["item_id"] = json!(format!("item_{index}{suffix}"));
        }
        place
    }
}

/// Returns an event with `type` and the members of both objects.
fn event(kind: &str, place: &Value, more: &Value) -> Value {
    let mut event = json!({"type": kind});
    for members in [place, more].into_iter().filter_map(Value::as_object) {
        event.as_object_mut().expect("an event").extend(members.clone());
    }
    event
}

fn message(text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    json!({"type": "message", "role": "assistant", "status": "completed", "content": [part]})
}

fn function_call(call: &ScriptedCall, arguments: &str) -> Value {
    let mut item = json!({"type": "function_call", "name": call.name, "arguments": arguments});
    if let Some(id) = &call.id {
        item["call_id"] = json!(id);
    }
    item
}

impl Reply<'_, '_> {
    /// Returns the calls. Duplicate ids are removed, since an id identifies a call in this API.
    fn calls(&self) -> Vec<ScriptedCall> {
        let mut used = BTreeSet::new();
        let mut calls = self.script.content.calls.clone();
        for call in &mut calls {
            call.id.take_if(|id| !used.insert(id.clone()));
        }
        calls
    }

    fn output(&self) -> Value {
        let text = self.script.content.text();
        let calls = self.calls();
        let content = (!text.is_empty()).then(|| message(&text));
        content.into_iter().chain(calls.iter().map(|call| function_call(call, &call.text))).collect()
    }

    /// Returns the whole reply.
    pub(super) fn response(&self) -> Value {
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": self.output()})
    }

    pub(super) fn push_output_text(&mut self, piece: &str, place: &Value) {
        let data = event("response.output_text.delta", place, &json!({"content_index": 0, "delta": piece}));
        self.push(&data, Frame { is_token: true, text: piece.len(), ..Frame::default() });
    }

    /// Appends an event that is neither text nor the last.
    fn push_event(&mut self, data: &Value, is_token: bool) {
        self.push(data, Frame { is_token, ..Frame::default() });
    }

    fn style(&mut self, kind: &'static str) -> EventStyle {
        let is_whole = !matches!(
            kind,
            "reply: breaks"
                | "reply: falls silent"
                | "reply: no finish reason"
                | "reply: error in the stream"
        );
        let final_event_only = is_whole && self.dice.chance(12);
        let has_indices = self.dice.chance(75);
        let style = EventStyle {
            has_indices,
            has_ids: self.dice.chance(75),
            changes_ids: has_indices && self.dice.chance(20),
            repeats: self.dice.chance(70),
            has_output: final_event_only || self.dice.chance(70),
            final_event_only,
        };
        for (is_there, feature) in [
            (!style.has_indices, "events: no index"),
            (!style.has_ids, "events: no id"),
            (style.has_ids && style.changes_ids, "events: changing ids"),
            (!style.repeats, "events: only deltas"),
            (style.final_event_only, "events: only the last"),
        ] {
            if is_there {
                self.count(feature);
            }
        }
        style
    }

    pub(super) fn write_events(&mut self, kind: &'static str) {
        let style = self.style(kind);
        if self.dice.chance(70) {
            let response =
                json!({"id": "resp_1", "status": "in_progress", "model": "scripted", "usage": null});
            self.push_event(&json!({"type": "response.created", "response": response}), false);
        }
        if !style.final_event_only {
            self.write_items(style);
        }
        if self.ends_without_finish(kind) {
            return;
        }
        if kind == "reply: error in the stream" {
            self.write_failure();
        } else {
            self.write_end(style);
        }
    }

    fn write_items(&mut self, style: EventStyle) {
        let mut index = 0;
        if self.dice.chance(25) {
            self.count("reasoning");
            let words = self.words();
            let kind =
                *self.dice.pick(&["response.reasoning_text.delta", "response.reasoning_summary_text.delta"]);
            self.push_event(&event(kind, &style.place(index, 0), &json!({"delta": words})), true);
            index += 1;
        }
        let text = self.script.content.text();
        if !text.is_empty() {
            let item = json!({"type": "message", "role": "assistant", "content": []});
            self.write_added(style, index, item);
            for (nth, piece) in pieces(self.dice, &text).iter().enumerate() {
                self.push_output_text(piece, &style.place(index, nth + 1));
            }
            if style.repeats {
                let whole = json!({"content_index": 0, "text": text});
                self.push_event(&event("response.output_text.done", &style.place(index, 997), &whole), false);
                let part = json!({"content_index": 0, "part": {"type": "output_text", "text": text}});
                self.push_event(&event("response.content_part.done", &style.place(index, 998), &part), false);
                self.write_done(style, index, message(&text));
            }
            index += 1;
        }
        for call in self.calls() {
            self.write_added(style, index, function_call(&call, ""));
            for (nth, piece) in pieces(self.dice, &call.text).iter().enumerate() {
                let (place, delta) = (style.place(index, nth + 1), json!({"delta": piece}));
                self.push_event(&event("response.function_call_arguments.delta", &place, &delta), true);
            }
            let is_cut = call.id.as_deref() == Some("cutcutcut");
            // Without an index, the end of a call separates it from the next.
            if !is_cut && (style.repeats || !style.has_indices) {
                let (place, whole) = (style.place(index, 999), json!({"arguments": call.text}));
                self.push_event(&event("response.function_call_arguments.done", &place, &whole), false);
                self.write_done(style, index, function_call(&call, &call.text));
            }
            index += 1;
        }
    }

    /// Appends the start of an item, with its id in the item.
    fn write_added(&mut self, style: EventStyle, index: usize, item: Value) {
        let is_call = item["type"] == "function_call";
        self.write_item("response.output_item.added", style.place(index, 0), item, is_call);
    }

    /// Appends the end of an item, which repeats its content.
    fn write_done(&mut self, style: EventStyle, index: usize, item: Value) {
        self.write_item("response.output_item.done", style.place(index, 1_000), item, false);
    }

    fn write_item(&mut self, kind: &str, mut place: Value, mut item: Value, is_token: bool) {
        if let Some(id) = place.as_object_mut().and_then(|place| place.shift_remove("item_id")) {
            item["id"] = id;
        }
        self.push_event(&event(kind, &place, &json!({"item": item})), is_token);
    }

    fn write_failure(&mut self) {
        let overflow = self.dice.chance(30);
        self.script.content.end = if overflow { ReplyEnd::Overflow } else { ReplyEnd::ServerError };
        let (code, message) =
            if overflow { ("context_length_exceeded", "too long") } else { ("server_error", "it broke") };
        let data = if self.dice.chance(50) {
            json!({"type": "error", "code": code, "message": message})
        } else {
            let error = json!({"code": code, "message": message});
            json!({"type": "response.failed", "response": {"status": "failed", "error": error, "output": []}})
        };
        self.push(&data, Frame { is_last: true, ..Frame::default() });
    }

    /// Appends the last event, and what follows it.
    fn write_end(&mut self, style: EventStyle) {
        let has_calls = !self.script.content.calls.is_empty();
        let is_short = self.script.content.end == ReplyEnd::Truncated || (!has_calls && self.dice.chance(20));
        let status = if is_short { "incomplete" } else { "completed" };
        let mut response = json!({"id": "resp_1", "status": status});
        if is_short {
            self.count("events: incomplete");
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        if style.has_output {
            response["output"] = self.output();
        }
        let is_usage = self.dice.chance(60);
        if is_usage {
            self.count("usage");
            response["usage"] = json!({"input_tokens": PROMPT_TOKENS, "output_tokens": 7});
        }
        // vLLM uses one name for both.
        let is_named = is_short && self.dice.chance(50);
        let kind = if is_named { "response.incomplete" } else { "response.completed" };
        let text = if style.final_event_only { self.script.content.text().len() } else { 0 };
        let frame = Frame { is_last: true, is_usage, text, ..Frame::default() };
        self.push(&json!({"type": kind, "response": response}), frame);
        match self.dice.below(0..5) {
            0 => {
                self.count("finish: stays open after the last event");
                self.script.tail = Tail::Silence;
            }
            1 => {
                self.count("finish: breaks after the last event");
                self.script.tail = Tail::Break;
            }
            2 => {
                let frame = Frame { bytes: b"data: [DONE]\n\n".to_vec(), is_last: true, ..Frame::default() };
                self.script.frames.push(frame);
            }
            _ => {}
        }
    }
}
