//! Redacts secrets in the body of a reply. A model sends each token in a separate frame, so no single read contains a
//! complete secret. This module joins the texts of all frames, searches them, and rewrites the frames without the
//! secrets.
//!
//! The number of chunks and their times do not change. The mark of a secret is placed where the secret begins, and a
//! changed frame is placed in the chunk that completed it.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use deftool_chat::ARGUMENT_KEYS;
use serde_json::Value;

use super::mask::{Hit, Mask, replace};

/// A chunk of a body, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at_ms: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Names of members with text that continues in the next frame. The [`ARGUMENT_KEYS`] continue, too.
const CONTINUED: [&str; 10] = [
    "content",
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "summary",
    "text",
    "delta",
    "refusal",
    "partial_json",
];

/// Names of members with values that the protocol defines.
const PROTOCOL: [&str; 7] = ["role", "type", "object", "finish_reason", "stop_reason", "event", "status"];

/// Returns the chunks of one reply without secrets.
pub(crate) fn redact_reply(pieces: Vec<Piece>, mask: &Mask) -> Vec<Piece> {
    let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect();
    let mut edits = Vec::new();
    let frames = frames_of(&all);
    let mut at = 0;
    for range in frames.iter().map(|frame| &frame.range).chain([&(all.len()..all.len())]) {
        let between = all.get(at..range.start).unwrap_or_default();
        let hits = mask.find(between).into_iter();
        edits.extend(hits.map(|hit| (at + hit.range.start..at + hit.range.end, hit.mark.into_bytes())));
        at = range.end;
    }
    let in_frame = |text: &[u8]| mask.find_known(text);
    edits.extend(redact_frames(frames, &|text, _| mask.find(text.as_bytes()), &in_frame));
    edits.sort_by_key(|(range, _)| range.start);
    if edits.is_empty() { pieces } else { apply(&edits, &all, pieces) }
}

/// One JSON value of a body.
struct Frame {
    /// The position in the body.
    range: Range<usize>,
    value: Value,
}

/// Returns the JSON values after each `data:`. A body that is one JSON value is one frame.
fn frames_of(all: &[u8]) -> Vec<Frame> {
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice(all) {
        return vec![Frame { range: 0..all.len(), value }];
    }
    let mut frames = Vec::new();
    let mut start = 0;
    for line in all.split_inclusive(|byte| *byte == b'\n' || *byte == b'\r') {
        if let Some(data) = line.strip_prefix(b"data:")
            && let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice(data)
        {
            let leading = data.len() - data.trim_ascii_start().len();
            let begin = start + b"data:".len() + leading;
            frames.push(Frame { range: begin..begin + data.trim_ascii().len(), value });
        }
        start += line.len();
    }
    frames
}

/// A text that is split over frames.
#[derive(Default)]
struct Channel {
    /// The complete text.
    text: String,
    hits: Vec<Hit>,
    /// Bytes of the text in the frames before the current one, during the second pass.
    passed: usize,
}

/// Returns the texts that are split over frames, and the index of each by its name. Marks are numbered in this order.
fn channels_of(frames: &mut [Frame]) -> (HashMap<String, usize>, Vec<Channel>) {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut channels: Vec<Channel> = Vec::new();
    for frame in frames {
        each_text(&mut frame.value, &mut String::new(), "", &mut |channel, text| {
            if let Some(channel) = channel {
                let number = *numbers.entry(channel.to_owned()).or_insert(channels.len());
                if number == channels.len() {
                    channels.push(Channel::default());
                }
                if let Some(channel) = channels.get_mut(number) {
                    channel.text.push_str(text);
                }
            }
            false
        });
    }
    (numbers, channels)
}

/// Returns the frames that change. `find` returns the hits in a text; its flag is whether the text is split over
/// frames. `find_in_frame` returns the hits in the JSON text of a frame.
fn redact_frames(
    mut frames: Vec<Frame>,
    find: &dyn Fn(&str, bool) -> Vec<Hit>,
    find_in_frame: &dyn Fn(&[u8]) -> Vec<Hit>,
) -> Vec<(Range<usize>, Vec<u8>)> {
    let (numbers, mut channels) = channels_of(&mut frames);
    for channel in &mut channels {
        channel.hits = find(&channel.text, true);
    }
    let mut edits = Vec::new();
    for Frame { range, mut value } in frames {
        let changed = each_text(&mut value, &mut String::new(), "", &mut |channel, text| {
            let number = channel.and_then(|channel| numbers.get(channel));
            let channel = number.and_then(|number| channels.get_mut(*number));
            let hits = match channel {
                Some(channel) => channel.take(text.len()),
                None => find(text, false),
            };
            if hits.is_empty() {
                return false;
            }
            *text = String::from_utf8_lossy(&replace(text.as_bytes(), &hits)).into_owned();
            true
        });
        // Numbers and names are not visited above. Only known secrets are searched for in them.
        let changed = redact_numbers(&mut value, find_in_frame) || changed;
        let text = value.to_string().into_bytes();
        let hits = find_in_frame(&text);
        if changed || !hits.is_empty() {
            edits.push((range, replace(&text, &hits)));
        }
    }
    edits
}

impl Channel {
    /// Returns the hits in the next `length` bytes. The start of a hit is replaced with its mark, and the rest is
    /// removed.
    fn take(&mut self, length: usize) -> Vec<Hit> {
        let here = self.passed..self.passed + length;
        self.passed = here.end;
        // Binary search: there may be thousands of frames.
        let first = self.hits.partition_point(|hit| hit.range.end <= here.start);
        let hits = self.hits.iter().skip(first).take_while(|hit| hit.range.start < here.end);
        hits.map(|hit| {
            let begins_here = hit.range.start >= here.start;
            let start = hit.range.start.max(here.start) - here.start;
            let end = hit.range.end.min(here.end) - here.start;
            Hit { range: start..end, mark: if begins_here { hit.mark.clone() } else { String::new() } }
        })
        .collect()
    }
}

/// Visits every text of a frame with its channel. Returns whether a text was changed.
fn each_text(
    value: &mut Value,
    path: &mut String,
    key: &str,
    visit: &mut impl FnMut(Option<&str>, &mut String) -> bool,
) -> bool {
    match value {
        Value::String(text) => {
            if PROTOCOL.contains(&key)
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte))
            {
                return false;
            }
            let is_continued = CONTINUED.contains(&key) || ARGUMENT_KEYS.contains(&key);
            visit(is_continued.then_some(path.as_str()), text)
        }
        Value::Array(items) => {
            let mut changed = false;
            let length = path.len();
            for (index, item) in items.iter_mut().enumerate() {
                // Use the index of the server, if present: the position in the frame is not stable.
                let number = item.get("index").and_then(Value::as_u64).unwrap_or(index as u64);
                let _ = write!(path, "/{number}");
                changed |= each_text(item, path, key, visit);
                path.truncate(length);
            }
            changed
        }
        Value::Object(members) => {
            let length = path.len();
            // Members that distinguish the events of different texts.
            let identity: &[&str] = if path.is_empty() {
                &["type", "item_id", "output_index", "content_index", "index"]
            } else {
                &[]
            };
            for name in identity {
                if let Some(value) = members.get(*name) {
                    let _ = write!(path, "({value})");
                }
            }
            let inner = path.len();
            let mut changed = false;
            for (name, member) in members.iter_mut() {
                path.extend(["/", name]);
                changed |= each_text(member, path, name, visit);
                path.truncate(inner);
            }
            path.truncate(length);
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replaces numbers that contain a secret with strings, because a mark is not a number. Returns whether there are any.
fn redact_numbers(value: &mut Value, find: &dyn Fn(&[u8]) -> Vec<Hit>) -> bool {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            let hits = find(text.as_bytes());
            if !hits.is_empty() {
                let redacted = replace(text.as_bytes(), &hits);
                *value = Value::String(String::from_utf8_lossy(&redacted).into_owned());
            }
            !hits.is_empty()
        }
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= redact_numbers(item, find);
            }
            changed
        }
        Value::Object(members) => {
            let mut changed = false;
            for member in members.values_mut() {
                changed |= redact_numbers(member, find);
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Applies the edits and splits the result at the original chunk boundaries.
fn apply(edits: &[(Range<usize>, Vec<u8>)], all: &[u8], pieces: Vec<Piece>) -> Vec<Piece> {
    let mut ends = Vec::with_capacity(pieces.len());
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut end = 0;
    for piece in pieces {
        end += piece.bytes.len();
        ends.push(end);
        out.push(Piece { at_ms: piece.at_ms, bytes: Vec::new() });
    }
    let mut index = 0;
    let mut at = 0;
    let mut copy = |out: &mut Vec<Piece>, at: &mut usize, to: usize, write: Option<&[u8]>| {
        while *at < to {
            while ends.get(index).is_some_and(|end| *end <= *at) {
                index += 1;
            }
            let stop = ends.get(index).map_or(to, |end| (*end).min(to));
            if write.is_none()
                && let (Some(piece), Some(bytes)) = (out.get_mut(index), all.get(*at..stop))
            {
                piece.bytes.extend_from_slice(bytes);
            }
            *at = stop;
        }
        if let (Some(write), Some(piece)) = (write, out.get_mut(index)) {
            piece.bytes.extend_from_slice(write);
        }
    };
    for (range, written) in edits {
        copy(&mut out, &mut at, range.start, None);
        copy(&mut out, &mut at, range.end, Some(written));
    }
    copy(&mut out, &mut at, all.len(), None);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use deftool_chat::{Api, ChatEvent, StreamDecoder, TransportEnd};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::secrets::mask::mask;

    /// Splits `body` at these positions.
    fn pieces(body: &[u8], cuts: &[usize]) -> Vec<Piece> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let both = cuts.windows(2).enumerate();
        both.map(|(index, cut)| Piece { at_ms: index as u64, bytes: body[cut[0]..cut[1]].to_vec() }).collect()
    }

    fn joined(pieces: &[Piece]) -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.bytes.clone()).collect()
    }

    fn frame(value: &Value) -> String {
        format!("data: {value}\n\n")
    }

    fn delta(text: &str) -> String {
        frame(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
    }

    /// Decodes the text and the calls of a body.
    fn read(body: &[u8]) -> (String, Vec<Value>) {
        let mut decoder = StreamDecoder::new(Api::ChatCompletions, Vec::new());
        let mut events = Vec::new();
        decoder.feed(body, &mut events);
        decoder.finish(TransportEnd::Clean, &mut events);
        let mut text = String::new();
        let mut calls = Vec::new();
        for event in events {
            match event {
                ChatEvent::Text { text: piece } => text.push_str(&piece),
                ChatEvent::Ended { reply } => calls = reply.calls.iter().map(|call| json!(call)).collect(),
                _ => {}
            }
        }
        (text, calls)
    }

    #[test]
    fn a_secret_that_is_split_over_frames_is_removed_from_all_of_them() {
        let body = ["my ", "hun", "te", "r2222", "!", " bye hunter", "2222"].map(delta).concat()
            + "data: [DONE]\n\n";
        let mask = mask(&["hunter2222"], &[]);
        let out = redact_reply(pieces(body.as_bytes(), &[30, 90, 91, 200]), &mask);
        assert_eq!(out.len(), 5);
        assert_eq!(read(&joined(&out)).0, "my [redacted-1]! bye [redacted-1]");
        let text = String::from_utf8(joined(&out)).unwrap();
        for part in ["hun", "r2222"] {
            assert!(!text.contains(part), "{text}");
        }
        // A body without secrets is unchanged.
        let plain = pieces(b"data: {\"a\":  1.50}\n\ndata: [DONE]\n\n", &[3, 9]);
        assert_eq!(redact_reply(plain.clone(), &mask), plain);
    }

    #[test]
    fn a_frame_with_a_secret_in_a_number_stays_valid_json() {
        let mask = mask(&["17901234"], &[]);
        let body =
            frame(&json!({"created": 17_901_234, "choices": [{"index": 0, "delta": {"content": "hi"}}]}));
        let out = redact_reply(pieces(body.as_bytes(), &[10]), &mask);
        let text = String::from_utf8(joined(&out)).unwrap();
        assert!(text.contains(r#""created":"[redacted-1]""#), "{text}");
        assert_eq!(read(text.as_bytes()).0, "hi");
    }

    /// The deltas of two content blocks of the Messages API.
    #[test]
    fn a_secret_is_found_in_each_content_block() {
        let mask = mask(&["hunter2222"], &[]);
        for (kind, member) in
            [("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")]
        {
            let delta = |index: u32, text: &str| {
                frame(
                    &json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}}),
                )
            };
            let body =
                [delta(0, "a hunt"), delta(1, "b hun"), delta(0, "er2222."), delta(1, "ter2222.")].concat();
            let out =
                String::from_utf8(joined(&redact_reply(pieces(body.as_bytes(), &[30, 120]), &mask))).unwrap();
            let texts: String = frames_of(out.as_bytes())
                .iter()
                .filter_map(|frame| frame.value["delta"][member].as_str())
                .collect();
            assert_eq!(texts, "a [redacted-1]b [redacted-1]..", "{out}");
        }
    }

    #[test]
    fn arguments_escapes_errors_and_complete_bodies_are_redacted() {
        let mask = mask(&["hunter2222"], &[r"\bpin-\d{4}\b"]);
        for key in ARGUMENT_KEYS {
            let call = |index: u64, arguments: &str, is_first: bool| {
                let function =
                    if is_first { json!({"name": "f", key: arguments}) } else { json!({key: arguments}) };
                let mut call = json!({"index": index, "function": function});
                if is_first {
                    call["type"] = json!("function");
                    call["id"] = json!("abc");
                }
                frame(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
            };
            let body = [
                call(0, "{\"a\": \"hunt", true),
                call(1, "{\"b\": \"pin-1", true),
                call(0, "er2222\"}", false),
                call(1, "234\"}", false),
            ]
            .concat();
            let out = joined(&redact_reply(pieces(body.as_bytes(), &[]), &mask));
            let (_, calls) = read(&out);
            assert_eq!(calls[0]["arguments"]["value"], json!({"a": "[redacted-1]"}), "{key}: {calls:?}");
            assert_eq!(calls[1]["arguments"]["value"], json!({"b": "[redacted-2]"}), "{key}: {calls:?}");
        }

        for body in [
            "data: {\"choices\":[{\"delta\":{\"content\":\"h\\u0075nter2222\"}}]}\n\n",
            "{\"error\": {\"message\": \"hunter2222\"}}",
            "<html>hunter2222</html>",
            ": comment hunter2222\ndata: not json hunter2222\n",
            "data: {\"hunter2222\": 1}\n",
            "event: x\r\ndata:{\"type\":\"response.output_text.delta\",\"delta\":\"hunter2222\"}\r\n\r\n",
        ] {
            for cut in 0..body.len() {
                let out =
                    String::from_utf8(joined(&redact_reply(pieces(body.as_bytes(), &[cut]), &mask))).unwrap();
                assert!(out.contains("[redacted-1]") && !out.contains("nter2222"), "{body}: {out}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        /// For any position of a secret, any split into deltas and any split into reads, no part of the secret is
        /// written, and the text around it is unchanged.
        #[test]
        fn no_secret_is_written(
            words in prop::collection::vec("[ -~é]{0,12}", 1..6),
            spelling in prop::collection::vec(1_usize..7, 1..40),
            cuts in prop::collection::vec(any::<usize>(), 0..12),
            secret in r#"[A-Za-z0-9/+"\\%é]{8,20}"#,
        ) {
            let mask = mask(&[&secret], &[]);
            let said = words.join(&secret);
            prop_assume!(words.iter().all(|word| !word.contains("redacted")) && secret.trim() == secret);
            let mut body = String::new();
            let mut rest: &str = &said;
            for size in spelling.iter().cycle() {
                let end = rest.char_indices().nth(*size).map_or(rest.len(), |(end, _)| end);
                body.push_str(&delta(&rest[..end]));
                rest = &rest[end..];
                if rest.is_empty() {
                    break;
                }
            }
            body.push_str("data: [DONE]\n\n");
            let before = pieces(body.as_bytes(), &cuts);
            let after = redact_reply(before.clone(), &mask);
            prop_assert_eq!(after.len(), before.len());
            let out = joined(&after);
            let text = read(&out).0;
            prop_assert!(!text.contains(&secret), "{text}");
            prop_assert!(!String::from_utf8_lossy(&out).contains(&secret));
            prop_assert_eq!(text, mask.text(&said));
        }
    }
}
