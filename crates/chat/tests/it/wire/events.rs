//! Events other than text and calls: unrecognised bodies, progress, token counts, errors.

use deftool_chat::{Api, ChatEvent, ReplyStatus, ServerErrorKind, StreamDecoder, TransportEnd};
use serde_json::json;

use super::read::{end, read_pieces};

#[test]
fn the_start_of_an_unrecognised_body_is_kept() {
    let page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let reading = read_pieces(page.chunks(5), TransportEnd::Clean, &[]);
    assert_eq!(reading.reply.status, ReplyStatus::Empty);
    assert_eq!(reading.notes.body_start.as_deref(), Some("502 Bad Gateway"));

    let reading = read_pieces(b"upstream \x1b[31mtimed out".chunks(5), end(false), &[]);
    assert_eq!(
        reading.reply.status,
        ReplyStatus::Incomplete { cause: reading.notes.transport_error.clone() }
    );
    assert_eq!(reading.notes.body_start.as_deref(), Some("upstream \u{fffd}[31mtimed out"));
    assert_eq!(reading.notes.transport_error.as_deref(), Some("connection reset"));

    let long = "x".repeat(10_000);
    let reading = read_pieces(long.as_bytes().chunks(999), TransportEnd::Clean, &[]);
    assert_eq!(reading.notes.body_start.map(|start| start.len()), Some(2048));
}

#[test]
fn progress_usage_model_and_call_deltas_are_reported() {
    let body = concat!(
        r#"data: {"choices":[],"model":"m","prompt_progress":{"total":9,"cache":0,"processed":4}}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"x"}]}"#,
        "\n\n",
        r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#,
        "\n\n",
    );
    let mut decoder = StreamDecoder::new(Api::ChatCompletions, []);
    let mut events = vec![ChatEvent::Text { text: String::from("the caller's own") }];
    decoder.feed(body.as_bytes(), &mut events);
    decoder.finish(TransportEnd::Clean, &mut events);
    let expected = json!([
        { "type": "text", "text": "the caller's own" },
        { "type": "progress", "processed": 4, "total": 9 },
        { "type": "tool_call_delta", "index": 0, "name": "f", "size": 2 },
        { "type": "ended", "reply": {
            "status": { "status": "complete" },
            "calls": [{ "index": 0, "id": "a", "name": "f", "arguments": { "parsed": "object", "value": {} } }],
            "lost_frames": 0,
            "finish_reason": "x",
            "usage": { "prompt_tokens": 9, "completion_tokens": 2 },
            "model": "m",
        } },
    ]);
    assert_eq!(json!(events), expected);
}

#[test]
fn the_deltas_of_a_call_contain_the_size_of_its_arguments() {
    let messages = [
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1"}}"#,
    ];
    let responses = [
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"i","delta":"{\"a\":"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"i","delta":"1"}"#,
    ];
    for (api, lines) in [(Api::Messages, messages), (Api::Responses, responses)] {
        let mut decoder = StreamDecoder::new(api, [String::from("f")]);
        let mut sizes = Vec::new();
        for line in lines {
            let mut events = Vec::new();
            decoder.feed(format!("data: {line}\n\n").as_bytes(), &mut events);
            sizes.extend(events.iter().filter_map(|event| match event {
                ChatEvent::ToolCallDelta { name, size, .. } if name == "f" => Some(*size),
                _ => None,
            }));
        }
        assert_eq!(sizes, [0, 5, 6], "{api:?}");
    }
}

#[test]
fn errors_inside_a_stream_are_classified() {
    for (data, kind, code, message) in [
        (r#"data: {"error":{"code":500,"message":"boom"}}"#, ServerErrorKind::Temporary, Some(500), "boom"),
        (r#"data: {"error":"boom"}"#, ServerErrorKind::Server, None, "boom"),
        (
            r#"error: {"code":400,"message":"the request exceeds the available context size"}"#,
            ServerErrorKind::ContextOverflow,
            Some(400),
            "the request exceeds the available context size",
        ),
        ("event: error\ndata: it broke", ServerErrorKind::Server, None, "it broke"),
        // Later errors are consequences.
        ("data: {\"error\":\"boom\"}\n\ndata: {\"error\":\"late\"}", ServerErrorKind::Server, None, "boom"),
    ] {
        let body = format!("{data}\n\n");
        let reading = read_pieces(body.as_bytes().chunks(4), TransportEnd::Clean, &[]);
        let ReplyStatus::ServerError { error } = reading.reply.status else { panic!("{data}") };
        assert_eq!((error.kind, error.code, error.message.as_str()), (kind, code, message), "{data}");
    }
}

#[test]
fn a_complete_message_needs_no_end_marker() {
    let message = r#"{"choices":[{"message":{"content":"a"}}]}"#;
    let chunk = r#"{"choices":[{"delta":{"content":"b"}}]}"#;
    let cut = ReplyStatus::Incomplete { cause: None };
    for (body, text, status) in [
        (message.to_owned(), "a", ReplyStatus::Complete),
        (format!("{message}\n{chunk}"), "ab", ReplyStatus::Complete),
        (chunk.to_owned(), "b", cut),
    ] {
        let reading = read_pieces(body.as_bytes().chunks(9), TransportEnd::Clean, &[]);
        assert_eq!((reading.text.as_str(), reading.reply.status), (text, status), "{body}");
    }
}
