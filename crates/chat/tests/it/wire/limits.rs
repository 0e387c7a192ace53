//! Replies that exceed a limit end there, and earlier content is kept.

use deftool_chat::{Api, RawArguments, ReplyStatus, TransportEnd};
use deftool_test_support::cpu::assert_linear;
use deftool_test_support::{is_full, step};
use serde_json::{Value, json};

use super::read::{Reading, delta, event, read_api, read_pieces, server_error};

#[test]
fn a_line_of_two_megabytes_is_read() {
    let arguments = json!({ "s": "x".repeat(2_000_000) }).to_string();
    let call =
        json!({ "index": 0, "id": "c1", "function": { "name": "get_weather", "arguments": arguments } });
    let chunk =
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null }] });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let body = format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    for size in [body.len(), 16 * 1024, 7] {
        let reading = read_pieces(body.as_bytes().chunks(size), TransportEnd::Clean, &[]);
        assert_eq!(reading.reply.status, ReplyStatus::Complete);
        let RawArguments::Object { value } = &reading.reply.calls[0].arguments else { panic!("an object") };
        assert_eq!(value["s"].as_str().map(str::len), Some(2_000_000));
    }
}

#[test]
fn a_line_above_the_size_limit_is_an_error() {
    let megabyte = vec![b'x'; 1024 * 1024];
    for (start, expected_text) in [(&b"data: "[..], ""), (b"{\"a\":\"", ""), (TEXT_THEN_DATA, "hi")] {
        let pieces = std::iter::once(start).chain(std::iter::repeat_n(&megabyte[..], 33));
        let reading = read_pieces(pieces, TransportEnd::Clean, &[]);
        let ReplyStatus::ServerError { error } = &reading.reply.status else {
            panic!("{:?}", reading.reply.status)
        };
        assert!(error.message.contains("larger than 33554432 bytes"), "{}", error.message);
        assert_eq!(reading.text, expected_text);
    }
}

const TEXT_THEN_DATA: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: ";

#[test]
fn leading_blanks_take_linear_time_and_do_not_affect_the_reply() {
    assert_linear("leading blanks", 100_000, |size| {
        let blanks = b" \r\n\t".repeat(size);
        let chunk = delta(r#"{"content":"a"}"#);
        for mark in ["", "\u{feff}"] {
            let pieces = [mark.as_bytes()].into_iter().chain(blanks.chunks(100));
            let reading =
                read_pieces(pieces.clone().chain([&b"\n"[..], chunk.as_bytes()]), TransportEnd::Clean, &[]);
            assert_eq!(reading.text, "a");
            let whole = r#"{"choices":[{"message":{"content":"b"}}]}"#;
            let reading = read_pieces(pieces.clone().chain([whole.as_bytes()]), TransportEnd::Clean, &[]);
            assert_eq!(reading.text, "b");
            // A line with a leading blank has a different field name.
            assert_eq!(read_pieces(pieces.chain([chunk.as_bytes()]), TransportEnd::Clean, &[]).text, "");
        }
    });
}

#[test]
fn a_reply_with_too_many_calls_ends_at_the_limit() {
    let call =
        |n: usize| format!(r#"{{"index":{n},"id":"c{n}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let calls = |count: usize| (0..count).map(call).collect::<Vec<_>>().join(",");
    let text = delta(r#"{"content":"a"}"#);
    let tail = format!("{}data: [DONE]\n\n", delta(r#"{"content":"b"}"#));
    let read = |calls: &str| {
        let body = format!("{text}{}{tail}", delta(&format!(r#"{{"tool_calls":[{calls}]}}"#)));
        read_pieces([body.as_bytes()].into_iter(), TransportEnd::Clean, &["f"])
    };
    let whole = read(&calls(1_000));
    assert_eq!(
        (whole.reply.status, whole.reply.calls.len(), whole.text.as_str()),
        (ReplyStatus::Complete, 1_000, "ab")
    );
    let many = read(&calls(1_001));
    assert_eq!(server_error(&many), "the reply contains more than 1000 tool calls; the rest was not read");
    assert_eq!((many.reply.calls.len(), many.text.as_str()), (1_000, "a"));
    // One call with many objects.
    let concatenated = read(&format!(
        r#"{{"function":{{"name":"f","arguments":"{}"}}}}"#,
        (0..40_000).map(|n| format!(r#"{{\"a\":{n}}}"#)).collect::<Vec<_>>().concat()
    ));
    assert_eq!(
        server_error(&concatenated),
        "the reply contains more than 1000 tool calls; the rest was not read"
    );
    assert_eq!(concatenated.reply.calls.len(), 1_000);
    // The maximum number of calls, each in many pieces, and an endless name.
    let pieces: Vec<String> =
        (0..200_000 / step(10)).map(|n| format!(r#",{{"index":{},"id":"x"}}"#, n % 1_000)).collect();
    assert_eq!(read(&format!("{}{}", calls(1_000), pieces.concat())).reply.calls.len(), 1_000);
    let name: Vec<String> =
        (0..200_000 / step(10)).map(|n| format!(r#"{{"function":{{"name":"{n}x"}}}}"#)).collect();
    assert!(read(&name.join(",")).reply.calls.len() <= 1_000);
}

#[test]
fn a_reply_that_is_too_long_ends_at_the_limit() {
    let piece = delta(&format!(r#"{{"content":"{}","reasoning":"r"}}"#, "a".repeat(1 << 20)));
    let arguments =
        format!(r#"{{"tool_calls":{{"function":{{"name":"f","arguments":"{}"}}}}}}"#, "1".repeat(1 << 20));
    let arguments = delta(&arguments);
    let last = delta(r#"{"content":"b"}"#);
    let times = |piece: &str, count| std::iter::repeat_n(piece.to_owned(), count).collect::<Vec<_>>();
    for (pieces, kept) in [(times(&piece, 80), 63), (times(&arguments, 80), 0)].into_iter().step_by(step(2)) {
        let pieces = pieces.iter().chain([&last]).map(String::as_bytes);
        let reading = read_pieces(pieces, TransportEnd::Clean, &["f"]);
        assert_eq!(server_error(&reading), "the reply is longer than 64 MiB; the rest was not read");
        assert_eq!((reading.text.len(), reading.reasoning.len()), (kept << 20, kept));
    }
}

fn read_response(events: &[String]) -> Reading {
    read_api(Api::Responses, events.iter().map(String::as_bytes), TransportEnd::Clean, &["f"])
}

fn function_call(number: usize, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"), "name": "f",
           "arguments": arguments})
}

#[test]
fn a_response_with_too_many_items_ends_at_the_limit() {
    let text = event(&json!({"type": "response.output_text.delta", "item_id": "m", "delta": "a"}));
    let last = event(&json!({"type": "response.output_text.delta", "item_id": "m", "delta": "b"}));
    let read = |events: Vec<String>| {
        let all: Vec<String> = [text.clone()].into_iter().chain(events).chain([last.clone()]).collect();
        read_response(&all)
    };
    let many_items = 40_000 / step(20);
    let too_many = "the reply contains more than 1000 tool calls; the rest was not read";
    let done = |n| event(&json!({"type": "response.output_item.done", "item": function_call(n, "{}")}));
    let grown = |n| {
        event(&json!({"type": "response.function_call_arguments.delta", "output_index": n, "delta": "{}"}))
    };
    // The maximum number of calls, each repeated many times.
    let whole = read((0..many_items).map(|n| done(n % 1_000)).collect());
    assert_eq!(
        (whole.reply.status, whole.reply.calls.len()),
        (ReplyStatus::Incomplete { cause: None }, 1_000)
    );
    for many in [(0..many_items).map(done).collect::<Vec<_>>(), (0..many_items).map(grown).collect()] {
        let many = read(many);
        assert_eq!((server_error(&many), many.text.as_str()), (too_many, "a"));
        assert_eq!(many.reply.calls.len(), 1_000);
    }
    // In the final event, and concatenated in one call.
    let all: Vec<Value> = (0..many_items).map(|n| function_call(n, "{}")).collect();
    let end = |output: &[Value]| {
        event(&json!({"type": "response.completed", "response": {"status": "completed", "output": output}}))
    };
    let objects: Vec<String> = (0..many_items).map(|n| format!(r#"{{"a":{n}}}"#)).collect();
    let concatenated = function_call(0, &objects.concat());
    for output in [&all[..], &[concatenated]] {
        let many = read(vec![end(output)]);
        assert_eq!((server_error(&many), many.reply.calls.len()), (too_many, 1_000));
    }
    // Endless messages and reasoning, each with a unique id and index.
    for kind in ["message", "reasoning"] {
        let added = |n: usize| {
            let item = json!({"type": kind, "id": format!("i{n}")});
            event(&json!({"type": "response.output_item.added", "output_index": n, "item": item}))
        };
        let many = read((0..many_items).map(added).collect());
        assert!(server_error(&many).contains("more than 1000 items"), "{many:?}");
    }
    // Skipped items need no memory and are reported a few times.
    let foreign = |n: usize| {
        event(&json!({"type": "response.output_item.done", "item": {"type": format!("kind_{n}"), "id": "x"}}))
    };
    let many = read((0..many_items).map(foreign).collect());
    assert_eq!((many.text.as_str(), many.notes.foreign_items.len()), ("ab", 8));
}

#[test]
fn a_response_that_is_too_long_ends_at_the_limit() {
    let mib = "x".repeat(1 << 20);
    let of = |kind: &str| event(&json!({"type": kind, "item_id": "i", "output_index": 0, "delta": mib}));
    let whole = |n: usize| {
        let arguments = format!("\"{}\"", mib.repeat(4));
        event(&json!({"type": "response.output_item.done", "item": function_call(n, &arguments)}))
    };
    let cases: [(&dyn Fn() -> Vec<String>, usize); 3] = [
        (&|| vec![of("response.output_text.delta"); 66], 64 << 20),
        (&|| vec![of("response.function_call_arguments.delta"); 66], 0),
        (&|| (0..17).map(whole).collect(), 0),
    ];
    for (events, text) in cases.into_iter().step_by(step(3)) {
        let reading = read_response(&events());
        assert_eq!(server_error(&reading), "the reply is longer than 64 MiB; the rest was not read");
        assert_eq!(reading.text.len(), text);
    }
    if !is_full() {
        return;
    }
    // Repeated content is counted once.
    let large = mib.repeat(18);
    let call = function_call(0, &format!("\"{large}\""));
    let reading = read_response(&[
        event(&json!({"type": "response.output_text.delta", "item_id": "i", "delta": large})),
        event(&json!({"type": "response.output_text.done", "item_id": "i", "text": large})),
        event(&json!({"type": "response.output_item.done", "item": call})),
        event(&json!({"type": "response.completed", "response": {"output": [call]}})),
    ]);
    assert_eq!((reading.reply.status, reading.text.len()), (ReplyStatus::Complete, large.len()));
}

/// State that is too large is dropped as a whole: a part of it would be invalid.
#[test]
fn state_above_four_megabytes_is_not_kept() {
    let mib = "x".repeat(1 << 20);
    let text = |_: usize| json!({ "reasoning_content": mib });
    // The names of members count, too.
    let names = |number: usize| json!({ format!("reasoning_{number}{mib}"): "" });
    let names_of_call =
        |number: usize| json!({ "tool_calls": [{"index": 0, format!("signature{number}{mib}"): 1}] });
    let pieces: [&dyn Fn(usize) -> Value; 3] = [&text, &names, &names_of_call];
    for (kind, piece) in pieces.iter().enumerate() {
        for (megabytes, is_kept) in [(3, true), (5, false)] {
            let call = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": 1}]);
            let mut body = delta(&json!({ "tool_calls": call }).to_string());
            body.extend((0..megabytes).map(|number| delta(&piece(number).to_string())));
            let reading = read_pieces(std::iter::once(body.as_bytes()), TransportEnd::Clean, &[]);
            let call = &reading.reply.calls[0];
            assert_eq!(call.opaque.is_empty(), !is_kept, "{kind} {megabytes}");
            let size = reading.reply.opaque.members.len() + call.opaque.len();
            assert_eq!(size > 1, is_kept, "{kind} {megabytes}");
            assert_eq!(reading.notes.opaque_is_too_large, !is_kept, "{kind} {megabytes}");
        }
    }
}

#[test]
fn a_message_ends_at_the_limits() {
    let start = |block: Value| event(&json!({"type": "content_block_start", "content_block": block}));
    let delta = |delta: Value| event(&json!({"type": "content_block_delta", "delta": delta}));
    let mib = "x".repeat(1 << 20);
    let many_blocks = 4_000 / step(2);
    let call = |n: usize| start(json!({"type": "tool_use", "id": format!("c{n}"), "name": "f", "input": {}}));
    let unknown = |n: usize| start(json!({"type": format!("kind_{n}")}));
    // Deltas that begin a block, because they do not fit the last one.
    let mixed =
        |n: usize| delta(if n.is_multiple_of(2) { json!({"text": "a"}) } else { json!({"thinking": "b"}) });
    let too_many_calls = "the reply contains more than 1000 tool calls; the rest was not read";
    let too_many = "the reply has more than 1000 items of one kind; the rest was not read";
    let too_long = "the reply is longer than 64 MiB; the rest was not read";
    for (events, calls, expected) in [
        ((0..many_blocks).map(call).collect::<Vec<_>>(), 1_000, too_many_calls),
        ((0..many_blocks).map(unknown).collect(), 0, too_many),
        ((0..many_blocks).map(mixed).collect(), 0, too_many),
        (vec![delta(json!({"text": mib})); 66], 0, too_long),
        (vec![delta(json!({"thinking": mib})); 66], 0, too_long),
        ([vec![unknown(0)], vec![delta(json!({"partial_json": mib})); 66]].concat(), 0, too_long),
    ] {
        let pieces = events.iter().map(String::as_bytes);
        let reading = read_api(Api::Messages, pieces, TransportEnd::Clean, &["f"]);
        assert_eq!((server_error(&reading), reading.reply.calls.len()), (expected, calls));
        assert!(reading.notes.foreign_items.len() <= 8);
    }
    // Thinking above 4 MiB is not kept.
    let thinking =
        [vec![delta(json!({"thinking": mib})); 5], vec![event(&json!({"type": "message_stop"}))]].concat();
    let reading = read_api(Api::Messages, thinking.iter().map(String::as_bytes), TransportEnd::Clean, &[]);
    assert!(reading.notes.opaque_is_too_large && reading.reply.opaque.is_empty());
}
