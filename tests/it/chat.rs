//! Replies as servers really send them: `tests/wire/**`, read whole and in pieces.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use deftool::chat::{
    Api, ChatEvent, End, RawArguments, Reply, ReplyStatus, ServerErrorKind, StreamDecoder, StreamNotes,
    classify_http_error,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

/// The right reading of one case.
#[derive(Debug, Deserialize)]
struct Expected {
    #[serde(default = "yes")]
    transport_ok: bool,
    status: String,
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    /// `Some(Null)`: it must be absent. `None`: the case does not care.
    #[serde(default, deserialize_with = "present")]
    finish_reason: Option<Value>,
    /// The ids of the calls, where the case cares; so are the following.
    ids: Option<Value>,
    /// Tokens of prompt and reply.
    usage: Option<Value>,
    model: Option<String>,
    /// Kind and message of the server's error.
    error: Option<Value>,
    /// Kinds of items that are passed over; none, if the case does not say.
    #[serde(default)]
    foreign: Vec<String>,
}

fn yes() -> bool {
    true
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

struct Case {
    name: String,
    api: Api,
    body: Vec<u8>,
    expected: Expected,
}

/// What a decoder made of a body.
#[derive(Debug, PartialEq)]
struct Reading {
    text: String,
    reasoning: String,
    /// Text (`t`) and reasoning (`r`) in their order.
    order: String,
    reply: Reply,
    notes: StreamNotes,
}

fn wire() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")
}

/// Every file below `folder` whose name ends with `suffix`, without the suffix.
fn stems(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(stems(&path, suffix));
        } else if let Some(stem) = path.to_str().unwrap().strip_suffix(suffix) {
            found.push(PathBuf::from(stem));
        }
    }
    found.sort();
    found
}

fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", stem.display()))
}

fn cases() -> Vec<Case> {
    let root = wire();
    let read = |stem: PathBuf| {
        let body =
            fs::read(with_suffix(&stem, ".sse")).or_else(|_| fs::read(with_suffix(&stem, ".json"))).unwrap();
        let expected = fs::read(with_suffix(&stem, ".expect.json")).unwrap();
        let name = stem.strip_prefix(&root).unwrap().display().to_string();
        Case {
            api: if name.starts_with("responses") { Api::Responses } else { Api::ChatCompletions },
            body,
            expected: serde_json::from_slice(&expected).unwrap_or_else(|e| panic!("{name}: {e}")),
            name,
        }
    };
    stems(&root, ".expect.json").into_iter().map(read).collect()
}

fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>, end: End, tools: &[&str]) -> Reading {
    read_api(Api::ChatCompletions, pieces, end, tools)
}

fn read_api<'a>(api: Api, pieces: impl Iterator<Item = &'a [u8]>, end: End, tools: &[&str]) -> Reading {
    let mut decoder = StreamDecoder::new(api, tools.iter().map(|&name| name.to_owned()));
    let mut events = Vec::new();
    for piece in pieces {
        let from = events.len();
        decoder.feed(piece, &mut events);
        for pair in events[from..].windows(2) {
            assert!(!is_same_kind(&pair[0], &pair[1]), "two neighbours of one feed: {pair:?}");
        }
    }
    let notes = decoder.finish(end, &mut events);
    let Some(ChatEvent::Ended { reply }) = events.pop() else { panic!("the last event is `Ended`") };
    let mut reading =
        Reading { text: String::new(), reasoning: String::new(), order: String::new(), reply, notes };
    for event in events {
        match event {
            ChatEvent::Text { text } => {
                assert!(!text.is_empty());
                reading.text.push_str(&text);
                reading.order.push('t');
            }
            ChatEvent::Reasoning { text } => {
                assert!(!text.is_empty());
                reading.reasoning.push_str(&text);
                reading.order.push('r');
            }
            ChatEvent::ToolCallDelta { .. } | ChatEvent::Progress { .. } => {}
            ChatEvent::Ended { .. } => panic!("`Ended` comes once"),
        }
    }
    reading.order = reading.order.chars().fold(String::new(), |mut order, char| {
        if !order.ends_with(char) {
            order.push(char);
        }
        order
    });
    reading
}

fn is_same_kind(left: &ChatEvent, right: &ChatEvent) -> bool {
    matches!(
        (left, right),
        (ChatEvent::Text { .. }, ChatEvent::Text { .. })
            | (ChatEvent::Reasoning { .. }, ChatEvent::Reasoning { .. })
    )
}

fn end(transport_ok: bool) -> End {
    if transport_ok { End::Clean } else { End::Broken { error: String::from("connection reset") } }
}

fn status_name(status: &ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::Complete => "ok",
        ReplyStatus::CallTruncated => "error:tool_args_truncated",
        ReplyStatus::ServerError { .. } => "error:server",
        ReplyStatus::Incomplete { .. } => "error:incomplete",
        ReplyStatus::Empty => "error:empty_stream",
    }
}

fn assert_as_expected(case: &Case, reading: &Reading, how: &str) {
    let calls: Vec<Value> = reading
        .reply
        .calls
        .iter()
        .map(|call| {
            let arguments = match &call.arguments {
                RawArguments::Object { value } => Value::Object(value.clone()),
                RawArguments::Malformed { .. } => Value::Null,
            };
            json!({ "name": call.name, "args": arguments })
        })
        .collect();
    let (name, expected) = (&case.name, &case.expected);
    assert_eq!(status_name(&reading.reply.status), expected.status, "{name} {how}: {reading:?}");
    assert_eq!(reading.text, expected.text, "{name} {how}");
    assert_eq!(reading.reasoning, expected.reasoning, "{name} {how}");
    assert_eq!(calls, expected.calls, "{name} {how}");
    if let Some(reason) = &expected.finish_reason {
        assert_eq!(&json!(reading.reply.finish_reason), reason, "{name} {how}");
    }
    if let Some(ids) = &expected.ids {
        let found: Vec<_> = reading.reply.calls.iter().map(|call| &call.id).collect();
        assert_eq!(&json!(found), ids, "{name} {how}");
    }
    if let Some(usage) = &expected.usage {
        let found = reading.reply.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens));
        assert_eq!(&json!(found), usage, "{name} {how}");
    }
    if let Some(model) = &expected.model {
        assert_eq!(reading.reply.model.as_ref(), Some(model), "{name} {how}");
    }
    if let (Some(expected), ReplyStatus::ServerError { error }) = (&expected.error, &reading.reply.status) {
        assert_eq!(&json!([error.kind, error.message]), expected, "{name} {how}");
    }
    assert_eq!(reading.notes.foreign_items, expected.foreign, "{name} {how}");
}

#[test]
fn every_case_whole_and_in_pieces() {
    let cases = cases();
    let mut count_by_status = std::collections::BTreeMap::<&str, usize>::new();
    for case in &cases {
        *count_by_status.entry(&case.expected.status).or_default() += 1;
        // The names of the request's tools help, but no case needs them.
        for tools in [&["get_weather", "now"][..], &[]] {
            for step in [usize::MAX, 7, 3, 1] {
                let pieces = case.body.chunks(step.min(case.body.len().max(1)));
                let reading = read_api(case.api, pieces, end(case.expected.transport_ok), tools);
                assert_as_expected(case, &reading, &format!("in steps of {step} with {tools:?}"));
            }
        }
    }
    assert!(cases.len() >= 290, "only {} cases were found", cases.len());
    for (status, at_least) in [
        ("ok", 210),
        ("error:tool_args_truncated", 7),
        ("error:server", 15),
        ("error:incomplete", 7),
        ("error:empty_stream", 7),
    ] {
        let count = count_by_status.get(status).copied().unwrap_or(0);
        assert!(count >= at_least, "{status}: {count}");
    }
}

#[test]
fn small_cases_at_every_split_in_two() {
    for case in cases().iter().filter(|case| case.body.len() < 1000) {
        for at in 0..=case.body.len() {
            let (head, tail) = case.body.split_at(at);
            let reading = read_api(case.api, [head, tail].into_iter(), end(case.expected.transport_ok), &[]);
            assert_as_expected(case, &reading, &format!("split at {at}"));
        }
    }
}

#[test]
fn a_stream_cut_anywhere_never_claims_more_than_it_holds() {
    for case in cases().iter().filter(|case| case.body.len() < 2000 && case.expected.status == "ok") {
        // The events of a response are long.
        let step = if case.api == Api::Responses { 5 } else { 1 };
        for at in (0..case.body.len()).step_by(step) {
            let reading = read_api(case.api, [&case.body[..at]].into_iter(), end(false), &[]);
            assert!(case.expected.text.starts_with(&reading.text), "{} cut at {at}", case.name);
            if reading.reply.status == ReplyStatus::Complete {
                assert_eq!(reading.text, case.expected.text, "{} cut at {at}", case.name);
                assert_eq!(reading.reply.calls.len(), case.expected.calls.len(), "{} cut at {at}", case.name);
            }
        }
    }
}

#[test]
fn a_line_of_two_megabytes() {
    let arguments = json!({ "s": "x".repeat(2_000_000) }).to_string();
    let call =
        json!({ "index": 0, "id": "c1", "function": { "name": "get_weather", "arguments": arguments } });
    let chunk =
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null }] });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let body = format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    for step in [body.len(), 16 * 1024, 7] {
        let reading = read_pieces(body.as_bytes().chunks(step), End::Clean, &[]);
        assert_eq!(reading.reply.status, ReplyStatus::Complete);
        let RawArguments::Object { value } = &reading.reply.calls[0].arguments else { panic!("an object") };
        assert_eq!(value["s"].as_str().map(str::len), Some(2_000_000));
    }
}

#[test]
fn a_line_above_the_cap_is_an_error_that_says_so() {
    let megabyte = vec![b'x'; 1024 * 1024];
    for (start, expected_text) in [(&b"data: "[..], ""), (b"{\"a\":\"", ""), (TEXT_THEN_DATA, "hi")] {
        let pieces = std::iter::once(start).chain(std::iter::repeat_n(&megabyte[..], 33));
        let reading = read_pieces(pieces, End::Clean, &[]);
        let ReplyStatus::ServerError { error } = &reading.reply.status else {
            panic!("{:?}", reading.reply.status)
        };
        assert!(error.message.contains("above 33554432 bytes"), "{}", error.message);
        assert_eq!(reading.text, expected_text);
    }
}

const TEXT_THEN_DATA: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: ";

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
            "finish_reason": "x",
            "usage": { "prompt_tokens": 9, "completion_tokens": 2 },
            "model": "m",
        } },
    ]);
    assert_eq!(json!(events), expected);
}

#[test]
fn recorded_http_errors() {
    let root = wire();
    let mut count = 0;
    for stem in stems(&root, ".head") {
        let name = stem.strip_prefix(&root).unwrap().display().to_string();
        let head = fs::read_to_string(with_suffix(&stem, ".head")).unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let error = classify_http_error(status, &fs::read(with_suffix(&stem, ".json")).unwrap());
        let expected = match status {
            401 => ServerErrorKind::Unauthorized,
            503 => ServerErrorKind::Unavailable,
            400 if name.contains("ctx_overflow") => ServerErrorKind::ContextOverflow,
            _ => ServerErrorKind::Http,
        };
        assert_eq!((error.kind, error.code), (expected, Some(status)), "{name}: {error:?}");
        assert!(!error.message.is_empty() && !error.message.starts_with('{'), "{name}: {error:?}");
        count += 1;
    }
    assert!(count >= 18, "only {count} were found");
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

/// Any sequence of pieces that `cuts` makes of `body`.
fn cut<'a>(body: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> + 'a {
    let mut cuts: Vec<usize> = cuts.iter().map(|at| at % (body.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(body.len());
    let mut from = 0;
    cuts.into_iter().map(move |to| &body[std::mem::replace(&mut from, to)..to])
}

fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n")
}

fn server_error(reading: &Reading) -> &str {
    match &reading.reply.status {
        ReplyStatus::ServerError { error } => &error.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn endless_blanks_cost_neither_time_nor_the_reply() {
    let started = std::time::Instant::now();
    let blanks = b" \r\n\t".repeat(2_000_000);
    let chunk = delta(r#"{"content":"a"}"#);
    for mark in ["", "\u{feff}"] {
        let pieces = [mark.as_bytes()].into_iter().chain(blanks.chunks(100));
        let reading = read_pieces(pieces.clone().chain([&b"\n"[..], chunk.as_bytes()]), End::Clean, &[]);
        assert_eq!(reading.text, "a");
        let whole = r#"{"choices":[{"message":{"content":"b"}}]}"#;
        assert_eq!(read_pieces(pieces.clone().chain([whole.as_bytes()]), End::Clean, &[]).text, "b");
        // A blank before a field makes it another field.
        assert_eq!(read_pieces(pieces.chain([chunk.as_bytes()]), End::Clean, &[]).text, "");
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_reply_of_too_many_calls_ends_there() {
    let call =
        |n: usize| format!(r#"{{"index":{n},"id":"c{n}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let calls = |count: usize| (0..count).map(call).collect::<Vec<_>>().join(",");
    let text = delta(r#"{"content":"a"}"#);
    let tail = format!("{}data: [DONE]\n\n", delta(r#"{"content":"b"}"#));
    let read = |calls: &str| {
        let body = format!("{text}{}{tail}", delta(&format!(r#"{{"tool_calls":[{calls}]}}"#)));
        read_pieces([body.as_bytes()].into_iter(), End::Clean, &["f"])
    };
    let whole = read(&calls(1_000));
    assert_eq!(
        (whole.reply.status, whole.reply.calls.len(), whole.text.as_str()),
        (ReplyStatus::Complete, 1_000, "ab")
    );
    let started = std::time::Instant::now();
    let many = read(&calls(40_000));
    assert_eq!(server_error(&many), "the reply makes more than 1000 tool calls; what followed was not read");
    assert_eq!((many.reply.calls.len(), many.text.as_str()), (1_000, "a"));
    // One call that holds many.
    let glued = read(&format!(
        r#"{{"function":{{"name":"f","arguments":"{}"}}}}"#,
        (0..40_000).map(|n| format!(r#"{{\"a\":{n}}}"#)).collect::<Vec<_>>().concat()
    ));
    assert_eq!(server_error(&glued), "the reply makes more than 1000 tool calls; what followed was not read");
    assert_eq!(glued.reply.calls.len(), 1_000);
    // As many calls as may be, each in many pieces, and a name without an end.
    let pieces: Vec<String> =
        (0..200_000).map(|n| format!(r#",{{"index":{},"id":"x"}}"#, n % 1_000)).collect();
    assert_eq!(read(&format!("{}{}", calls(1_000), pieces.concat())).reply.calls.len(), 1_000);
    let name: Vec<String> = (0..200_000).map(|n| format!(r#"{{"function":{{"name":"{n}x"}}}}"#)).collect();
    assert!(read(&name.join(",")).reply.calls.len() <= 1_000);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_reply_that_is_too_long_ends_there() {
    let piece = delta(&format!(r#"{{"content":"{}","reasoning":"r"}}"#, "a".repeat(1 << 20)));
    let arguments =
        format!(r#"{{"tool_calls":{{"function":{{"name":"f","arguments":"{}"}}}}}}"#, "1".repeat(1 << 20));
    let arguments = delta(&arguments);
    let last = delta(r#"{"content":"b"}"#);
    let times = |piece: &str, count| std::iter::repeat_n(piece.to_owned(), count).collect::<Vec<_>>();
    for (pieces, kept) in [(times(&piece, 80), 63), (times(&arguments, 80), 0)] {
        let pieces = pieces.iter().chain([&last]).map(String::as_bytes);
        let reading = read_pieces(pieces, End::Clean, &["f"]);
        assert_eq!(server_error(&reading), "the reply is longer than 64 MiB; what followed was not read");
        assert_eq!((reading.text.len(), reading.reasoning.len()), (kept << 20, kept));
    }
}

/// An event of a response's stream.
fn event(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn read_response(events: &[String]) -> Reading {
    read_api(Api::Responses, events.iter().map(String::as_bytes), End::Clean, &["f"])
}

fn function_call(number: usize, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"), "name": "f",
           "arguments": arguments})
}

#[test]
fn a_response_of_too_much_ends_there() {
    let started = std::time::Instant::now();
    let text = event(&json!({"type": "response.output_text.delta", "item_id": "m", "delta": "a"}));
    let last = event(&json!({"type": "response.output_text.delta", "item_id": "m", "delta": "b"}));
    let read = |events: Vec<String>| {
        let all: Vec<String> = [text.clone()].into_iter().chain(events).chain([last.clone()]).collect();
        read_response(&all)
    };
    let too_many = "the reply makes more than 1000 tool calls; what followed was not read";
    let done = |n| event(&json!({"type": "response.output_item.done", "item": function_call(n, "{}")}));
    let grown = |n| {
        event(&json!({"type": "response.function_call_arguments.delta", "output_index": n, "delta": "{}"}))
    };
    // As many as may be, each told again and again.
    let whole = read((0..20_000).map(|n| done(n % 1_000)).collect());
    assert_eq!((whole.reply.status, whole.reply.calls.len()), (ReplyStatus::Complete, 1_000));
    for many in [(0..40_000).map(done).collect::<Vec<_>>(), (0..40_000).map(grown).collect()] {
        let many = read(many);
        assert_eq!((server_error(&many), many.text.as_str()), (too_many, "a"));
        assert_eq!(many.reply.calls.len(), 1_000);
    }
    // In the last event, and glued in one call.
    let all: Vec<Value> = (0..40_000).map(|n| function_call(n, "{}")).collect();
    let end = |output: &[Value]| {
        event(&json!({"type": "response.completed", "response": {"status": "completed", "output": output}}))
    };
    let objects: Vec<String> = (0..40_000).map(|n| format!(r#"{{"a":{n}}}"#)).collect();
    let glued = function_call(0, &objects.concat());
    for output in [&all[..], &[glued]] {
        let many = read(vec![end(output)]);
        assert_eq!((server_error(&many), many.reply.calls.len()), (too_many, 1_000));
    }
    // Messages and reasoning without an end, each of an id and an index of its own.
    for kind in ["message", "reasoning"] {
        let added = |n: usize| {
            let item = json!({"type": kind, "id": format!("i{n}")});
            event(&json!({"type": "response.output_item.added", "output_index": n, "item": item}))
        };
        let many = read((0..40_000).map(added).collect());
        assert!(server_error(&many).contains("more than 1000 items"), "{many:?}");
    }
    // Items that nobody reads cost nothing and are told a few times.
    let foreign = |n: usize| {
        event(&json!({"type": "response.output_item.done", "item": {"type": format!("kind_{n}"), "id": "x"}}))
    };
    let many = read((0..40_000).map(foreign).collect());
    assert_eq!((many.text.as_str(), many.notes.foreign_items.len()), ("ab", 8));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn a_response_that_is_too_long_ends_there() {
    let mib = "x".repeat(1 << 20);
    let of = |kind: &str| event(&json!({"type": kind, "item_id": "i", "output_index": 0, "delta": mib}));
    let whole = |n: usize| {
        let arguments = format!("\"{}\"", mib.repeat(4));
        event(&json!({"type": "response.output_item.done", "item": function_call(n, &arguments)}))
    };
    let cases = [
        (vec![of("response.output_text.delta"); 66], 64 << 20),
        (vec![of("response.function_call_arguments.delta"); 66], 0),
        ((0..17).map(whole).collect(), 0),
    ];
    for (events, text) in cases {
        let reading = read_response(&events);
        assert_eq!(server_error(&reading), "the reply is longer than 64 MiB; what followed was not read");
        assert_eq!(reading.text.len(), text);
    }
    // What is told twice is counted once.
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

fn bodies() -> Vec<(Api, Vec<u8>)> {
    cases().into_iter().map(|case| (case.api, case.body)).collect()
}

proptest! {
    // The cases are whole streams; more of them is a matter of `PROPTEST_CASES`.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_reading(
        case in prop::sample::select(bodies()),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        is_clean in any::<bool>(),
    ) {
        let (api, case) = case;
        let whole = read_api(api, [&case[..]].into_iter(), end(is_clean), &["get_weather"]);
        let pieces = read_api(api, cut(&case, &cuts), end(is_clean), &["get_weather"]);
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn a_damaged_stream_never_panics_and_splits_alike(
        case in prop::sample::select(bodies()),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let (api, mut body) = case;
        for (at, byte) in damage {
            let len = body.len().max(1);
            if let Some(target) = body.get_mut(at % len) {
                *target = byte;
            }
        }
        let whole = read_api(api, [&body[..]].into_iter(), End::Clean, &[]);
        prop_assert_eq!(whole, read_api(api, cut(&body, &cuts), End::Clean, &[]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        body in prop::collection::vec(any::<u8>(), 0..300),
        prefix in prop::sample::select(vec!["", "data: ", "{", "[", "data: {\"choices\":[{\"delta\":", "\u{feff}"]),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        api in prop::sample::select(vec![Api::ChatCompletions, Api::Responses]),
    ) {
        let body = [prefix.as_bytes(), &body].concat();
        let whole = read_api(api, [&body[..]].into_iter(), End::Clean, &[]);
        prop_assert_eq!(whole, read_api(api, cut(&body, &cuts), End::Clean, &[]));
        let _ = classify_http_error(500, &body);
    }

    #[test]
    fn events_of_any_shape_never_panic(
        values in prop::collection::vec((prop::sample::select(EVENTS.to_vec()), odd_json(), odd_json()), 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let frame = |(kind, value, other): &(&str, Value, Value)| {
            let mut members = json!({
                "type": kind, "item_id": other, "output_index": other, "content_index": other, "delta": value,
                "text": value, "arguments": value, "part": value, "item": value, "response": {"output": [value, other]},
            });
            if let (Some(members), Value::Object(more)) = (members.as_object_mut(), value) {
                members.extend(more.clone());
            }
            event(&members)
        };
        let body = values.iter().map(frame).collect::<Vec<_>>().concat();
        let whole = read_api(Api::Responses, [body.as_bytes()].into_iter(), End::Clean, &["f"]);
        prop_assert_eq!(whole.notes.skipped_frames, 0);
        prop_assert_eq!(whole, read_api(Api::Responses, cut(body.as_bytes(), &cuts), End::Clean, &["f"]));
    }

    #[test]
    fn deltas_of_any_shape_never_panic(
        values in prop::collection::vec(odd_json(), 1..6),
    ) {
        let frame = |value: &Value| {
            format!("data: {{\"choices\":[{{\"delta\":{value},\"finish_reason\":{value}}}]}}\n\ndata: {value}\n\n")
        };
        let body: Vec<String> = values.iter().map(frame).collect();
        let body = body.concat();
        let reading = read_pieces([body.as_bytes()].into_iter(), End::Clean, &["f"]);
        prop_assert_eq!(reading.notes.skipped_frames, 0);
    }
}

const EVENTS: [&str; 14] = [
    "",
    "error",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
];

/// JSON made of the names that the decoder knows, with values of any type.
fn odd_json() -> impl Strategy<Value = Value> {
    let names = vec![
        "choices",
        "delta",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "index",
        "id",
        "error",
        "usage",
        "type",
        "text",
        "thinking",
        "reasoning",
        "function_call",
        "finish_reason",
        "message",
        "prompt_tokens",
        "call_id",
        "output",
        "status",
        "summary",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "f",
            "{\"a\":1}",
            "{",
            "\"{}\"",
            "é\u{2028}",
            "thinking",
            "stop",
            "message",
            "function_call",
            "reasoning",
            "incomplete"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(names.clone()), inner), 0..5).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}
