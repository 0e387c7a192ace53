//! Edits of events of the Messages API that faults share.

use serde_json::{Map, Value, json};

use crate::model::Chunk;

pub(super) fn event(json: Value) -> Chunk {
    Chunk { wait: std::time::Duration::ZERO, json }
}

fn is(chunk: &Chunk, kind: &str) -> bool {
    chunk.json.get("type").is_some_and(|own| own == kind)
}

pub(super) fn set(object: &mut Map<String, Value>, member: &str, value: Value) {
    object.insert(member.to_owned(), value);
}

pub(super) fn remove(json: &mut Value, pointer: &str, member: &str) {
    if let Some(Value::Object(members)) = json.pointer_mut(pointer) {
        members.remove(member);
    }
}

pub(super) fn without(mut chunks: Vec<Chunk>, kind: &str) -> Vec<Chunk> {
    chunks.retain(|chunk| !is(chunk, kind));
    chunks
}

pub(super) fn twice(chunks: Vec<Chunk>, kind: &str) -> Vec<Chunk> {
    let again = |chunk: Chunk| {
        let count = if is(&chunk, kind) { 2 } else { 1 };
        std::iter::repeat_n(chunk, count)
    };
    chunks.into_iter().flat_map(again).collect()
}

/// Inserts an event before the first one of this type.
pub(super) fn insert_before(mut chunks: Vec<Chunk>, kind: &str, json: Value) -> Vec<Chunk> {
    let at = chunks.iter().position(|chunk| is(chunk, kind)).unwrap_or(chunks.len());
    chunks.insert(at, event(json));
    chunks
}

/// Inserts an event after each other one.
pub(super) fn between(chunks: Vec<Chunk>, json: &Value) -> Vec<Chunk> {
    chunks.into_iter().flat_map(|chunk| [chunk, event(json.clone())]).collect()
}

/// Applies `change` to each event of this type.
pub(super) fn each(
    mut chunks: Vec<Chunk>,
    kind: &str,
    mut change: impl FnMut(&mut Map<String, Value>),
) -> Vec<Chunk> {
    for chunk in chunks.iter_mut().filter(|chunk| is(chunk, kind)) {
        if let Value::Object(members) = &mut chunk.json {
            change(members);
        }
    }
    chunks
}

pub(super) fn stopped_by(chunks: Vec<Chunk>, reason: &Value) -> Vec<Chunk> {
    each(chunks, "message_delta", |event| {
        if let Some(Value::Object(delta)) = event.get_mut("delta") {
            set(delta, "stop_reason", reason.clone());
        }
    })
}

fn partial_input(chunk: &Chunk) -> Option<&str> {
    chunk.json.pointer("/delta/partial_json")?.as_str()
}

/// Returns the input of the only call.
pub(super) fn input_of(chunks: &[Chunk]) -> String {
    chunks.iter().filter_map(partial_input).collect()
}

pub(super) fn without_inputs(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    chunks.retain(|chunk| partial_input(chunk).is_none());
    chunks
}

/// Removes the calls.
pub(super) fn without_calls(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    let is_call =
        |chunk: &&Chunk| chunk.json.pointer("/content_block/type").is_some_and(|kind| kind == "tool_use");
    let indices: Vec<Value> =
        chunks.iter().filter(is_call).filter_map(|chunk| chunk.json.get("index").cloned()).collect();
    chunks.retain(|chunk| chunk.json.get("index").is_none_or(|index| !indices.contains(index)));
    chunks
}

/// Sets the input in the start of each call.
pub(super) fn with_input(chunks: Vec<Chunk>, input: &Value) -> Vec<Chunk> {
    each(chunks, "content_block_start", |event| {
        if let Some(Value::Object(block)) = event.get_mut("content_block")
            && block.contains_key("input")
        {
            set(block, "input", input.clone());
        }
    })
}

/// Inserts a block with this index, and increments the indices of the later blocks.
pub(super) fn insert_block(
    mut chunks: Vec<Chunk>,
    index: u64,
    block: &Value,
    deltas: &[Value],
) -> Vec<Chunk> {
    let index_of = |chunk: &Chunk| chunk.json.get("index").and_then(Value::as_u64);
    let is_next = |chunk: &Chunk| index_of(chunk) == Some(index) || is(chunk, "message_delta");
    let at = chunks.iter().position(is_next).unwrap_or(chunks.len());
    for chunk in &mut chunks {
        if let (Some(own), Value::Object(members)) = (index_of(chunk), &mut chunk.json)
            && own >= index
        {
            set(members, "index", json!(own + 1));
        }
    }
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |delta: &Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = json!({"type": "content_block_stop", "index": index});
    let events: Vec<Chunk> =
        [start].into_iter().chain(deltas.iter().map(delta)).chain([stop]).map(event).collect();
    chunks.splice(at..at, events);
    chunks
}
