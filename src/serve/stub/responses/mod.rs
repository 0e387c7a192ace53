//! A reply in the words of the Responses API.
//!
//! In: the chunks of chat completions, bent or not. Out: the events of a stream, or a whole response. They are told as a
//! gateway tells them that sits before such a server: what is odd in the deltas of a call is as odd in its events, its
//! `index` as `output_index`, its `id` as `call_id` and `item_id`. That is why a misbehaviour is written once.
//!
//! Source: platform.openai.com/docs/api-reference/responses-streaming (2026-11), and `tests/wire/responses`.

mod item;
mod teller;

use serde_json::{Value, json};

use super::answer::named_event;
use super::completions::{CREATED, Chunk};
use super::material::Piece;
use teller::Teller;

/// The events of a stream.
pub(super) fn events(chunks: Vec<Chunk>, model: &str) -> Vec<Piece> {
    let told = tell(chunks, model).events.into_iter();
    told.map(|Chunk { wait, json }| Piece { wait, bytes: named_event(&json).into_bytes() }).collect()
}

/// The response in one piece, as it is without `stream`.
pub(super) fn whole(chunks: Vec<Chunk>, model: &str) -> Value {
    let last = tell(chunks, model).events.pop();
    last.and_then(|mut last| last.json.get_mut("response").map(Value::take)).unwrap_or_default()
}

fn tell(chunks: Vec<Chunk>, model: &str) -> Teller {
    let mut teller = Teller::new(model, &chunks);
    for (number, chunk) in chunks.into_iter().enumerate() {
        teller.take(number, &chunk);
    }
    teller.finish();
    teller
}

/// A response; members that clients in strict languages want are there, though they say nothing.
fn response(model: &str, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": "resp_stub", "object": "response", "created_at": CREATED, "status": status, "model": model,
        "output": output, "error": null, "incomplete_details": null, "usage": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Api;
    use crate::serve::stub::completions::chunks;
    use crate::serve::stub::reply::{Ending, Form, Reply};

    fn told(reply: &Reply) -> Vec<Value> {
        let form = Form { api: Api::Responses, is_stream: true, has_usage: true, model: String::from("m") };
        tell(chunks(reply, &form), "m").events.into_iter().map(|event| event.json).collect()
    }

    fn kinds(events: &[Value]) -> Vec<&str> {
        let kinds =
            events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response."));
        kinds.collect()
    }

    #[test]
    fn items_begin_grow_and_end_one_after_the_other() {
        let reply =
            Reply::new().reasoning("Hm.").text("Let me").call("look", &json!({"at": "sea"})).text("!");
        let events = told(&reply);
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
        assert_eq!(items.iter().collect::<Vec<_>>(), done, "each item as it was told");
        assert_eq!(items[2]["arguments"], r#"{"at":"sea"}"#);
        assert_eq!((&items[2]["call_id"], &items[2]["id"]), (&json!("call00000"), &json!("fc_call00000")));
        assert_eq!(
            (&response["status"], &response["usage"]["input_tokens"]),
            (&json!("completed"), &json!(10))
        );
    }

    #[test]
    fn what_is_cut_has_no_last_event_and_a_limit_has_its_own() {
        let events = told(&Reply::new().text("one two").ending(Ending::End));
        assert_eq!(kinds(&events).last(), Some(&"output_text.delta"));
        let mut reply = Reply::new().text("one");
        reply.finish = Some(String::from("length"));
        let events = told(&reply);
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
        assert_eq!(last["response"]["output"][0]["status"], "incomplete");
    }
}
