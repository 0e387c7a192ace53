//! Decoding of a body, and the expected result of each case.

use std::fs;
use std::path::{Path, PathBuf};

use deftool_chat::{
    Api, ChatEvent, RawArguments, Reply, ReplyStatus, StreamDecoder, StreamNotes, TransportEnd,
};
use deftool_test_support::markdown::{Block, blocks};
use serde::Deserialize;
use serde_json::{Value, json};

/// The expected result of one case.
#[derive(Debug, Deserialize)]
pub(super) struct Expected {
    #[serde(default = "yes")]
    pub(super) transport_ok: bool,
    #[serde(default = "ok")]
    pub(super) status: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) reasoning: String,
    #[serde(default)]
    pub(super) calls: Vec<Value>,
    /// `Some(Null)`: must be absent. `None`: not checked.
    #[serde(default, deserialize_with = "present")]
    pub(super) finish_reason: Option<Value>,
    /// The ids of the calls. `None` in this and the following fields: not checked.
    pub(super) ids: Option<Value>,
    /// Tokens of prompt and reply, optionally cached and reasoning tokens.
    pub(super) usage: Option<Value>,
    pub(super) model: Option<String>,
    /// Kind and message of the server's error.
    pub(super) error: Option<Value>,
    /// Number of events that could not be decoded and may have contained a part of the reply.
    #[serde(default)]
    pub(super) lost: usize,
    /// Number of repeated calls.
    #[serde(default)]
    pub(super) repeated: usize,
    /// Kinds of the items that are skipped.
    #[serde(default)]
    pub(super) foreign: Vec<String>,
    /// The content blocks that the next request contains.
    pub(super) blocks: Option<Value>,
}

fn yes() -> bool {
    true
}

fn ok() -> String {
    String::from("ok")
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

pub(super) struct Case {
    pub(super) name: String,
    pub(super) api: Api,
    pub(super) body: Vec<u8>,
    pub(super) expected: Expected,
}

/// The output of a decoder for one body.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) text: String,
    pub(super) reasoning: String,
    /// Order of text (`t`) and reasoning (`r`).
    pub(super) order: String,
    pub(super) reply: Reply,
    pub(super) notes: StreamNotes,
}

pub(super) fn wire() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")
}

/// Returns every file below `folder` whose name ends with `suffix`, without the suffix.
pub(super) fn stems(folder: &Path, suffix: &str) -> Vec<PathBuf> {
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

pub(super) fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", stem.display()))
}

impl Case {
    fn new(name: String, body: Vec<u8>, expected: &[u8]) -> Self {
        Self {
            api: match name.split('/').next() {
                Some("responses") => Api::Responses,
                Some("messages") => Api::Messages,
                _ => Api::ChatCompletions,
            },
            body,
            expected: serde_json::from_slice(expected).unwrap_or_else(|e| panic!("{name}: {e}")),
            name,
        }
    }
}

/// Returns the cases of files and those of pages.
pub(super) fn cases() -> Vec<Case> {
    let root = wire();
    let read = |stem: PathBuf| {
        let body =
            fs::read(with_suffix(&stem, ".sse")).or_else(|_| fs::read(with_suffix(&stem, ".json"))).unwrap();
        let expected = fs::read(with_suffix(&stem, ".expect.json")).unwrap();
        Case::new(stem.strip_prefix(&root).unwrap().display().to_string(), body, &expected)
    };
    let files = stems(&root, ".expect.json").into_iter().map(read);
    files.chain(["made", "messages", "responses", "synthetic"].into_iter().flat_map(page_cases)).collect()
}

/// Returns the cases of a page: each is a section with the body and the expected result. The body in a `json` block has
/// no final line end.
fn page_cases(page: &str) -> Vec<Case> {
    let text = fs::read_to_string(wire().join(page).with_extension("md")).unwrap();
    let case = |blocks: &[Block<'_>]| {
        let [body, expected] = blocks else { panic!("{page}: {blocks:?}") };
        assert_eq!(expected.info, "json expect", "{page}/{}", body.section);
        let text = if body.info == "sse" { body.text } else { body.text.trim_end_matches('\n') };
        Case::new(format!("{page}/{}", body.section), text.into(), expected.text.as_bytes())
    };
    blocks(&text).chunk_by(|one, next| one.section == next.section).map(case).collect()
}

pub(super) fn read_pieces<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    end: TransportEnd,
    tools: &[&str],
) -> Reading {
    read_api(Api::ChatCompletions, pieces, end, tools)
}

pub(super) fn read_api<'a>(
    api: Api,
    pieces: impl Iterator<Item = &'a [u8]>,
    end: TransportEnd,
    tools: &[&str],
) -> Reading {
    let mut decoder = StreamDecoder::new(api, tools.iter().map(|&name| name.to_owned()));
    let mut events = Vec::new();
    for piece in pieces {
        let from = events.len();
        decoder.feed(piece, &mut events);
        for pair in events[from..].windows(2) {
            assert!(!is_same_kind(&pair[0], &pair[1]), "adjacent events of one kind in one read: {pair:?}");
        }
    }
    let notes = decoder.finish(end, &mut events);
    let Some(ChatEvent::Ended { reply }) = events.pop() else { panic!("expected `Ended` as the last event") };
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
            ChatEvent::Ended { .. } => panic!("`Ended` was emitted twice"),
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

pub(super) fn end(transport_ok: bool) -> TransportEnd {
    if transport_ok {
        TransportEnd::Clean
    } else {
        TransportEnd::Broken { error: String::from("connection reset") }
    }
}

fn status_name(status: &ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::Complete => "ok",
        ReplyStatus::CallTruncated { .. } => "error:tool_args_truncated",
        ReplyStatus::ServerError { .. } => "error:server",
        ReplyStatus::Incomplete { .. } => "error:incomplete",
        ReplyStatus::Empty => "error:empty_stream",
    }
}

pub(super) fn assert_as_expected(case: &Case, reading: &Reading, how: &str) {
    let calls: Vec<Value> = reading
        .reply
        .calls
        .iter()
        .map(|call| {
            let arguments = match &call.arguments {
                RawArguments::Object { value } => value.to_value(),
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
        let counts = reading.reply.usage.map(|usage| {
            let details = [usage.cached_tokens, usage.reasoning_tokens];
            json!([usage.prompt_tokens, usage.completion_tokens, details[0], details[1]])
        });
        let length = usage.as_array().map_or(0, Vec::len);
        let found = counts.as_ref().and_then(Value::as_array).and_then(|counts| counts.get(..length));
        assert_eq!(&json!(found), usage, "{name} {how}");
    }
    if let Some(model) = &expected.model {
        assert_eq!(reading.reply.model.as_ref(), Some(model), "{name} {how}");
    }
    if let (Some(expected), ReplyStatus::ServerError { error }) = (&expected.error, &reading.reply.status) {
        assert_eq!(&json!([error.kind, error.message]), expected, "{name} {how}");
    }
    if let Some(blocks) = &expected.blocks {
        assert_eq!(&json!(reading.reply.opaque.items), blocks, "{name} {how}");
    }
    assert_eq!(reading.notes.foreign_items, expected.foreign, "{name} {how}");
    assert_eq!(reading.reply.lost_frames, expected.lost, "{name} {how}");
    assert_eq!(reading.notes.repeated_calls, expected.repeated, "{name} {how}");
}

pub(super) fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n")
}

pub(super) fn server_error(reading: &Reading) -> &str {
    match &reading.reply.status {
        ReplyStatus::ServerError { error } => &error.message,
        other => panic!("{other:?}"),
    }
}

/// An event of a response stream.
pub(super) fn event(event: &Value) -> String {
    format!("data: {event}\n\n")
}
