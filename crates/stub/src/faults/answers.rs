//! HTTP answers that are not a reply, or a reply with wrong framing, headers or content type.

use std::io::Write;
use std::time::SystemTime;

use deftool_chat::Api;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::raw_events::text_event;
use crate::answer::{Act, Answer, DONE, framed, reason};
use crate::fault::{Fault, answer, answer_to_call};
use crate::messages;
use crate::model::EncodedReply;
use crate::reply::Reply;

pub(super) static TABLE: &[Fault] = &[
    answer("http-400", "400 with an error object", "every server", |m| error(m, 400, "bad seed")),
    answer("http-401", "401: the key is missing or wrong", "every hosted API", |m| {
        error(m, 401, "invalid key")
    }),
    answer("http-403", "403 with plain text", "proxies, hosted APIs", |m| {
        respond(m, 403, "text/plain", "forbidden")
    }),
    answer("http-404", "404: unknown model", "OpenAI, Ollama", |m| error(m, 404, "no such model")),
    answer("http-422", "422 with a list of details", "FastAPI (vLLM, llama-cpp-python)", |m| {
        let detail =
            json!({"detail": [{"loc": ["body", "tools"], "msg": "field required", "type": "missing"}]});
        respond(m, 422, "application/json", &detail.to_string())
    }),
    answer("http-500", "500 with an error object", "every server", |m| error(m, 500, "out of memory")),
    answer("http-500-text", "500 with plain text", "llama-cpp-python", |m| {
        respond(m, 500, "text/plain", "Internal Server Error")
    }),
    answer("http-502-html", "502 with an HTML page", "nginx in front of a server that is down", |m| {
        respond(
            m,
            502,
            "text/html",
            "<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>",
        )
    }),
    answer("http-503-loading", "503 `Loading model`, without Retry-After", "llama.cpp", |m| {
        let error = json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}});
        respond(m, 503, "application/json", &error.to_string())
    }),
    answer("http-504-empty", "504 without a body", "load balancers", |m| m.head_of(504, "text/plain").end()),
    answer("context-overflow", "400: the prompt is larger than the context", "llama.cpp", |m| {
        let error = json!({"error": {
            "code": 400, "message": "the request exceeds the available context size",
            "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096,
        }});
        respond(m, 400, "application/json", &error.to_string())
    }),
    answer(
        "context-length-exceeded",
        "400: the prompt is larger than the context, with the error code `context_length_exceeded`",
        "OpenAI, llama-cpp-python",
        |m| {
            let error = json!({"error": {
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
                "type": "invalid_request_error", "param": null, "code": "context_length_exceeded",
            }});
            respond(m, 400, "application/json", &error.to_string())
        },
    )
    .openai_only(),
    answer(
        "failed-generation",
        "400: the server cannot parse the model's call; the returned text is not a call",
        "Groq",
        |m| {
            let text = "I would call a tool here.";
            respond(m, 400, "application/json", &failed_generation(text))
        },
    )
    .openai_only(),
    answer_to_call(
        "failed-generation-call",
        "400: the server cannot parse the model's call; the returned text is a call",
        "Groq",
        |m| respond(m, 400, "application/json", &failed_generation(m.call.as_deref().unwrap_or_default())),
    )
    .openai_only(),
    answer("redirect", "308 to another server", "an endpoint with http instead of https", |m| {
        let location = match m.format.api {
            Api::ChatCompletions => "https://api.example.org/v1/chat/completions",
            Api::Responses => "https://api.example.org/v1/responses",
            Api::Messages => "https://api.example.org/v1/messages",
        };
        Answer::whole(308, &[("location", location)], "")
    }),
    answer("retry-after-seconds", "429, Retry-After: 1", "hosted APIs", |m| {
        rate_limited(m, "retry-after", "1")
    }),
    answer("retry-after-float", "429, Retry-After: 0.05", "gateways", |m| {
        rate_limited(m, "retry-after", "0.05")
    }),
    answer(
        "retry-after-date",
        "429, Retry-After with a date one second in the future",
        "allowed by HTTP",
        |m| {
            let then = jiff::Timestamp::try_from(SystemTime::now() + std::time::Duration::from_secs(1));
            let then = then.map(|then| then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
            rate_limited(m, "retry-after", &then.unwrap_or_default())
        },
    ),
    answer(
        "retry-after-past",
        "429, Retry-After with a date in the past",
        "servers with a wrong clock",
        |m| rate_limited(m, "retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
    ),
    answer("retry-after-ms", "429, retry-after-ms: 40", "OpenAI, Azure", |m| {
        rate_limited(m, "retry-after-ms", "40")
    }),
    answer("retry-after-absurd", "429, Retry-After: 86400", "daily quotas", |m| {
        rate_limited(m, "retry-after", "86400")
    }),
    answer("retry-after-negative", "429, Retry-After: -5", "hand-written servers", |m| {
        rate_limited(m, "retry-after", "-5")
    }),
    answer("retry-after-words", "429, Retry-After: soon", "hand-written servers", |m| {
        rate_limited(m, "retry-after", "soon")
    }),
    answer("retry-after-missing", "429 without Retry-After", "many servers", |m| {
        rate_limited(m, "x-nothing", "1")
    }),
    answer(
        "empty-200",
        "200, an event stream without events",
        "llama-cpp-python, on context overflow",
        |m| m.head().end(),
    ),
    answer("empty-done", "200, only `[DONE]`", "gateways", |m| m.head().piece(DONE).end()),
    answer("empty-comments", "200, only comments", "routers with an unavailable provider", |m| {
        m.head().piece(": ping\n\n").piece(": ping\n\n").end()
    }),
    answer("http-204", "204 without a body", "proxies", |_| raw("HTTP/1.1 204 No Content\r\n\r\n")),
    answer("html-200", "200 with an HTML page", "captive portals, a wrong endpoint", |m| {
        respond(m, 200, "text/html", "<!doctype html><title>Sign in</title><body>please</body>")
    }),
    answer("text-200", "200 with plain text", "a wrong endpoint", |m| {
        respond(m, 200, "text/plain", "It works!\n")
    }),
    answer("error-json-200", "200 with an error object", "gateways", |m| {
        respond(m, 200, "application/json", "{\"error\":{\"message\":\"model not loaded\"}}")
    }),
    answer("content-type-wrong", "an event stream with the content type application/json", "9router", |m| {
        m.body(m.head_of(200, "application/json")).end()
    }),
    answer("content-type-missing", "an event stream without a content type", "hand-written servers", |m| {
        m.body(Answer::head(200, &[])).end()
    }),
    answer(
        "json-for-stream",
        "a whole JSON reply although the request asks for a stream",
        "mocks, 9router",
        |m| {
            let whole = Reply::new().text("All of it in one piece.").whole(&m.format);
            respond(m, 200, "application/json", &whole)
        },
    ),
    answer(
        "stream-for-json",
        "an event stream even if the request does not ask for one",
        "mocks, 9router",
        |m| {
            if m.format.is_stream {
                return m.plain();
            }
            let whole = String::from_utf8_lossy(&m.joined()).into_owned();
            let done = match m.format.api {
                Api::ChatCompletions => DONE,
                Api::Responses | Api::Messages => "",
            };
            m.head_of(200, "text/event-stream").piece(format!("data: {whole}\n\n{done}")).end()
        },
    ),
    answer("json-cut", "a whole JSON reply that is truncated", "a server that crashes", |m| {
        let whole = Reply::new().text("All of it in one piece.").whole(&m.format);
        let end = whole.find(" it in one").unwrap_or_default();
        respond(m, 200, "application/json", whole.get(..end).unwrap_or_default())
    }),
    answer("gzip", "an event stream compressed with gzip, regardless of Accept-Encoding", "proxies", |m| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&m.joined()).and_then(|()| encoder.finish());
        let head = Answer::head(200, &[("content-type", "text/event-stream"), ("content-encoding", "gzip")]);
        head.piece(written.unwrap_or_default()).end()
    }),
    answer("http-1-0", "HTTP/1.0: the end of the connection ends the body", "old proxies", |m| {
        raw("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            .then(Act::Write(m.joined()))
            .then(Act::Close)
    }),
    answer(
        "content-length",
        "an event stream with Content-Length instead of chunks",
        "proxies that buffer",
        |m| with_length(m, m.joined().len()),
    ),
    answer("content-length-short", "Content-Length is too small", "proxies that rewrite bodies", |m| {
        with_length(m, m.joined().len() / 2).then(Act::Close)
    }),
    answer(
        "content-length-long",
        "Content-Length is too large, then the connection is closed",
        "proxies that crash",
        |m| with_length_and_body(m, m.joined().len() * 2, &half(&m.joined())).then(Act::Close),
    ),
    answer(
        "chunk-truncated",
        "the last chunk of the body is shorter than its size",
        "a server that crashes",
        |m| {
            let last = framed(&text_event(m.format.api, b"and more"));
            m.half(m.head()).then(Act::Write(half(&last))).then(Act::Close)
        },
    ),
    answer("chunk-size-wrong", "a chunk of the body has an invalid size", "hand-written servers", |m| {
        m.half(m.head()).then(Act::Write(b"zz\r\nhello\r\n".to_vec())).then(Act::Close)
    }),
    answer("chunk-end-missing", "the chunk that ends the body is missing", "hand-written servers", |m| {
        m.body(m.head()).then(Act::Close)
    }),
    answer("head-broken", "the answer is not HTTP", "a wrong port", |_| {
        raw("SSH-2.0-OpenSSH_9.6\r\n").then(Act::Close)
    }),
    answer("status-absurd", "an invalid status code", "hand-written servers", |_| {
        raw("HTTP/1.1 999999 What\r\ncontent-length: 0\r\n\r\n").then(Act::Close)
    }),
    answer("trailing-bytes", "bytes are sent after the end of the body", "hand-written servers", |m| {
        m.plain().then(Act::Write(b"this is not an answer\r\n\r\n".to_vec())).then(Act::Close)
    }),
    answer("continue-first", "100 Continue is sent twice before the answer", "proxies", |m| {
        let plain = m.plain();
        let first = Answer::default().then(Act::Write(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(2)));
        plain.acts().iter().fold(first, |answer, act| answer.then(act.clone()))
    }),
];

fn respond(m: &EncodedReply, status: u16, content_type: &str, body: &str) -> Answer {
    m.head_of(status, content_type).piece(body).end()
}

fn failed_generation(text: &str) -> String {
    let error = json!({
        "message": "Failed to call a function.", "type": "invalid_request_error", "code": "tool_use_failed",
        "failed_generation": text,
    });
    json!({"error": error}).to_string()
}

fn error(m: &EncodedReply, status: u16, message: &str) -> Answer {
    let error = match m.format.api {
        Api::ChatCompletions | Api::Responses => json!({"error": {"message": message, "code": status}}),
        Api::Messages => messages::error(status, message),
    };
    respond(m, status, "application/json", &error.to_string())
}

fn rate_limited(m: &EncodedReply, header: &str, value: &str) -> Answer {
    let headers = [("content-type", "application/json"), (header, value)];
    match m.format.api {
        Api::ChatCompletions | Api::Responses => Answer::error(429, &headers, "slow down"),
        Api::Messages => Answer::whole(429, &headers, &messages::error(429, "slow down").to_string()),
    }
}

fn raw(text: &str) -> Answer {
    Answer::default().then(Act::Write(text.as_bytes().to_vec()))
}

fn with_length(m: &EncodedReply, length: usize) -> Answer {
    with_length_and_body(m, length, &m.joined())
}

fn with_length_and_body(m: &EncodedReply, length: usize, body: &[u8]) -> Answer {
    let kind = if m.format.is_stream { "text/event-stream" } else { "application/json" };
    raw(&format!("HTTP/1.1 200 {}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n", reason(200)))
        .then(Act::Write(body.to_vec()))
}

fn half(bytes: &[u8]) -> Vec<u8> {
    bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec()
}
