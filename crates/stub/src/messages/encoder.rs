//! The conversion of chat completions chunks to Messages events.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::block::{Block, Kind, message, signature};
use crate::completions::{cached_tokens, number_calls, unknown_members};
use crate::model::Chunk;

/// An encoder, with the events so far.
#[derive(Debug)]
pub(super) struct EventEncoder {
    pub(super) events: Vec<Chunk>,
    pub(super) blocks: Vec<Block>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Value,
    /// The indices of the blocks that are not stopped.
    open: Vec<usize>,
    /// The indices of the blocks that are calls.
    calls: Vec<usize>,
    /// For each entry of `tool_calls`, in order: the number of its call, and whether it is the first of the call.
    entries: std::vec::IntoIter<(usize, bool)>,
    /// For each call, the index of the last chunk with a part of it.
    lasts: Vec<usize>,
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
        // The first event has the token counts of the prompt.
        let usage =
            chunks.iter().rev().find_map(|chunk| chunk.json.get("usage").filter(|usage| usage.is_object()));
        let usage = usage_of(usage.unwrap_or(&Value::Null));
        let mut encoder = Self {
            events: Vec::new(),
            blocks: Vec::new(),
            stop_reason: None,
            usage,
            open: Vec::new(),
            calls: Vec::new(),
            entries: entries.into_iter(),
            lasts,
            finishes: Vec::new(),
            wait: Duration::ZERO,
            unknown: Map::new(),
        };
        let mut started = encoder.usage.clone();
        if let Some(output) = started.get_mut("output_tokens") {
            *output = json!(1);
        }
        let message = message(model, Vec::new(), None, &started);
        encoder.push(json!({"type": "message_start", "message": message}));
        encoder
    }

    /// Encodes the chunk with this index.
    pub(super) fn push_chunk(&mut self, number: usize, chunk: &Chunk) {
        self.wait += chunk.wait;
        self.unknown = unknown_members(&chunk.json);
        if let Some(error) = chunk.json.get("error") {
            self.push(json!({"type": "error", "error": error}));
        }
        let Some(choice) = chunk.json.pointer("/choices/0") else { return };
        let text = |member: &str| {
            let text = choice.get("delta").and_then(|delta| delta.get(member)).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        if let Some(piece) = text("reasoning_content") {
            self.push_thinking(number, piece);
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

    /// Encodes the final events, once per finish reason.
    pub(super) fn finish(&mut self) {
        self.unknown = Map::new();
        for (reason, wait) in std::mem::take(&mut self.finishes) {
            self.wait += wait;
            for at in std::mem::take(&mut self.open) {
                self.stop(at);
            }
            let reason = match reason.as_str() {
                "error" => {
                    let error = json!({"type": "api_error", "message": "the model failed"});
                    self.push(json!({"type": "error", "error": error}));
                    continue;
                }
                "stop" => "end_turn",
                "length" => "max_tokens",
                "tool_calls" => "tool_use",
                "content_filter" => "refusal",
                other => other,
            };
            self.stop_reason = Some(reason.to_owned());
            let delta = json!({"stop_reason": reason, "stop_sequence": null});
            self.push(json!({"type": "message_delta", "delta": delta, "usage": self.usage}));
            self.push(json!({"type": "message_stop"}));
        }
    }

    fn push(&mut self, mut event: Value) {
        if let Value::Object(members) = &mut event {
            members.extend(self.unknown.clone());
        }
        self.events.push(Chunk { wait: std::mem::take(&mut self.wait), json: event });
    }

    fn push_text(&mut self, number: usize, piece: &str) {
        let at = match self.open_block(|kind| matches!(kind, Kind::Text(_))) {
            Some(at) => at,
            None => self.start(number, Kind::Text(String::new())),
        };
        if let Some(Block { kind: Kind::Text(text), .. }) = self.blocks.get_mut(at) {
            text.push_str(piece);
        }
        self.push_delta(at, json!({"type": "text_delta", "text": piece}));
    }

    fn push_thinking(&mut self, number: usize, piece: &str) {
        let at = match self.open_block(|kind| matches!(kind, Kind::Thinking(_))) {
            Some(at) => at,
            None => self.start(number, Kind::Thinking(String::new())),
        };
        if let Some(Block { kind: Kind::Thinking(thought), .. }) = self.blocks.get_mut(at) {
            thought.push_str(piece);
        }
        self.push_delta(at, json!({"type": "thinking_delta", "thinking": piece}));
    }

    /// Encodes an entry of `tool_calls`.
    fn push_call(&mut self, number: usize, entry: &Value) {
        let Some((call, is_first)) = self.entries.next() else { return };
        let function =
            |member: &str| entry.get("function").and_then(|function| function.get(member)).cloned();
        let arguments = function("arguments");
        let at = if is_first {
            let is_text = arguments.as_ref().is_some_and(Value::is_string);
            let input = if is_text { Some(json!("")) } else { arguments.clone() };
            let last = self.lasts.get(call).copied().unwrap_or(number);
            let (id, name) = (entry.get("id").cloned(), function("name").unwrap_or_default());
            self.calls.push(self.blocks.len());
            let index = self.index_of(entry);
            self.add(number, Block { kind: Kind::ToolUse { id, name, input, last }, index })
        } else {
            let Some(at) = self.calls.get(call).copied() else { return };
            at
        };
        let Some(Value::String(piece)) = arguments else { return };
        if let Some(Block { kind: Kind::ToolUse { input, .. }, .. }) = self.blocks.get_mut(at) {
            match input {
                Some(Value::String(text)) => text.push_str(&piece),
                other => *other = Some(json!(piece)),
            }
        }
        self.push_delta(at, json!({"type": "input_json_delta", "partial_json": piece}));
    }

    /// Returns the block index of the call that an entry belongs to.
    fn index_of(&self, entry: &Value) -> Option<Value> {
        let index = entry.get("index")?;
        let of_call = index.as_u64().and_then(|index| self.calls.get(usize::try_from(index).ok()?));
        Some(of_call.map_or_else(|| index.clone(), |at| json!(at)))
    }

    /// Returns the index of the last block, if it is open and its kind matches.
    fn open_block(&self, is_it: impl Fn(&Kind) -> bool) -> Option<usize> {
        let last = self.blocks.len().checked_sub(1)?;
        let is_open = self.open.contains(&last) && self.blocks.last().is_some_and(|block| is_it(&block.kind));
        is_open.then_some(last)
    }

    fn start(&mut self, number: usize, kind: Kind) -> usize {
        let index = Some(json!(self.blocks.len()));
        self.add(number, Block { kind, index })
    }

    /// Stops the blocks that are complete and adds a block. As in the real API, a ping follows the first start.
    fn add(&mut self, number: usize, block: Block) -> usize {
        for at in std::mem::take(&mut self.open) {
            let continues = self
                .blocks
                .get(at)
                .is_some_and(|block| matches!(block.kind, Kind::ToolUse { last, .. } if last >= number));
            if continues {
                self.open.push(at);
            } else {
                self.stop(at);
            }
        }
        let at = self.blocks.len();
        self.open.push(at);
        self.push(block.event("content_block_start", Some(("content_block", block.started()))));
        self.blocks.push(block);
        if at == 0 {
            self.push(json!({"type": "ping"}));
        }
        at
    }

    fn push_delta(&mut self, at: usize, delta: Value) {
        let Some(block) = self.blocks.get(at) else { return };
        let event = block.event("content_block_delta", Some(("delta", delta)));
        self.push(event);
    }

    fn stop(&mut self, at: usize) {
        let Some(block) = self.blocks.get(at) else { return };
        let stop = block.event("content_block_stop", None);
        if let Kind::Thinking(thought) = &block.kind {
            let delta = json!({"type": "signature_delta", "signature": signature(thought)});
            self.push_delta(at, delta);
        }
        self.push(stop);
    }
}

/// Converts token counts to the member names of the Messages API. `input_tokens` excludes cached tokens.
fn usage_of(usage: &Value) -> Value {
    let count = |member| usage.get(member).and_then(Value::as_u64).unwrap_or_default();
    let cached = cached_tokens(usage);
    json!({
        "input_tokens": count("prompt_tokens").saturating_sub(cached), "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached, "output_tokens": count("completion_tokens"),
    })
}
