//! Replies of the Messages API that differ from its specification, or use rare parts of it.

use deftool_chat::Api;
use serde_json::{Value, json};

use super::edit_events::{
    between, each, event, input_of, insert_before, insert_block, remove, set, stopped_by, twice, with_input,
    without, without_calls, without_inputs,
};
use super::raw_events::is_text_event;
use crate::answer::{Act, DONE, framed, named_event};
use crate::fault::{Fault, Injection, Needs, answer, new, pieces};
use crate::messages::{error, signature};
use crate::model::{Chunk, EmulatedServer, EncodedReply, Piece};

const MESSAGES: &[Api] = &[Api::Messages];
const THOUGHT: &str = "Hm. ";

pub(super) static TABLE: &[Fault] = &[
    events(
        "message-start-missing",
        "`message_start` is missing",
        "gateways that join replies",
        Needs::Text,
        |chunks| without(chunks, "message_start"),
    ),
    events(
        "message-start-twice",
        "`message_start` is sent twice",
        "gateways that retry",
        Needs::Text,
        |chunks| twice(chunks, "message_start"),
    ),
    events("message-stop-missing", "`message_stop` is missing", "gateways", Needs::Call, |chunks| {
        without(chunks, "message_stop")
    }),
    events("message-stop-twice", "`message_stop` is sent twice", "gateways", Needs::Text, |chunks| {
        twice(chunks, "message_stop")
    }),
    events(
        "message-delta-missing",
        "`message_delta` is missing, so there is no stop reason, but `message_stop` is sent",
        "gateways that convert chat completions",
        Needs::Call,
        |chunks| without(chunks, "message_delta"),
    ),
    events(
        "message-delta-twice",
        "a `message_delta` without a stop reason is sent before the last one",
        "allowed by the API",
        Needs::Text,
        |chunks| {
            let first = json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 2}});
            insert_before(chunks, "message_delta", first)
        },
    ),
    events("stop-reason-null", "the stop reason is null", "gateways", Needs::Call, |chunks| {
        stopped_by(chunks, &Value::Null)
    }),
    events(
        "stop-reason-unknown",
        "the stop reason is one that the API does not define",
        "later versions of the API",
        Needs::Text,
        |chunks| stopped_by(chunks, &json!("out_of_ideas")),
    ),
    events(
        "stop-end-turn-with-call",
        "a reply with a call has the stop reason `end_turn`",
        "LiteLLM in front of Ollama",
        Needs::Call,
        |chunks| stopped_by(chunks, &json!("end_turn")),
    ),
    events(
        "stop-tool-use-without-call",
        "the stop reason is `tool_use`, but there is no call",
        "servers with the tool parser of another model",
        Needs::Text,
        |chunks| stopped_by(without_calls(chunks), &json!("tool_use")),
    ),
    events(
        "stop-refusal",
        "the stop reason is `refusal`, with details",
        "Anthropic",
        Needs::Text,
        |chunks| {
            let details =
                json!({"type": "refusal", "category": "cyber", "explanation": "This is not allowed."});
            each(stopped_by(chunks, &json!("refusal")), "message_delta", |event| {
                if let Some(Value::Object(delta)) = event.get_mut("delta") {
                    set(delta, "stop_details", details.clone());
                }
            })
        },
    ),
    events(
        "stop-pause-turn",
        "the stop reason is `pause_turn`: the client sends the reply back to continue it",
        "Anthropic, with tools of the server",
        Needs::Text,
        |chunks| stopped_by(chunks, &json!("pause_turn")),
    ),
    events(
        "stop-context-window",
        "the stop reason is `model_context_window_exceeded`",
        "Anthropic",
        Needs::Text,
        |chunks| stopped_by(chunks, &json!("model_context_window_exceeded")),
    ),
    events("usage-missing", "no event has token counts", "gateways", Needs::Text, |mut chunks| {
        for chunk in &mut chunks {
            remove(&mut chunk.json, "", "usage");
            remove(&mut chunk.json, "/message", "usage");
        }
        chunks
    }),
    events("block-start-missing", "`content_block_start` is missing", "gateways", Needs::Text, |chunks| {
        without(chunks, "content_block_start")
    }),
    events(
        "block-stop-missing",
        "`content_block_stop` is missing",
        "claude-code-router",
        Needs::TwoCalls,
        |chunks| without(chunks, "content_block_stop"),
    ),
    events(
        "block-index-missing",
        "no event has an `index`",
        "hand-written servers",
        Needs::TwoCalls,
        |mut chunks| {
            for chunk in &mut chunks {
                remove(&mut chunk.json, "", "index");
            }
            chunks
        },
    ),
    events(
        "block-index-wrong",
        "the deltas have the index of a block that was not started",
        "gateways that remove blocks",
        Needs::Call,
        |chunks| {
            each(chunks, "content_block_delta", |event| {
                let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
                set(event, "index", json!(index + 7));
            })
        },
    ),
    events(
        "block-unknown",
        "a content block has a type and deltas that the API does not define",
        "later versions of the API",
        Needs::Call,
        |chunks| {
            let deltas = [json!({"type": "sketch_delta", "points": [1, 2]})];
            insert_block(chunks, 0, &json!({"type": "sketch", "points": []}), &deltas)
        },
    ),
    events(
        "block-empty-first",
        "the reply starts with an empty text block, which the API refuses in requests",
        "LiteLLM in front of Ollama",
        Needs::Call,
        |chunks| insert_block(chunks, 0, &json!({"type": "text", "text": ""}), &[]),
    ),
    events(
        "text-in-call",
        "text is sent with the index of an open call",
        "SGLang, claude-code-router",
        Needs::Call,
        |chunks| {
            let delta = json!({"type": "text_delta", "text": "And more."});
            let event = json!({"type": "content_block_delta", "index": 1, "delta": delta});
            insert_before(chunks, "message_delta", event)
        },
    ),
    events(
        "delta-unknown",
        "a block has deltas that the API does not define",
        "later versions of the API",
        Needs::Call,
        |chunks| {
            let start = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": 1}});
            insert_before(chunks, "content_block_stop", start)
        },
    ),
    events(
        "event-unknown",
        "events of a type that the API does not define are sent between the others",
        "later versions of the API",
        Needs::Call,
        |chunks| between(chunks, &json!({"type": "message_note", "note": "not this"})),
    ),
    events(
        "server-tool-blocks",
        "the reply contains a call of a server's tool and its result",
        "Anthropic, with `web_search`",
        Needs::Text,
        |chunks| {
            let call =
                json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
            let input = [json!({"type": "input_json_delta", "partial_json": "{\"query\": \"sea\"}"})];
            let result =
                json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
            insert_block(insert_block(chunks, 0, &result, &[]), 0, &call, &input)
        },
    ),
    events(
        "citations",
        "the text has citations, as deltas of their own",
        "Anthropic",
        Needs::Text,
        |chunks| {
            let citation = json!({
                "type": "char_location", "cited_text": "the sea", "document_index": 0, "document_title": null,
                "start_char_index": 0, "end_char_index": 7,
            });
            let delta = json!({"type": "citations_delta", "citation": citation});
            insert_before(
                chunks,
                "content_block_stop",
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            )
        },
    ),
    events(
        "text-in-start",
        "the text is in `content_block_start`, without deltas",
        "gateways without streaming",
        Needs::Text,
        |chunks| {
            let whole: String =
                chunks.iter().filter_map(|chunk| chunk.json.pointer("/delta/text")?.as_str()).collect();
            each(without(chunks, "content_block_delta"), "content_block_start", |event| {
                if let Some(Value::Object(block)) = event.get_mut("content_block") {
                    set(block, "text", json!(whole));
                }
            })
        },
    ),
    events(
        "input-string-in-start",
        "the input of a call is a JSON string in `content_block_start`, without deltas",
        "gateways that convert chat completions",
        Needs::Call,
        |chunks| {
            let whole = json!(input_of(&chunks));
            with_input(without_inputs(chunks), &whole)
        },
    ),
    events(
        "input-sent-twice",
        "the input of a call is in `content_block_start` and in its deltas",
        "gateways that convert chat completions",
        Needs::Call,
        |chunks| {
            let whole = serde_json::from_str(&input_of(&chunks)).unwrap_or_default();
            with_input(chunks, &whole)
        },
    ),
    events(
        "input-deltas-missing",
        "a call without arguments has no deltas",
        "allowed by the API",
        Needs::EmptyCall,
        without_inputs,
    ),
    events(
        "input-lost",
        "the deltas with the input of a call are missing",
        "LiteLLM in front of Gemini, Ollama and others",
        Needs::Call,
        without_inputs,
    ),
    events(
        "thinking-redacted",
        "the reply starts with a `redacted_thinking` block",
        "Anthropic",
        Needs::Call,
        |chunks| insert_block(chunks, 0, &json!({"type": "redacted_thinking", "data": "c3R1Yg=="}), &[]),
    ),
    events(
        "thinking-omitted",
        "a `thinking` block has a signature, but no text",
        "Anthropic, with `display` `omitted`",
        Needs::Call,
        |chunks| {
            let deltas = [json!({"type": "signature_delta", "signature": signature("")})];
            insert_block(chunks, 0, &json!({"type": "thinking", "thinking": "", "signature": ""}), &deltas)
        },
    ),
    events("thinking-late", "a `thinking` block follows the text", "vLLM, gateways", Needs::Text, |chunks| {
        let text = json!({"type": "text", "text": ""});
        let deltas = [json!({"type": "text_delta", "text": " And more."})];
        insert_block(with_thought(chunks, 1), 2, &text, &deltas)
    }),
    events(
        "thinking-interleaved",
        "a `thinking` block precedes each call",
        "Anthropic, with interleaved thinking",
        Needs::TwoCalls,
        |chunks| with_thought(with_thought(chunks, 1), 3),
    ),
    events(
        "signature-missing",
        "a `thinking` block has no signature",
        "WindsurfAPI, GoModel",
        Needs::Text,
        |chunks| {
            let deltas = [json!({"type": "thinking_delta", "thinking": THOUGHT})];
            insert_block(chunks, 0, &json!({"type": "thinking", "thinking": ""}), &deltas)
        },
    ),
    events(
        "signature-empty",
        "the signature of a `thinking` block is \"\"",
        "llama.cpp, MiMo",
        Needs::Call,
        |chunks| {
            let deltas = [
                json!({"type": "thinking_delta", "thinking": THOUGHT}),
                json!({"type": "signature_delta", "signature": ""}),
            ];
            insert_block(chunks, 0, &json!({"type": "thinking", "thinking": "", "signature": ""}), &deltas)
        },
    )
    .on_server(EmulatedServer::LlamaCpp),
    events(
        "overloaded-first",
        "the stream contains only an `error` event",
        "Anthropic under load",
        Needs::Text,
        |_| vec![event(overloaded())],
    ),
    events(
        "overloaded-mid-stream",
        "an `error` event is sent in the middle of the reply",
        "Anthropic under load",
        Needs::Text,
        |mut chunks| {
            chunks.truncate(chunks.len() / 2);
            chunks.push(event(overloaded()));
            chunks
        },
    ),
    events("pings-between", "pings are sent between the events", "Anthropic", Needs::Call, |chunks| {
        between(chunks, &ping())
    }),
    answer("pings-for-ever", "half of the reply is sent, then only pings", "a model that hangs", |m| {
        let every = m.every_or(1_000);
        m.half(m.head()).then(Act::Repeat {
            bytes: framed(named_event(&ping()).as_bytes()),
            times: None,
            every,
        })
    })
    .only(MESSAGES),
    pieces("event-lines-missing", "events have no `event:` line", "gateways", |pieces, _| {
        each_line(pieces, "event: ", None)
    })
    .only(MESSAGES),
    pieces("event-lines-wrong", "every event is named `message`", "gateways", |pieces, _| {
        each_line(pieces, "event: ", Some("event: message"))
    })
    .only(MESSAGES),
    pieces("done-appended", "`[DONE]` follows `message_stop`", "gateways, LiteLLM", |mut pieces, _| {
        pieces.push(Piece::now(DONE));
        pieces
    })
    .only(MESSAGES),
    pieces("text-before-start", "text is sent before `message_start`", "gateways", |mut pieces, api| {
        let text = pieces.iter().position(|piece| is_text_event(api, &piece.bytes));
        if let Some(text) = text.map(|at| pieces.remove(at)) {
            pieces.insert(0, text);
        }
        pieces
    })
    .only(MESSAGES),
    answer("http-402", "402: the account has no credit", "Anthropic", |m| {
        respond(m, 402, "Your credit balance is too low to access the Anthropic API.")
    })
    .only(MESSAGES),
    answer("http-413", "413: the request is larger than 32 MB", "Anthropic", |m| {
        respond(m, 413, "Request exceeds the maximum size")
    })
    .only(MESSAGES),
    answer("http-504", "504 with an error object", "Anthropic", |m| respond(m, 504, "Request timed out"))
        .only(MESSAGES),
    answer("http-529", "529: the API is overloaded", "Anthropic under load", |m| {
        respond(m, 529, "Overloaded")
    })
    .only(MESSAGES),
    answer("prompt-too-long", "400: the prompt is larger than the context", "Anthropic", |m| {
        respond(m, 400, "prompt is too long: 209837 tokens > 200000 maximum")
    })
    .only(MESSAGES),
];

/// Returns a fault that changes the events of the Messages API.
const fn events(
    name: &'static str,
    about: &'static str,
    seen: &'static str,
    needs: Needs,
    inject: fn(Vec<Chunk>) -> Vec<Chunk>,
) -> Fault {
    new(name, about, seen, needs, Injection::Events(inject)).only(MESSAGES)
}

fn respond(m: &EncodedReply, status: u16, message: &str) -> crate::answer::Answer {
    m.head_of(status, "application/json").piece(error(status, message).to_string()).end()
}

fn ping() -> Value {
    json!({"type": "ping"})
}

fn overloaded() -> Value {
    error(529, "Overloaded")
}

fn with_thought(chunks: Vec<Chunk>, index: u64) -> Vec<Chunk> {
    let deltas = [
        json!({"type": "thinking_delta", "thinking": THOUGHT}),
        json!({"type": "signature_delta", "signature": signature(THOUGHT)}),
    ];
    insert_block(chunks, index, &json!({"type": "thinking", "thinking": "", "signature": ""}), &deltas)
}

/// Replaces the lines that start with `start`, or removes them.
fn each_line(mut pieces: Vec<Piece>, start: &str, replacement: Option<&str>) -> Vec<Piece> {
    for piece in &mut pieces {
        let text = String::from_utf8_lossy(&piece.bytes).into_owned();
        let lines = text.split('\n').filter_map(|line| match replacement {
            None if line.starts_with(start) => None,
            Some(other) if line.starts_with(start) => Some(other),
            _ => Some(line),
        });
        piece.bytes = lines.collect::<Vec<_>>().join("\n").into_bytes();
    }
    pieces
}
