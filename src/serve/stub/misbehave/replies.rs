//! Finish reasons, roles, contents and token counts that come otherwise than the API says, and errors inside a stream.

use serde_json::{Value, json};

use super::bend::{finish_of, has_entries, set_finish};
use super::{Misbehaviour, Needs, chunks};
use crate::serve::stub::completions::{Chunk, chunk_json, delta_chunk};
use crate::serve::stub::reply::MODEL;
use crate::serve::stub::server::{CONTEXT, Server};

pub(super) static TABLE: &[Misbehaviour] = &[
    chunks(
        "finish-stop-with-calls",
        "a reply with calls has the finish reason `stop`",
        "Gemini's compatible API, OpenAI for a named tool",
        Needs::Call,
        |chunks| finished_by(chunks, &json!("stop")),
    ).of_chat(),
    chunks(
        "finish-calls-without-call",
        "the finish reason is `tool_calls` and there is no call",
        "vLLM where its tool parser does not fit the model",
        Needs::Text,
        |mut chunks| {
            chunks.retain(|chunk| !has_entries(chunk));
            finished_by(chunks, &json!("tool_calls"))
        },
    ).of_chat(),
    chunks(
        "finish-content-filter",
        "a content filter ends the reply",
        "Azure OpenAI",
        Needs::Text,
        |chunks| finished_by(chunks, &json!("content_filter")),
    ).of_chat(),
    chunks(
        "finish-missing",
        "no finish reason ever comes; `[DONE]` does (over responses: no last event)",
        "NVIDIA NIM, Evolink",
        Needs::Call,
        |chunks| finished_by(chunks, &Value::Null),
    ),
    chunks(
        "finish-missing-text",
        "as finish-missing, for a reply of text",
        "NVIDIA NIM",
        Needs::Text,
        |chunks| finished_by(chunks, &Value::Null),
    ),
    chunks("finish-twice", "two chunks have a finish reason (over responses: two last events)", "SGLang", Needs::Text, |chunks| {
        let twice = |chunk: Chunk| {
            let count = if finish_of(&chunk.json).is_some() { 2 } else { 1 };
            std::iter::repeat_n(chunk, count)
        };
        chunks.into_iter().flat_map(twice).collect()
    }),
    chunks(
        "finish-in-usage-chunk",
        "the finish reason stands in the chunk that counts tokens",
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
    ).of_chat(),
    chunks(
        "finish-length",
        "the reply is cut by the server's token limit",
        "every server",
        Needs::Text,
        |chunks| finished_by(chunks, &json!("length")),
    ),
    chunks("finish-error", "the finish reason is `error` (over responses: `failed`)", "OpenRouter", Needs::Text, |chunks| {
        finished_by(chunks, &json!("error"))
    }),
    chunks("choices-empty-first", "the first chunk has no choice", "Azure", Needs::Text, |mut chunks| {
        let filter = json!([{"prompt_index": 0, "content_filter_results": {}}]);
        let mut first = without_choice();
        insert(&mut first.json, "prompt_filter_results", filter);
        chunks.insert(0, first);
        chunks
    }).of_chat(),
    chunks(
        "choices-empty-between",
        "chunks without a choice come between the others",
        "Azure, gateways",
        Needs::Text,
        |chunks| chunks.into_iter().flat_map(|chunk| [without_choice(), chunk]).collect(),
    ).of_chat(),
    chunks("role-repeated", "every chunk has a role", "OpenRouter", Needs::Text, |chunks| {
        each_delta(chunks, |delta| {
            insert(delta, "role", json!("assistant"));
        })
    }).of_chat(),
    chunks(
        "role-missing",
        "no chunk has a role",
        "llama.cpp, when the first character takes several tokens",
        Needs::Text,
        |chunks| {
            let with_choice = chunks.into_iter().skip(1);
            with_choice.collect()
        },
    ).of_chat(),
    chunks(
        "content-null",
        "chunks with null or empty content come between the others",
        "llama.cpp",
        Needs::Text,
        |chunks| {
            let nothing = || [delta_chunk(json!({"content": null})), delta_chunk(json!({"content": ""}))];
            chunks.into_iter().flat_map(|chunk| nothing().into_iter().chain([chunk])).collect()
        },
    ).of_chat(),
    chunks(
        "content-parts",
        "the content is a list of parts, thinking among them",
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
    ).of_chat(),
    chunks(
        "reasoning-content",
        "reasoning comes in `reasoning_content`",
        "DeepSeek, llama.cpp",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning_content": "Hm. "})]),
    ),
    chunks(
        "reasoning-field",
        "reasoning comes in `reasoning` (over responses: as a summary)",
        "vLLM 0.16, OpenRouter",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning": "Hm. "})]),
    ),
    chunks(
        "reasoning-twice",
        "reasoning comes in both fields at once (over responses: as text and as summary)",
        "vLLM, gateways",
        Needs::Text,
        |chunks| thinking_first(chunks, &[json!({"reasoning_content": "Hm. ", "reasoning": "Hm. "})]),
    ),
    chunks(
        "think-tags",
        "reasoning stands in the text, between `<think>` and `</think>`",
        "servers without a parser for the model's reasoning",
        Needs::Text,
        |chunks| {
            thinking_first(chunks, &["<think>", "Hm. ", "</think>"].map(|text| json!({"content": text})))
        },
    ),
    chunks(
        "think-unopened",
        "the text has a `</think>` that nothing opened",
        "templates that open it in the prompt",
        Needs::Text,
        |chunks| thinking_first(chunks, &["Hm. ", "</think>"].map(|text| json!({"content": text}))),
    ),
    chunks(
        "all-in-reasoning",
        "everything is reasoning, the text is empty",
        "llama.cpp with templates that reason",
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
        "a second choice comes along, the first of each pair",
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
    ).of_chat(),
    chunks(
        "fields-unknown",
        "chunks have fields that the API does not know",
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
        "progress of the prompt comes first, in chunks with a role",
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
    ).of_chat(),
    chunks(
        "error-in-stream",
        "an error object comes in the middle, and then the end without `[DONE]`",
        "llama.cpp, vLLM, SGLang, OpenRouter",
        Needs::Text,
        |chunks| broken_off(chunks, json!({"error": {"code": 500, "message": "out of memory"}})),
    ),
    chunks("error-string", "an error comes in the middle as a string", "mlx-vlm", Needs::Text, |chunks| {
        broken_off(chunks, json!({"error": "out of memory"}))
    }),
    chunks(
        "error-with-choices",
        "an error comes in the middle beside an empty list of choices",
        "OpenRouter",
        Needs::Text,
        |chunks| {
            let error = json!({"code": 502, "message": "the provider is gone"});
            broken_off(chunks, json!({"error": error, "choices": []}))
        },
    ).of_chat(),
    chunks(
        "overflow-in-stream",
        "the context overflows in the middle of the reply",
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
        "the prompt is cut to fit the context and nobody says so: the token counts are those of a full context",
        "Ollama",
        Needs::Text,
        |mut chunks| {
            let usage = json!({"prompt_tokens": CONTEXT, "completion_tokens": 18, "total_tokens": CONTEXT + 18});
            if !chunks.iter().any(|chunk| chunk.json.get("usage").is_some()) {
                chunks.push(without_choice());
            }
            if let Some(last) = chunks.last_mut() {
                insert(&mut last.json, "usage", usage);
            }
            chunks
        },
    )
    .by(Server::Ollama),
    chunks(
        "failed-generation-in-stream",
        "the server could not read the model's call, and gives its text with the error",
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
    ),
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

/// The deltas right after the first chunk, which has the role.
fn thinking_first(mut chunks: Vec<Chunk>, deltas: &[Value]) -> Vec<Chunk> {
    let at = 1.min(chunks.len());
    chunks.splice(at..at, deltas.iter().cloned().map(delta_chunk));
    chunks
}

/// The first half of the chunks, then this and nothing more.
fn broken_off(mut chunks: Vec<Chunk>, last: Value) -> Vec<Chunk> {
    chunks.truncate(chunks.len() / 2);
    chunks.push(Chunk { wait: std::time::Duration::ZERO, json: last });
    chunks
}
