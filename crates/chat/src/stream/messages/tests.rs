//! Streams in which blocks and deltas do not fit together.

use deftool_lang::spec::Api;
use serde_json::{Value, json};

use crate::event::{ChatEvent, RawArguments, ReplyStatus};
use crate::stream::{MAX_CALLS, StreamDecoder, TransportEnd};

/// Decodes events, and returns the text and the calls as `name arguments`, or why the reply is not complete.
fn decoded(blocks: &[Value]) -> String {
    let mut decoder = StreamDecoder::new(Api::Messages, []);
    let mut events = Vec::new();
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    for event in blocks.iter().chain(&end) {
        decoder.feed(format!("data: {event}\n\n").as_bytes(), &mut events);
    }
    decoder.finish(TransportEnd::Clean, &mut events);
    let parts = events.into_iter().map(|event| match event {
        ChatEvent::Text { text } => text,
        ChatEvent::Ended { reply } => {
            let calls = reply.calls.into_iter().map(|call| match call.arguments {
                RawArguments::Object { value } => format!("{} {value}", call.name),
                RawArguments::Malformed { .. } => format!("{} !", call.name),
            });
            match reply.status {
                ReplyStatus::ServerError { error } => format!("{} calls: {}", calls.len(), error.message),
                _ => calls.collect::<Vec<_>>().join(", "),
            }
        }
        _ => String::new(),
    });
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn text(index: u64) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})
}

fn call(index: u64, name: &str) -> Value {
    let block = json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn written(index: u64, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
}

fn arguments(index: u64, json: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn a_delta_with_an_unknown_index_belongs_to_the_only_open_block() {
    for (events, expected) in [
        (
            vec![
                text(0),
                written(7, "Hm"),
                written(7, "."),
                stop(0),
                call(1, "a"),
                arguments(8, "{\"x\":"),
                arguments(8, "1}"),
                stop(1),
                call(2, "b"),
                arguments(9, "{}"),
                stop(2),
            ],
            "Hm; .; a {\"x\":1}, b {}",
        ),
        // Which of two open calls the arguments belong to is unknown.
        (vec![call(0, "a"), call(1, "b"), arguments(8, "{\"x\":1}")], "a {}, b {},  {\"x\":1}"),
        (vec![call(0, "a"), stop(0), arguments(8, "{\"x\":1}")], "a {},  {\"x\":1}"),
        (vec![text(0), arguments(8, "{\"x\":1}")], " {\"x\":1}"),
    ] {
        assert_eq!(decoded(&events), expected, "{events:?}");
    }
}

#[test]
fn calls_and_other_blocks_are_counted_separately() {
    let many = |count: u64| (1..=count).flat_map(|index| [call(index, &format!("c{index}")), stop(index)]);
    let limit = MAX_CALLS as u64;
    let events: Vec<Value> = [text(0), stop(0)].into_iter().chain(many(limit)).collect();
    assert_eq!(decoded(&events).matches("{}").count(), MAX_CALLS);
    let events: Vec<Value> = [text(0), stop(0)].into_iter().chain(many(limit + 2)).collect();
    assert_eq!(
        decoded(&events),
        "1000 calls: the reply contains more than 1000 tool calls; the rest was not read"
    );
    let events: Vec<Value> = (0..=limit).flat_map(|index| [text(index), stop(index)]).collect();
    assert!(decoded(&events).contains("more than 1000 items of one kind"));
}
