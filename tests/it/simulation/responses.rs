//! A reply in the events of the Responses API, or as one whole response.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::reply::{Reply, pieces};
use super::script::{Fate, Frame, PROMPT_TOKENS, SaidCall, Tail};

/// In which of their ways a server writes its events.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
struct Manner {
    /// Events say where their item stands in the output.
    has_indices: bool,
    /// Items have ids.
    has_ids: bool,
    /// Another one in each event; then it is the index that counts.
    is_fickle: bool,
    /// What came in deltas is told whole, too.
    repeats: bool,
    /// The last event holds the output.
    has_output: bool,
    /// Nothing else does.
    is_only_output: bool,
}

impl Manner {
    /// What an event says of the place of its item.
    fn place(self, index: usize, events: usize) -> Value {
        let mut place = json!({});
        if self.has_indices {
            place["output_index"] = json!(index);
        }
        if self.has_ids {
            let fickle = if self.is_fickle { format!("_{events}") } else { String::new() };
            place["item_id"] = json!(format!("item_{index}{fickle}"));
        }
        place
    }
}

/// `type` and the members of both.
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

fn function_call(call: &SaidCall, arguments: &str) -> Value {
    let mut item = json!({"type": "function_call", "name": call.name, "arguments": arguments});
    if let Some(id) = &call.id {
        item["call_id"] = json!(id);
    }
    item
}

impl Reply<'_, '_> {
    /// The calls; of two with one id the second has none, since one id is one call here.
    fn calls(&self) -> Vec<SaidCall> {
        let mut used = BTreeSet::new();
        let mut calls = self.script.said.calls.clone();
        for call in &mut calls {
            call.id.take_if(|id| !used.insert(id.clone()));
        }
        calls
    }

    fn output(&self) -> Value {
        let text = self.script.said.text();
        let calls = self.calls();
        let said = (!text.is_empty()).then(|| message(&text));
        said.into_iter().chain(calls.iter().map(|call| function_call(call, &call.text))).collect()
    }

    /// The whole reply.
    pub(super) fn response(&self) -> Value {
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": self.output()})
    }

    pub(super) fn push_output_text(&mut self, piece: &str, place: &Value) {
        let data = event("response.output_text.delta", place, &json!({"content_index": 0, "delta": piece}));
        self.push(&data, Frame { is_token: true, text: piece.len(), ..Frame::default() });
    }

    /// An event that is neither text nor the last.
    fn push_event(&mut self, data: &Value, is_token: bool) {
        self.push(data, Frame { is_token, ..Frame::default() });
    }

    fn manner(&mut self, kind: &'static str) -> Manner {
        let is_said = !matches!(
            kind,
            "reply: breaks" | "reply: falls silent" | "reply: end unsaid" | "reply: error in the stream"
        );
        let is_only_output = is_said && self.dice.chance(12);
        let has_indices = self.dice.chance(75);
        let manner = Manner {
            has_indices,
            has_ids: self.dice.chance(75),
            is_fickle: has_indices && self.dice.chance(20),
            repeats: self.dice.chance(70),
            has_output: is_only_output || self.dice.chance(70),
            is_only_output,
        };
        for (is_there, feature) in [
            (!manner.has_indices, "events: no index"),
            (!manner.has_ids, "events: no id"),
            (manner.has_ids && manner.is_fickle, "events: other ids"),
            (!manner.repeats, "events: deltas alone"),
            (manner.is_only_output, "events: the last alone"),
        ] {
            if is_there {
                self.count(feature);
            }
        }
        manner
    }

    pub(super) fn write_events(&mut self, kind: &'static str) {
        let manner = self.manner(kind);
        if self.dice.chance(70) {
            let response =
                json!({"id": "resp_1", "status": "in_progress", "model": "scripted", "usage": null});
            self.push_event(&json!({"type": "response.created", "response": response}), false);
        }
        if !manner.is_only_output {
            self.write_items(manner);
        }
        if self.ends_unsaid(kind) {
            return;
        }
        if kind == "reply: error in the stream" {
            self.write_failure();
        } else {
            self.write_end(manner);
        }
    }

    fn write_items(&mut self, manner: Manner) {
        let mut index = 0;
        if self.dice.chance(25) {
            self.count("reasoning");
            let words = self.words();
            let kind =
                *self.dice.pick(&["response.reasoning_text.delta", "response.reasoning_summary_text.delta"]);
            self.push_event(&event(kind, &manner.place(index, 0), &json!({"delta": words})), true);
            index += 1;
        }
        let text = self.script.said.text();
        if !text.is_empty() {
            let item = json!({"type": "message", "role": "assistant", "content": []});
            self.write_added(manner, index, item);
            for (nth, piece) in pieces(self.dice, &text).iter().enumerate() {
                self.push_output_text(piece, &manner.place(index, nth + 1));
            }
            if manner.repeats {
                let whole = json!({"content_index": 0, "text": text});
                self.push_event(
                    &event("response.output_text.done", &manner.place(index, 997), &whole),
                    false,
                );
                let part = json!({"content_index": 0, "part": {"type": "output_text", "text": text}});
                self.push_event(
                    &event("response.content_part.done", &manner.place(index, 998), &part),
                    false,
                );
                self.write_done(manner, index, message(&text), false);
            }
            index += 1;
        }
        for call in self.calls() {
            self.write_added(manner, index, function_call(&call, ""));
            for (nth, piece) in pieces(self.dice, &call.text).iter().enumerate() {
                let (place, delta) = (manner.place(index, nth + 1), json!({"delta": piece}));
                self.push_event(&event("response.function_call_arguments.delta", &place, &delta), true);
            }
            let is_cut = call.id.as_deref() == Some("cutcutcut");
            // Without a place, what ends one call is what tells it from the next.
            if !is_cut && (manner.repeats || !manner.has_indices) {
                let (place, whole) = (manner.place(index, 999), json!({"arguments": call.text}));
                self.push_event(&event("response.function_call_arguments.done", &place, &whole), true);
                self.write_done(manner, index, function_call(&call, &call.text), true);
            }
            index += 1;
        }
    }

    /// An item begins. Its id stands in it.
    fn write_added(&mut self, manner: Manner, index: usize, item: Value) {
        let is_call = item["type"] == "function_call";
        self.write_item("response.output_item.added", manner.place(index, 0), item, is_call);
    }

    fn write_done(&mut self, manner: Manner, index: usize, item: Value, is_call: bool) {
        self.write_item("response.output_item.done", manner.place(index, 1_000), item, is_call);
    }

    fn write_item(&mut self, kind: &str, mut place: Value, mut item: Value, is_call: bool) {
        if let Some(id) = place.as_object_mut().and_then(|place| place.shift_remove("item_id")) {
            item["id"] = id;
        }
        self.push_event(&event(kind, &place, &json!({"item": item})), is_call);
    }

    fn write_failure(&mut self) {
        let overflow = self.dice.chance(30);
        self.script.said.fate = if overflow { Fate::Overflow } else { Fate::ServerError };
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

    /// The last event, and what follows it.
    fn write_end(&mut self, manner: Manner) {
        let has_calls = !self.script.said.calls.is_empty();
        let is_short = self.script.said.fate == Fate::Truncated || (!has_calls && self.dice.chance(20));
        let status = if is_short { "incomplete" } else { "completed" };
        let mut response = json!({"id": "resp_1", "status": status});
        if is_short {
            self.count("events: incomplete");
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        if manner.has_output {
            response["output"] = self.output();
        }
        let is_usage = self.dice.chance(60);
        if is_usage {
            self.count("usage");
            response["usage"] = json!({"input_tokens": PROMPT_TOKENS, "output_tokens": 7});
        }
        // vLLM has one name for both.
        let is_named = is_short && self.dice.chance(50);
        let kind = if is_named { "response.incomplete" } else { "response.completed" };
        let text = if manner.is_only_output { self.script.said.text().len() } else { 0 };
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
