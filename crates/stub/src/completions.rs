//! Replies in the chat completions format: the chunks of a stream, or a whole completion.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::model::{AnswerFormat, Chunk, Ending, MODEL};
use super::reply::{Part, Reply};

/// The default number of characters of arguments per delta.
const ARGUMENT_CHARS: usize = 12;
const ID: &str = "chatcmpl-stub";
/// The creation time of every completion. It is constant, so that equal requests get equal answers.
pub(super) const CREATED: u64 = 1_700_000_000;

/// Returns the chunks of a stream.
pub(super) fn chunks(reply: &Reply, format: &AnswerFormat) -> Vec<Chunk> {
    let every = reply.every.unwrap_or_default();
    let choice = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        chunk_json(&format.model, json!([choice]))
    };
    let first = choice(json!({"role": "assistant", "content": null}), Value::Null);
    let mut chunks = vec![Chunk { wait: Duration::ZERO, json: first }];
    let mut wait = every;
    let mut calls = 0;
    let mut push = |wait: &mut Duration, delta: Value| {
        chunks.push(Chunk { wait: *wait, json: choice(delta, Value::Null) });
        *wait = every;
    };
    for part in &reply.parts {
        match part {
            Part::Text(text) => {
                for piece in cut_text(text, reply.chunk) {
                    push(&mut wait, json!({"content": piece}));
                }
            }
            Part::Reasoning(text) => {
                for piece in cut_text(text, reply.chunk) {
                    push(&mut wait, json!({"reasoning_content": piece}));
                }
            }
            Part::Tokens(count) => {
                for number in 1..=*count {
                    push(&mut wait, json!({"content": token(number)}));
                }
            }
            Part::Call { name, arguments, id } => {
                let function = json!({"name": name, "arguments": ""});
                let id = call_id(id.as_deref(), calls);
                let entry = json!({"index": calls, "id": id, "type": "function", "function": function});
                push(&mut wait, json!({"tool_calls": [entry]}));
                for piece in cut(arguments, reply.chunk.unwrap_or(ARGUMENT_CHARS)) {
                    let entry = json!({"index": calls, "function": {"arguments": piece}});
                    push(&mut wait, json!({"tool_calls": [entry]}));
                }
                calls += 1;
            }
            Part::Wait(time) => wait += *time,
        }
    }
    if reply.ending != Ending::Whole {
        return chunks;
    }
    chunks.push(Chunk { wait, json: choice(json!({}), json!(reply.finish_reason())) });
    if format.has_usage || reply.usage.is_some() {
        let mut json = chunk_json(&format.model, json!([]));
        if let Value::Object(members) = &mut json {
            members.insert(String::from("usage"), reply.usage_json());
        }
        chunks.push(Chunk { wait: Duration::ZERO, json });
    }
    chunks
}

/// Returns the whole reply, for requests without `stream`.
pub(super) fn whole(chunks: &[Chunk], model: &str) -> Value {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::<Value>::new());
    let (mut finish, mut usage) = (Value::Null, Value::Null);
    let mut entries = number_calls(chunks).0.into_iter();
    for Chunk { json, .. } in chunks {
        usage = json.get("usage").cloned().unwrap_or(usage);
        let Some(choice) = json.pointer("/choices/0") else { continue };
        finish = choice.get("finish_reason").filter(|reason| !reason.is_null()).cloned().unwrap_or(finish);
        let member = |name: &str| choice.get("delta").and_then(|delta| delta.get(name));
        text.push_str(member("content").and_then(Value::as_str).unwrap_or_default());
        reasoning.push_str(member("reasoning_content").and_then(Value::as_str).unwrap_or_default());
        for entry in member("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let Some((call, is_first)) = entries.next() else { continue };
            let known = calls.get_mut(call).and_then(|call| call.pointer_mut("/function/arguments"));
            match (known, entry.pointer("/function/arguments")) {
                _ if is_first => calls.push(without_index(entry.clone())),
                (Some(Value::String(known)), Some(Value::String(piece))) => known.push_str(piece),
                _ => {}
            }
        }
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    let mut message = Map::new();
    message.insert(String::from("role"), json!("assistant"));
    message.insert(String::from("content"), content);
    if !reasoning.is_empty() {
        message.insert(String::from("reasoning_content"), Value::String(reasoning));
    }
    if !calls.is_empty() {
        message.insert(String::from("tool_calls"), Value::Array(calls));
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    json!({
        "id": ID, "object": "chat.completion", "created": CREATED, "model": model,
        "choices": [choice], "usage": usage,
    })
}

/// Returns an entry of `tool_calls` as a whole message has it.
fn without_index(mut entry: Value) -> Value {
    if let Value::Object(members) = &mut entry {
        members.shift_remove("index");
    }
    entry
}

pub(super) fn chunk_json(model: &str, choices: Value) -> Value {
    json!({
        "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": model, "choices": choices,
    })
}

/// Returns a chunk with this delta.
pub(super) fn delta_chunk(delta: Value) -> Chunk {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    Chunk { wait: Duration::ZERO, json: chunk_json(MODEL, json!([choice])) }
}

/// Returns for each entry of `tool_calls` the number of its call and whether it is the first of the call, and for each
/// call the index of its last chunk.
pub(super) fn number_calls(chunks: &[Chunk]) -> (Vec<(usize, bool)>, Vec<usize>) {
    let (mut entries, mut lasts) = (Vec::new(), Vec::<usize>::new());
    // The last call of each index.
    let mut indices = std::collections::HashMap::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let of_chunk = chunk.json.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
        for entry in of_chunk.into_iter().flatten() {
            let index = entry.get("index").and_then(Value::as_u64);
            let has_name =
                entry.pointer("/function/name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
            let known = index.and_then(|index| indices.get(&index).copied()).or(lasts.len().checked_sub(1));
            let call = match known {
                Some(call) if !has_name => call,
                _ => lasts.len(),
            };
            entries.push((call, call == lasts.len()));
            if let Some(index) = index {
                indices.insert(index, call);
            }
            match lasts.get_mut(call) {
                Some(last) => *last = number,
                None => lasts.push(number),
            }
        }
    }
    (entries, lasts)
}

/// Returns the members of a chunk that the API does not define.
pub(super) fn unknown_members(chunk: &Value) -> Map<String, Value> {
    const KNOWN: [&str; 7] = ["id", "object", "created", "model", "choices", "usage", "error"];
    let members = chunk.as_object().into_iter().flatten();
    let unknown = members.filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the number of prompt tokens that were read from a cache.
pub(super) fn cached_tokens(usage: &Value) -> u64 {
    usage.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64).unwrap_or_default()
}

fn call_id(given: Option<&str>, index: usize) -> String {
    given.map_or_else(|| format!("call{index:05}"), str::to_owned)
}

/// Returns a short word and a space. Every twentieth word ends its line instead.
fn token(number: u32) -> String {
    let end = if number.is_multiple_of(20) { '\n' } else { ' ' };
    format!("t{number}{end}")
}

/// Splits `text` into pieces of `chars` characters. The default is one word per piece.
fn cut_text(text: &str, chars: Option<usize>) -> Vec<&str> {
    match chars {
        Some(chars) => cut(text, chars),
        None => text.split_inclusive(' ').collect(),
    }
}

/// Splits `text` into pieces of `chars` characters, at least one.
fn cut(text: &str, chars: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use deftool_chat::Api;

    use super::*;

    #[test]
    fn streamed_and_whole_replies_have_the_same_content() {
        let reply = Reply::new().text("one two").call("f", &json!({"a": "a rather long argument"})).text("!");
        let chunks = chunks(&reply, &AnswerFormat::stream(Api::ChatCompletions));
        let whole = whole(&chunks, "m");
        let message = &whole["choices"][0]["message"];
        let (mut text, mut arguments, mut finish) = (String::new(), String::new(), String::new());
        for Chunk { json, .. } in chunks {
            let choice = &json["choices"][0];
            text += choice["delta"]["content"].as_str().unwrap_or_default();
            arguments +=
                choice["delta"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default();
            finish += choice["finish_reason"].as_str().unwrap_or_default();
        }
        assert_eq!(message["content"], text);
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], arguments);
        assert_eq!(
            (whole["choices"][0]["finish_reason"].as_str(), text.as_str()),
            (Some(&*finish), "one two!")
        );
    }

    #[test]
    fn pieces_concatenate_to_the_original_text() {
        for chars in [0, 1, 2, 100] {
            assert_eq!(cut("aéb😀c", chars).concat(), "aéb😀c");
        }
        assert_eq!(cut("aéb", 2), ["aé", "b"]);
        assert!(cut("", 3).is_empty());
    }
}
