//! The conversion of chat completions chunks to Responses API events.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::item::{Item, ItemRef, Kind, item_id, response, set, text_part};
use crate::completions::{cached_tokens, number_calls, unknown_members};
use crate::model::Chunk;

/// An encoder, with the events so far.
#[derive(Debug)]
pub(super) struct EventEncoder {
    model: String,
    pub(super) events: Vec<Chunk>,
    items: Vec<Item>,
    /// The indices of the items that are not done.
    open: Vec<usize>,
    /// The indices of the items that are calls.
    calls: Vec<usize>,
    /// For each entry of `tool_calls`, in order: the number of its call, and whether it is the first of the call.
    entries: std::vec::IntoIter<(usize, bool)>,
    /// For each call, the index of the last chunk with a part of it.
    lasts: Vec<usize>,
    usage: Value,
    /// The finish reasons and the wait before each. Their events are sent after the last chunk.
    finishes: Vec<(String, Duration)>,
    /// The wait before the next event.
    wait: Duration,
    /// Unknown members of the chunk. They are added to its events.
    unknown: Map<String, Value>,
}

impl EventEncoder {
    /// Returns an encoder for `chunks`, which must be pushed afterwards.
    pub(super) fn new(model: &str, chunks: &[Chunk]) -> Self {
        let (entries, lasts) = number_calls(chunks);
        let mut encoder = Self {
            model: model.to_owned(),
            events: Vec::new(),
            items: Vec::new(),
            open: Vec::new(),
            calls: Vec::new(),
            entries: entries.into_iter(),
            lasts,
            usage: Value::Null,
            finishes: Vec::new(),
            wait: Duration::ZERO,
            unknown: Map::new(),
        };
        for state in ["created", "in_progress"] {
            let response = response(model, "in_progress", Vec::new());
            encoder.push(json!({"type": format!("response.{state}"), "response": response}));
        }
        encoder
    }

    /// Encodes the chunk with this index.
    pub(super) fn push_chunk(&mut self, number: usize, chunk: &Chunk) {
        self.wait += chunk.wait;
        self.unknown = unknown_members(&chunk.json);
        if let Some(error) = chunk.json.get("error") {
            self.push(json!({"type": "error", "error": error}));
        }
        if let Some(usage) = chunk.json.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
        }
        let Some(choice) = chunk.json.pointer("/choices/0") else { return };
        let text = |member: &str| {
            let text = choice.get("delta").and_then(|delta| delta.get(member)).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        for (member, is_summary) in [("reasoning_content", false), ("reasoning", true)] {
            if let Some(piece) = text(member) {
                self.push_reasoning(number, piece, is_summary);
            }
        }
        if let Some(piece) = text("content") {
            self.push_text(number, piece);
        }
        let entries = choice.pointer("/delta/tool_calls").and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            self.push_call(number, entry);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finishes.push((reason.to_owned(), std::mem::take(&mut self.wait)));
        }
    }

    /// Encodes the final event, once per finish reason.
    pub(super) fn finish(&mut self) {
        self.unknown = Map::new();
        for (reason, wait) in std::mem::take(&mut self.finishes) {
            self.wait += wait;
            let status = match reason.as_str() {
                "length" | "content_filter" => "incomplete",
                "error" => "failed",
                _ => "completed",
            };
            for at in std::mem::take(&mut self.open) {
                self.close(at, self.status_of(at, status));
            }
            let output =
                self.items.iter().enumerate().map(|(at, item)| item.json(self.status_of(at, status)));
            let mut response = response(&self.model, status, output.collect());
            if let Value::Object(members) = &mut response {
                members.insert(String::from("usage"), self.usage.clone());
                let reason = if reason == "length" { "max_output_tokens" } else { &reason };
                match status {
                    "incomplete" => {
                        members.insert(String::from("incomplete_details"), json!({"reason": reason}));
                    }
                    "failed" => {
                        let error = json!({"code": "server_error", "message": "the model failed"});
                        members.insert(String::from("error"), error);
                    }
                    _ => {}
                }
            }
            self.push(json!({"type": format!("response.{status}"), "response": response}));
        }
    }

    fn push(&mut self, mut event: Value) {
        if let Value::Object(members) = &mut event {
            members.insert(String::from("sequence_number"), json!(self.events.len()));
            members.extend(self.unknown.clone());
        }
        self.events.push(Chunk { wait: std::mem::take(&mut self.wait), json: event });
    }

    /// Returns the status of an item. A limit truncates the last item only.
    fn status_of(&self, at: usize, status: &'static str) -> &'static str {
        if status == "incomplete" && at + 1 == self.items.len() { status } else { "completed" }
    }

    fn push_text(&mut self, number: usize, piece: &str) {
        let at = match self.open_item(|kind| matches!(kind, Kind::Message { .. })) {
            Some(at) => at,
            None => {
                let at = self.begin(number, "msg", Kind::Message { text: String::new() });
                let part = json!({"content_index": 0, "part": text_part("")});
                self.push_item_event(at, "response.content_part.added", part);
                at
            }
        };
        if let Some(Item { kind: Kind::Message { text }, .. }) = self.items.get_mut(at) {
            text.push_str(piece);
        }
        self.push_item_event(at, "response.output_text.delta", json!({"content_index": 0, "delta": piece}));
    }

    fn push_reasoning(&mut self, number: usize, piece: &str, is_summary: bool) {
        let at = match self.open_item(|kind| matches!(kind, Kind::Reasoning { .. })) {
            Some(at) => at,
            None => self.begin(number, "rs", Kind::Reasoning { text: String::new(), summary: String::new() }),
        };
        let mut is_first = false;
        if let Some(Item { kind: Kind::Reasoning { text, summary }, .. }) = self.items.get_mut(at) {
            let thought = if is_summary { summary } else { text };
            is_first = thought.is_empty();
            thought.push_str(piece);
        }
        if !is_summary {
            return self.push_item_event(
                at,
                "response.reasoning_text.delta",
                json!({"content_index": 0, "delta": piece}),
            );
        }
        if is_first {
            let part = json!({"type": "summary_text", "text": ""});
            self.push_item_event(
                at,
                "response.reasoning_summary_part.added",
                json!({"summary_index": 0, "part": part}),
            );
        }
        let delta = json!({"summary_index": 0, "delta": piece});
        self.push_item_event(at, "response.reasoning_summary_text.delta", delta);
    }

    /// Encodes an entry of `tool_calls`.
    fn push_call(&mut self, number: usize, entry: &Value) {
        let Some((call, is_first)) = self.entries.next() else { return };
        let function =
            |member: &str| entry.get("function").and_then(|function| function.get(member)).cloned();
        let own_id = entry.get("id");
        let mut arguments = function("arguments");
        let at = if is_first {
            let is_text = arguments.as_ref().is_some_and(Value::is_string);
            let initial = if is_text { Some(json!("")) } else { arguments.clone() };
            let name = function("name").unwrap_or_default();
            let last = self.lasts.get(call).copied().unwrap_or(number);
            self.calls.push(self.items.len());
            let reference = ItemRef { id: own_id.map(item_id), index: self.index_of(entry) };
            let kind = Kind::Call { id: own_id.cloned(), name, arguments: initial, last };
            arguments = arguments.filter(|_| is_text);
            self.add(number, Item { kind, reference })
        } else {
            let Some(at) = self.calls.get(call).copied() else { return };
            at
        };
        let index = self.index_of(entry);
        let Some(Item { kind: Kind::Call { id, arguments: whole, .. }, reference, .. }) =
            self.items.get_mut(at)
        else {
            return;
        };
        if let (None, Some(late)) = (&id, own_id) {
            *id = Some(late.clone());
            reference.id = Some(item_id(late));
        }
        let reference = ItemRef { id: own_id.map(item_id).or_else(|| reference.id.clone()), index };
        match (arguments, whole) {
            (Some(Value::String(piece)), _) if piece.is_empty() => {}
            (Some(Value::String(piece)), whole) => {
                match whole {
                    Some(Value::String(text)) => text.push_str(&piece),
                    other => *other = Some(json!(piece)),
                }
                self.push(reference.event("response.function_call_arguments.delta", json!({"delta": piece})));
            }
            (Some(other), whole) => *whole = Some(other),
            (None, _) => {}
        }
    }

    /// Returns the output index of the call that an entry belongs to.
    fn index_of(&self, entry: &Value) -> Option<Value> {
        let index = entry.get("index")?;
        let of_call = index.as_u64().and_then(|index| self.calls.get(usize::try_from(index).ok()?));
        Some(of_call.map_or_else(|| index.clone(), |at| json!(at)))
    }

    /// Returns the index of the last item, if it is open and its kind matches.
    fn open_item(&self, is_it: impl Fn(&Kind) -> bool) -> Option<usize> {
        let last = self.items.len().checked_sub(1)?;
        let is_open = self.open.contains(&last) && self.items.last().is_some_and(|item| is_it(&item.kind));
        is_open.then_some(last)
    }

    fn begin(&mut self, number: usize, prefix: &str, kind: Kind) -> usize {
        let at = self.items.len();
        let reference = ItemRef { id: Some(json!(format!("{prefix}_{at}"))), index: Some(json!(at)) };
        self.add(number, Item { kind, reference })
    }

    /// Closes the items that are complete and adds an item.
    fn add(&mut self, number: usize, item: Item) -> usize {
        for at in std::mem::take(&mut self.open) {
            let continues = self
                .items
                .get(at)
                .is_some_and(|item| matches!(item.kind, Kind::Call { last, .. } if last >= number));
            if continues {
                self.open.push(at);
            } else {
                self.close(at, "completed");
            }
        }
        let at = self.items.len();
        self.open.push(at);
        self.items.push(item);
        self.announce(at);
        at
    }

    fn announce(&mut self, at: usize) {
        let Some(item) = self.items.get(at) else { return };
        let event = item.reference.item_event("response.output_item.added", item.json("in_progress"));
        self.push(event);
    }

    fn push_item_event(&mut self, at: usize, kind: &str, members: Value) {
        let Some(item) = self.items.get(at) else { return };
        let event = item.reference.event(kind, members);
        self.push(event);
    }

    fn close(&mut self, at: usize, status: &str) {
        let Some(item) = self.items.get(at) else { return };
        let reference = item.reference.clone();
        let done = reference.item_event("response.output_item.done", item.json(status));
        let mut ends: Vec<(&str, Value)> = Vec::new();
        match &item.kind {
            Kind::Message { text } => {
                ends.push(("response.output_text.done", json!({"content_index": 0, "text": text})));
                let part = json!({"content_index": 0, "part": text_part(text)});
                ends.push(("response.content_part.done", part));
            }
            Kind::Reasoning { text, summary } => {
                if !text.is_empty() {
                    ends.push(("response.reasoning_text.done", json!({"content_index": 0, "text": text})));
                }
                if !summary.is_empty() {
                    let text = json!({"summary_index": 0, "text": summary});
                    ends.push(("response.reasoning_summary_text.done", text));
                    let part = json!({"type": "summary_text", "text": summary});
                    let part = json!({"summary_index": 0, "part": part});
                    ends.push(("response.reasoning_summary_part.done", part));
                }
            }
            Kind::Call { arguments, name, .. } => {
                let mut members = json!({"name": name});
                set(&mut members, "arguments", arguments.as_ref());
                ends.push(("response.function_call_arguments.done", members));
            }
        }
        for (kind, members) in ends {
            self.push(reference.event(kind, members));
        }
        self.push(done);
    }
}

/// Converts token counts to the member names of the Responses API.
fn usage_of(usage: &Value) -> Value {
    let count = |member| usage.get(member).and_then(Value::as_u64).unwrap_or_default();
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": cached_tokens(usage)},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input.saturating_add(output),
    })
}
