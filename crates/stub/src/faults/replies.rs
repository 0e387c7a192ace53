//! Finish reasons, roles, contents and token counts that differ from the API specification, and errors inside a stream.

use serde_json::{Value, json};

use super::edit::{finish_of, has_entries, set_finish};
use crate::completions::{chunk_json, delta_chunk};
use crate::fault::{Fault, Needs, chunks};
use crate::model::{CONTEXT, Chunk, EmulatedServer, MODEL};

pub(super) static TABLE: &[Fault] = &[
    chunks(
        "finish-stop-with-calls",
        "a reply with calls has the finish reason `stop`",
        "Gemini's compatible API, OpenAI for a named tool",
        Needs::Call,
        |chunks| finished_by(chunks, &json!("stop")),
    )
    .chat_only(),
    chunks(
        "finish-calls-without-call",
        "the finish reason is `tool_calls`, but there is no call",
        "vLLM with the tool parser of another model",
        Needs::Text,
        |mut chunks| {
            chunks.retain(|chunk| !has_entries(chunk));
            finished_by(chunks, &json!("tool_calls"))
        },
    )
    .chat_only(),
    chunks(
        "finish-content-filter",
        "the finish reason is `content_filter`",
        "Azure OpenAI",
        Needs::Text,
        |chunks| finished_by(chunks, &json!("content_filter")),
    )
    .chat_only(),
    chunks(
        "finish-missing",
        "the finish reason is missing, but `[DONE]` is sent (otherwise: no final event)",
        "NVIDIA NIM, Evolink",
        Needs::Call,
        |chunks| finished_by(chunks, &Value::Null),
    ),
    chunks(
        "finish-missing-text",
        "like `finish-missing`, for a reply with text only",
        "NVIDIA NIM",
        Needs::Text,
        |chunks| finished_by(chunks, &Value::Null),
    ),
    chunks(
        "finish-twice",
        "two chunks have a finish reason (otherwise: two final events)",
        "SGLang",
        Needs::Text,
        |chunks| {
            let twice = |chunk: Chunk| {
                let count = if finish_of(&chunk.json).is_some() { 2 } else { 1 };
                std::iter::repeat_n(chunk, count)
            };
            chunks.into_iter().flat_map(twice).collect()
        },
    ),
    chunks(
        "finish-in-usage-chunk",
        "the finish reason is in the chunk with the token counts",
        "gateways",
        Needs::Text,
        |mut chunks| {
            let usage = json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14});
            for chunk in chunks.iter_mut().filter(|chunk| finish_of(&chunk.json).is_some()) {
                insert(&mut chunk.json, "usage", usage.clone());
            }
            chunks.retain(|chunk| has_choice(&chunk.json));
            chunks
        },
    )
    .chat_only(),
    chunks(
        "finish-length",
        "the finish reason is `length` (over messages: `max_tokens`): the reply reached the token limit",
        "every server",
        Needs::Text,
        |chunks| finished_by(chunks, &json!("length")),
    ),
    chunks(
        "finish-error",
        "the finish reason is `error` (over responses: `failed`; over messages: an error event)",
        "OpenRouter",
        Needs::Text,
        |chunks| finished_by(chunks, &json!("error")),
    ),
    chunks("choices-empty-first", "the first chunk has no choices", "Azure", Needs::Text, |mut chunks| {
        let filter = json!([{"prompt_index": 0, "content_filter_results": {}}]);
        let mut first = without_choice();
        insert(&mut first.json, "prompt_filter_results", filter);
        chunks.insert(0, first);
        chunks
    })
    .chat_only(),
    chunks(
        "choices-empty-between",
        "chunks without choices are sent between the others",
        "Azure, gateways",
        Needs::Text,
        |chunks| chunks.into_iter().flat_map(|chunk| [without_choice(), chunk]).collect(),
    )
    .chat_only(),
    chunks("role-repeated", "every chunk has a role", "OpenRouter", Needs::Text, |chunks| {
        each_delta(chunks, |delta| {
            insert(delta, "role", json!("assistant"));
        })
    })
    .chat_only(),
    chunks(
        "role-missing",
        "no chunk has a role",
        "llama.cpp, if the first character has several tokens",
        Needs::Text,
        |chunks| {
            let with_choice = chunks.into_iter().skip(1);
            with_choice.collect()
        },
    )
    .chat_only(),
    chunks(
        "content-null",
        "chunks with null or empty content are sent between the others",
        "llama.cpp",
        Needs::Text,
        |chunks| {
            let nothing = || [delta_chunk(json!({"content": null})), delta_chunk(json!({"content": ""}))];
            chunks.into_iter().flat_map(|chunk| nothing().into_iter().chain([chunk])).collect()
        },
    )
    .chat_only(),
    chunks(
        "content-parts",
        "the content is a list of parts, including thinking",
        "Mistral",
        Needs::Text,
        |chunks| {
            let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]});
            let mut chunks = each_delta(chunks, |delta| {
                if let Some(text) = delta.get("content").and_then(Value::as_str).map(str::to_owned) {
                    insert(delta, "content", json!([{"type": "text", "text": text}]));
                }
            });
            chunks.insert(1.min(chunks.len()), delta_chunk(json!({"content": [thought]})));
            chunks
        },
    )
    .chat_only(),
    chunks(
        "reasoning-content",
        "reasoning is sent in `reasoning_content`",
        "DeepSeek, llama.cpp",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning_content": "Hm. "})]),
    ),
    chunks(
        "reasoning-field",
        "reasoning is sent in `reasoning` (over responses: as a summary)",
        "vLLM 0.16, OpenRouter",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning": "Hm. "})]),
    )
    .openai_only(),
    chunks(
        "reasoning-twice",
        "reasoning is sent in both fields (over responses: as text and as summary)",
        "vLLM, gateways",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning_content": "Hm. ", "reasoning": "Hm. "})]),
    )
    .openai_only(),
    chunks(
        "think-tags",
        "reasoning is part of the text, between `<think>` and `</think>`",
        "servers without a reasoning parser for the model",
        Needs::Text,
        |chunks| {
            thinking_first(chunks, &["<think>", "Hm. ", "</think>"].map(|text| json!({"content": text})))
        },
    ),
    chunks(
        "think-unopened",
        "the text contains `</think>` without `<think>`",
        "templates that put `<think>` in the prompt",
        Needs::Text,
        |chunks| thinking_first(chunks, &["Hm. ", "</think>"].map(|text| json!({"content": text}))),
    ),
    chunks(
        "all-in-reasoning",
        "the whole reply is sent as reasoning, without text",
        "llama.cpp with reasoning templates",
        Needs::Text,
        |chunks| {
            each_delta(chunks, |delta| {
                if let Value::Object(members) = delta
                    && let Some(text @ Value::String(_)) = members.remove("content")
                {
                    members.insert(String::from("reasoning_content"), text);
                }
            })
        },
    ),
    chunks(
        "choices-two",
        "each chunk is preceded by a chunk of a second choice",
        "llama.cpp with `n` 2",
        Needs::Text,
        |chunks| {
            let other = |chunk: &Chunk| {
                let mut other = chunk.clone();
                if let Some(index) = other.json.pointer_mut("/choices/0/index") {
                    *index = json!(1);
                }
                if let Some(text) = other.json.pointer_mut("/choices/0/delta/content") {
                    *text = json!("other ");
                }
                other
            };
            chunks.into_iter().flat_map(|chunk| [other(&chunk), chunk]).collect()
        },
    )
    .chat_only(),
    chunks(
        "fields-unknown",
        "chunks have fields that the API does not define",
        "llama.cpp, OpenAI, Groq, OpenRouter",
        Needs::Text,
        |mut chunks| {
            for chunk in &mut chunks {
                insert(&mut chunk.json, "timings", json!({"predicted_ms": 1.5}));
                insert(&mut chunk.json, "obfuscation", json!("xyz"));
                insert(&mut chunk.json, "x_groq", json!({"id": "req_1", "usage": null}));
                insert(&mut chunk.json, "__verbose", json!({"content": "not this", "choices": []}));
                if let Some(choice) = chunk.json.pointer_mut("/choices/0") {
                    insert(choice, "native_finish_reason", json!("STOP"));
                    insert(choice, "logprobs", Value::Null);
                }
            }
            chunks
        },
    ),
    chunks(
        "prompt-progress",
        "the reply starts with chunks that report the prompt progress and repeat the role",
        "llama.cpp with `return_progress`",
        Needs::Text,
        |mut chunks| {
            for processed in [100, 50, 0] {
                let mut chunk = delta_chunk(json!({"role": "assistant", "content": null}));
                let progress =
                    json!({"total": 100, "cache": 0, "processed": processed, "time_ms": processed});
                insert(&mut chunk.json, "prompt_progress", progress);
                chunks.insert(0, chunk);
            }
            chunks
        },
    )
    .chat_only(),
    chunks(
        "error-in-stream",
        "an error object is sent in the middle of the reply, then the stream ends without `[DONE]`",
        "llama.cpp, vLLM, SGLang, OpenRouter",
        Needs::Text,
        |chunks| broken_off(chunks, json!({"error": {"code": 500, "message": "out of memory"}})),
    ),
    chunks(
        "error-string",
        "like `error-in-stream`, but the error is a string",
        "mlx-vlm",
        Needs::Text,
        |chunks| broken_off(chunks, json!({"error": "out of memory"})),
    ),
    chunks(
        "error-with-choices",
        "like `error-in-stream`, but with an empty list of choices",
        "OpenRouter",
        Needs::Text,
        |chunks| {
            let error = json!({"code": 502, "message": "the provider is gone"});
            broken_off(chunks, json!({"error": error, "choices": []}))
        },
    )
    .chat_only(),
    chunks(
        "overflow-in-stream",
        "a context overflow is reported in the middle of the reply",
        "llama.cpp",
        Needs::Text,
        |chunks| {
            let error = json!({
                "code": 400, "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096,
            });
            broken_off(chunks, json!({"error": error}))
        },
    ),
    chunks(
        "prompt-cut-unsaid",
        "the prompt is silently truncated to the context size; the token counts report a full context",
        "Ollama",
        Needs::Text,
        |mut chunks| {
            let usage =
                json!({"prompt_tokens": CONTEXT, "completion_tokens": 18, "total_tokens": CONTEXT + 18});
            if !chunks.iter().any(|chunk| chunk.json.get("usage").is_some()) {
                chunks.push(without_choice());
            }
            if let Some(last) = chunks.last_mut() {
                insert(&mut last.json, "usage", usage);
            }
            chunks
        },
    )
    .on_server(EmulatedServer::Ollama),
    chunks(
        "failed-generation-in-stream",
        "the server cannot parse the model's call and sends the text of the call in an error",
        "Groq",
        Needs::Call,
        |chunks| {
            let mut written = String::new();
            for chunk in &chunks {
                let function = chunk.json.pointer("/choices/0/delta/tool_calls/0/function");
                let member = |name| function.and_then(|function| function.get(name)?.as_str());
                if let Some(name) = member("name") {
                    written = format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": ");
                }
                written.push_str(member("arguments").unwrap_or_default());
            }
            written.push_str("}</tool_call>");
            let error = json!({
                "message": "Failed to call a function.", "type": "invalid_request_error",
                "code": "tool_use_failed", "failed_generation": written,
            });
            vec![Chunk { wait: std::time::Duration::ZERO, json: json!({"error": error}) }]
        },
    )
    .openai_only(),
];

fn insert(object: &mut Value, member: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(member.to_owned(), value);
    }
}

fn has_choice(json: &Value) -> bool {
    json.pointer("/choices/0").is_some()
}

fn without_choice() -> Chunk {
    Chunk { wait: std::time::Duration::ZERO, json: chunk_json(MODEL, json!([])) }
}

fn each_delta(mut chunks: Vec<Chunk>, mut change: impl FnMut(&mut Value)) -> Vec<Chunk> {
    for chunk in &mut chunks {
        if let Some(delta) = chunk.json.pointer_mut("/choices/0/delta") {
            change(delta);
        }
    }
    chunks
}

fn finished_by(mut chunks: Vec<Chunk>, reason: &Value) -> Vec<Chunk> {
    for chunk in chunks.iter_mut().filter(|chunk| finish_of(&chunk.json).is_some()) {
        set_finish(chunk, reason.clone());
    }
    chunks
}

/// Inserts the deltas after the first chunk, which has the role.
fn thinking_first(mut chunks: Vec<Chunk>, deltas: &[Value]) -> Vec<Chunk> {
    let at = 1.min(chunks.len());
    chunks.splice(at..at, deltas.iter().cloned().map(delta_chunk));
    chunks
}

/// Returns the first half of the chunks, then `last`.
fn broken_off(mut chunks: Vec<Chunk>, last: Value) -> Vec<Chunk> {
    chunks.truncate(chunks.len() / 2);
    chunks.push(Chunk { wait: std::time::Duration::ZERO, json: last });
    chunks
}
