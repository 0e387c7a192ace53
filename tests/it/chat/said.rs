//! What a reply says beside its text: what it was not, how far it is, what went wrong.

use deftool::chat::{Api, ChatEvent, End, ReplyStatus, ServerErrorKind, StreamDecoder};
use serde_json::json;

use super::read::{end, read_pieces};

#[test]
fn what_was_not_recognised_can_be_shown() {
    let page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let reading = read_pieces(page.chunks(5), End::Clean, &[]);
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
    let reading = read_pieces(long.as_bytes().chunks(999), End::Clean, &[]);
    assert_eq!(reading.notes.body_start.map(|start| start.len()), Some(2048));
}

#[test]
fn progress_usage_model_and_call_deltas() {
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
    decoder.finish(End::Clean, &mut events);
    let expected = json!([
        { "type": "text", "text": "the caller's own" },
        { "type": "progress", "processed": 4, "total": 9 },
        { "type": "tool_call_delta", "index": 0, "name": "f" },
        { "type": "ended", "reply": {
            "status": { "status": "complete" },
            "calls": [{ "id": "a", "name": "f", "arguments": { "parsed": "object", "value": {} } }],
            "lost_frames": 0,
            "finish_reason": "x",
            "usage": { "prompt_tokens": 9, "completion_tokens": 2 },
            "model": "m",
        } },
    ]);
    assert_eq!(json!(events), expected);
}

#[test]
fn errors_inside_a_stream_have_a_kind() {
    for (data, kind, code, message) in [
        (r#"data: {"error":{"code":500,"message":"boom"}}"#, ServerErrorKind::Server, Some(500), "boom"),
        (r#"data: {"error":"boom"}"#, ServerErrorKind::Server, None, "boom"),
        (
            r#"error: {"code":400,"message":"the request exceeds the available context size"}"#,
            ServerErrorKind::ContextOverflow,
            Some(400),
            "the request exceeds the available context size",
        ),
        ("event: error\ndata: it broke", ServerErrorKind::Server, None, "it broke"),
    ] {
        let body = format!("{data}\n\n");
        let reading = read_pieces(body.as_bytes().chunks(4), End::Clean, &[]);
        let ReplyStatus::ServerError { error } = reading.reply.status else { panic!("{data}") };
        assert_eq!((error.kind, error.code, error.message.as_str()), (kind, code, message), "{data}");
    }
}
