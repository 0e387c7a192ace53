#![allow(clippy::unwrap_used, clippy::expect_used)]

use deftool_chat::{Api, ChatEvent, StreamDecoder, TransportEnd};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::secrets::mask;

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
    let body =
        ["my ", "hun", "te", "r2222", "!", " bye hunter", "2222"].map(delta).concat() + "data: [DONE]\n\n";
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
fn arguments_escapes_errors_and_complete_bodies_are_redacted() {
    let mask = mask(&["hunter2222"], &[r"\bpin-\d{4}\b"]);
    let call = |index: u64, arguments: &str, is_first: bool| {
        let function = if is_first {
            json!({"name": "f", "arguments": arguments})
        } else {
            json!({"arguments": arguments})
        };
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
    assert_eq!(calls[0]["arguments"]["value"], json!({"a": "[redacted-1]"}), "{calls:?}");
    assert_eq!(calls[1]["arguments"]["value"], json!({"b": "[redacted-2]"}), "{calls:?}");

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

    /// For any position of a secret, any split into deltas and any split into reads, no part of the secret is written,
    /// and the text around it is unchanged.
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
