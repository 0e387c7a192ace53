//! Replies in the format of the Messages API, and the refusals of invalid requests.
//!
//! In: the chunks of chat completions, with or without faults. Out: the events of a stream, or a whole message. As in
//! [`responses`](super::responses), each fault of the chunks is implemented once for all APIs: the `index` of a call
//! becomes the index of its block, its `id` the id of the block. Faults of this API alone change the events.
//!
//! Source: platform.claude.com/docs/en/build-with-claude/streaming and api/errors (2026-11).

mod block;
mod encoder;
mod validate;

use serde_json::{Value, json};

use super::model::Chunk;
use block::message;
pub(super) use block::signature;
use encoder::EventEncoder;
pub(super) use validate::refusal;

/// Returns the events of a stream.
pub(super) fn events(chunks: Vec<Chunk>, model: &str) -> Vec<Chunk> {
    encode(chunks, model).events
}

/// Returns the whole message, for requests without `stream`.
pub(super) fn whole(chunks: Vec<Chunk>, model: &str) -> Value {
    let encoder = encode(chunks, model);
    let content = encoder.blocks.iter().map(block::Block::whole).collect();
    message(model, content, encoder.stop_reason.as_deref(), &encoder.usage)
}

/// Returns an error object.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({"type": kind, "message": message});
    json!({"type": "error", "error": error, "request_id": "req_stub"})
}

fn encode(chunks: Vec<Chunk>, model: &str) -> EventEncoder {
    let mut encoder = EventEncoder::new(model, &chunks);
    for (number, chunk) in chunks.into_iter().enumerate() {
        encoder.push_chunk(number, &chunk);
    }
    encoder.finish();
    encoder
}

#[cfg(test)]
mod tests {
    use deftool_chat::Api;

    use super::*;
    use crate::completions::chunks;
    use crate::model::{AnswerFormat, Ending};
    use crate::reply::{Reply, Usage};

    fn chunks_of(reply: &Reply) -> Vec<Chunk> {
        chunks(reply, &AnswerFormat::stream(Api::Messages))
    }

    fn events_of(reply: &Reply) -> Vec<Value> {
        events(chunks_of(reply), "m").into_iter().map(|event| event.json).collect()
    }

    /// Returns the type of each event, with the type of its block or delta.
    fn kinds(events: &[Value]) -> Vec<String> {
        let kind = |event: &Value| {
            let inner = event["content_block"]["type"].as_str().or_else(|| event["delta"]["type"].as_str());
            let index = event["index"].as_u64().map(|index| index.to_string());
            let words = [event["type"].as_str(), index.as_deref(), inner];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        events.iter().map(kind).collect()
    }

    #[test]
    fn each_block_is_started_streamed_and_stopped_before_the_next() {
        let reply =
            Reply::new().reasoning("Hm.").text("Let me").call("look", &json!({"at": "sea"})).text("!");
        let events = events_of(&reply);
        let expected = [
            "message_start",
            "content_block_start 0 thinking",
            "ping",
            "content_block_delta 0 thinking_delta",
            "content_block_delta 0 signature_delta",
            "content_block_stop 0",
            "content_block_start 1 text",
            "content_block_delta 1 text_delta",
            "content_block_delta 1 text_delta",
            "content_block_stop 1",
            "content_block_start 2 tool_use",
            "content_block_delta 2 input_json_delta",
            "content_block_delta 2 input_json_delta",
            "content_block_stop 2",
            "content_block_start 3 text",
            "content_block_delta 3 text_delta",
            "content_block_stop 3",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(kinds(&events), expected);
        assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
        let whole = whole(chunks_of(&reply), "m");
        let kinds: Vec<&Value> =
            whole["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
        assert_eq!(kinds, ["thinking", "text", "tool_use", "text"]);
        assert_eq!(whole["content"][0]["signature"], events[4]["delta"]["signature"]);
        assert_eq!(
            (&whole["content"][1]["text"], &whole["content"][2]["input"]),
            (&json!("Let me"), &json!({"at": "sea"}))
        );
        assert_eq!(
            (&whole["stop_reason"], &whole["usage"]["input_tokens"]),
            (&json!("tool_use"), &json!(10))
        );
    }

    #[test]
    fn truncated_replies_have_no_stop_reason_and_limits_are_named() {
        let events = events_of(&Reply::new().text("one two").ending(Ending::End));
        assert_eq!(kinds(&events).last().unwrap(), "content_block_delta 0 text_delta");
        let reasons = [("length", "max_tokens"), ("content_filter", "refusal"), ("pause_turn", "pause_turn")];
        for (finish, stop_reason) in reasons {
            let reply = Reply { finish: Some(String::from(finish)), ..Reply::new().text("one") };
            let events = events_of(&reply);
            assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], stop_reason);
        }
    }

    /// The prompt is split into tokens that were read from the cache and others.
    #[test]
    fn cached_tokens_are_counted_apart() {
        let usage = Some(Usage { prompt: 30, completion: 2, cached: 20 });
        let events = events_of(&Reply { usage, ..Reply::new().text("one") });
        let started = &events[0]["message"]["usage"];
        assert_eq!((&started["input_tokens"], &started["cache_read_input_tokens"]), (&json!(10), &json!(20)));
        assert_eq!(events[events.len() - 2]["usage"]["output_tokens"], 2);
    }
}
