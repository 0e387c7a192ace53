//! Replies in the Responses API format.
//!
//! In: the chunks of chat completions, with or without faults. Out: the events of a stream, or a whole response. The
//! conversion works like a gateway in front of a chat completions server: faults in the deltas of a call are kept in
//! the events. The `index` of a call becomes `output_index`, its `id` becomes `call_id` and `item_id`. So each fault is
//! implemented once for all APIs.
//!
//! Source: platform.openai.com/docs/api-reference/responses-streaming (2026-11), and `crates/chat/tests/wire/responses`.

mod encoder;
mod item;

use serde_json::Value;

use super::model::Chunk;
use encoder::EventEncoder;

/// Returns the events of a stream.
pub(super) fn events(chunks: Vec<Chunk>, model: &str) -> Vec<Chunk> {
    encode(chunks, model).events
}

/// Returns the whole response, for requests without `stream`.
pub(super) fn whole(chunks: Vec<Chunk>, model: &str) -> Value {
    let last = encode(chunks, model).events.pop();
    last.and_then(|mut last| last.json.get_mut("response").map(Value::take)).unwrap_or_default()
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

    use serde_json::json;

    use super::*;
    use crate::completions::chunks;
    use crate::model::{AnswerFormat, Ending};
    use crate::reply::Reply;

    fn events_of(reply: &Reply) -> Vec<Value> {
        let format = AnswerFormat::stream(Api::Responses);
        encode(chunks(reply, &format), "m").events.into_iter().map(|event| event.json).collect()
    }

    fn kinds(events: &[Value]) -> Vec<&str> {
        let kinds =
            events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response."));
        kinds.collect()
    }

    #[test]
    fn each_item_is_added_streamed_and_done_before_the_next() {
        let reply =
            Reply::new().reasoning("Hm.").text("Let me").call("look", &json!({"at": "sea"})).text("!");
        let events = events_of(&reply);
        let expected = [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_text.delta",
            "reasoning_text.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ];
        assert_eq!(kinds(&events), expected);
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
        }
        let response = &events.last().unwrap()["response"];
        let items = response["output"].as_array().unwrap();
        let done: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| &event["item"])
            .collect();
        assert_eq!(items.iter().collect::<Vec<_>>(), done, "the final output has the items of the events");
        assert_eq!(items[2]["arguments"], r#"{"at":"sea"}"#);
        assert_eq!((&items[2]["call_id"], &items[2]["id"]), (&json!("call00000"), &json!("fc_call00000")));
        assert_eq!(
            (&response["status"], &response["usage"]["input_tokens"]),
            (&json!("completed"), &json!(10))
        );
    }

    #[test]
    fn truncated_replies_have_no_final_event_and_length_is_incomplete() {
        let events = events_of(&Reply::new().text("one two").ending(Ending::End));
        assert_eq!(kinds(&events).last(), Some(&"output_text.delta"));
        let mut reply = Reply::new().text("one");
        reply.finish = Some(String::from("length"));
        let events = events_of(&reply);
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
        assert_eq!(last["response"]["output"][0]["status"], "incomplete");
    }
}
