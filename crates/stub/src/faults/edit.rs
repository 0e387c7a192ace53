//! Edits of chunks that faults share: reading, changing, joining and splitting the calls in them.

use serde_json::{Map, Value, json};

use crate::completions::delta_chunk;
use crate::model::Chunk;

pub(super) fn set(entry: &mut Map<String, Value>, member: &str, value: impl Into<Value>) {
    entry.insert(member.to_owned(), value.into());
}

pub(super) fn set_function(entry: &mut Map<String, Value>, member: &str, value: Value) {
    if let Some(Value::Object(function)) = entry.get_mut("function") {
        function.insert(member.to_owned(), value);
    }
}

pub(super) fn entries(chunk: &Chunk) -> &[Value] {
    chunk.json.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn has_entries(chunk: &Chunk) -> bool {
    !entries(chunk).is_empty()
}

pub(super) fn entry_index(chunk: &Chunk) -> Option<u64> {
    entries(chunk).first()?.get("index")?.as_u64()
}

pub(super) fn entry_name(chunk: &Chunk) -> Option<String> {
    entries(chunk).first()?.pointer("/function/name")?.as_str().map(str::to_owned)
}

pub(super) fn entry_arguments(chunk: &Chunk) -> Option<String> {
    entries(chunk).first()?.pointer("/function/arguments")?.as_str().map(str::to_owned)
}

/// Whether the chunk is the first of a call.
pub(super) fn is_start(chunk: &Chunk) -> bool {
    entry_name(chunk).is_some()
}

pub(super) fn finish_of(json: &Value) -> Option<&Value> {
    json.pointer("/choices/0/finish_reason").filter(|reason| !reason.is_null())
}

pub(super) fn set_finish(chunk: &mut Chunk, reason: Value) {
    if let Some(finish) = chunk.json.pointer_mut("/choices/0/finish_reason") {
        *finish = reason;
    }
}

/// Applies `change` to every entry of `tool_calls`. Its second argument is whether the entry is the first of its call.
pub(super) fn each_entry(
    mut chunks: Vec<Chunk>,
    mut change: impl FnMut(&mut Map<String, Value>, bool),
) -> Vec<Chunk> {
    for chunk in &mut chunks {
        let Some(Value::Array(entries)) = chunk.json.pointer_mut("/choices/0/delta/tool_calls") else {
            continue;
        };
        for entry in entries {
            let is_first = entry.pointer("/function/name").is_some();
            if let Value::Object(entry) = entry {
                change(entry, is_first);
            }
        }
    }
    chunks
}

/// Joins each call into one delta, with the arguments that `write` returns for their text.
pub(super) fn whole_calls(chunks: Vec<Chunk>, write: impl Fn(String) -> Value) -> Vec<Chunk> {
    let mut whole: Vec<Chunk> = Vec::new();
    let mut arguments: Vec<String> = Vec::new();
    for chunk in chunks {
        match entry_arguments(&chunk) {
            Some(piece) if !is_start(&chunk) => {
                if let Some(last) = arguments.last_mut() {
                    last.push_str(&piece);
                }
            }
            Some(piece) => {
                arguments.push(piece);
                whole.push(chunk);
            }
            None => whole.push(chunk),
        }
    }
    let mut arguments = arguments.into_iter();
    each_entry(whole, |entry, _| {
        set_function(entry, "arguments", write(arguments.next().unwrap_or_default()));
    })
}

/// Joins up to `count` deltas of one call into one chunk.
pub(super) fn join_call_deltas(chunks: Vec<Chunk>, count: usize) -> Vec<Chunk> {
    let mut joined: Vec<Chunk> = Vec::new();
    for chunk in chunks {
        let more = entries(&chunk).to_vec();
        if let Some(last) = joined.last_mut()
            && !more.is_empty()
            && !is_start(&chunk)
            && (1..count).contains(&entries(last).len())
            && let Some(Value::Array(entries)) = last.json.pointer_mut("/choices/0/delta/tool_calls")
        {
            entries.extend(more);
        } else {
            joined.push(chunk);
        }
    }
    joined
}

/// Cuts the name of the call that starts in `chunk` in half. Returns the second half as a chunk.
pub(super) fn split_name(chunk: &mut Chunk) -> Option<Chunk> {
    let name = entry_name(chunk)?;
    let middle = name.char_indices().nth(name.chars().count() / 2).map(|(at, _)| at).filter(|at| *at > 0)?;
    let (head, tail) = name.split_at(middle);
    let index = entry_index(chunk)?;
    let rest = delta_chunk(json!({"tool_calls": [{"index": index, "function": {"name": tail}}]}));
    *chunk = each_entry(vec![chunk.clone()], |entry, _| set_function(entry, "name", json!(head))).pop()?;
    Some(rest)
}

/// Joins all calls into the first, with their arguments concatenated.
pub(super) fn glue_calls(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let whole = whole_calls(chunks, Value::String);
    let all: String = whole.iter().filter_map(entry_arguments).collect();
    let mut has_call = false;
    let mut glued = Vec::new();
    for chunk in whole {
        if has_entries(&chunk) {
            if has_call {
                continue;
            }
            has_call = true;
        }
        glued.extend(each_entry(vec![chunk], |entry, _| set_function(entry, "arguments", json!(all))));
    }
    glued
}

/// Alternates the deltas of the first two calls.
pub(super) fn interleave(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let Some(start) = chunks.iter().position(has_entries) else { return chunks };
    let mut mixed: Vec<Chunk> = chunks.iter().take(start).cloned().collect();
    let of_call = |number: u64| chunks.iter().filter(move |chunk| entry_index(chunk) == Some(number));
    let (mut first, mut second) = (of_call(0), of_call(1));
    loop {
        let pair = [first.next(), second.next()];
        if pair.iter().all(Option::is_none) {
            break;
        }
        mixed.extend(pair.into_iter().flatten().cloned());
    }
    mixed.extend(
        chunks.iter().skip(start).filter(|chunk| !matches!(entry_index(chunk), Some(0 | 1))).cloned(),
    );
    mixed
}

/// Sends calls in the deprecated member `function_call`.
pub(super) fn as_function_call(mut chunks: Vec<Chunk>, keeps_tool_calls: bool) -> Vec<Chunk> {
    for chunk in &mut chunks {
        let function = entries(chunk).first().and_then(|entry| entry.get("function")).cloned();
        if let (Some(function), Some(Value::Object(delta))) =
            (function, chunk.json.pointer_mut("/choices/0/delta"))
        {
            if !keeps_tool_calls {
                delta.remove("tool_calls");
            }
            delta.insert(String::from("function_call"), function);
        }
        if !keeps_tool_calls && finish_of(&chunk.json).is_some() {
            set_finish(chunk, json!("function_call"));
        }
    }
    chunks
}

/// Removes the second half of the last delta of arguments and sets the finish reason.
pub(super) fn cut_call(mut chunks: Vec<Chunk>, reason: &str) -> Vec<Chunk> {
    if let Some(last) = chunks.iter_mut().rfind(|chunk| has_entries(chunk) && !is_start(chunk)) {
        let piece = entry_arguments(last).unwrap_or_default();
        let half: String = piece.chars().take(piece.chars().count() / 2).collect();
        if let Some(arguments) = last.json.pointer_mut("/choices/0/delta/tool_calls/0/function/arguments") {
            *arguments = json!(half);
        }
    }
    for chunk in chunks.iter_mut().filter(|chunk| finish_of(&chunk.json).is_some()) {
        set_finish(chunk, json!(reason));
    }
    chunks
}
