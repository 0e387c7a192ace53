//! Redaction of secrets other than the API key, and edge cases: secrets in the endpoint URL, several secrets at once,
//! the end of a body, and every kind of recording line that may contain a user secret.

use std::path::Path;
use std::sync::Arc;

use deftool_chat::Api;
use deftool_chat::request::{Approval, Event};
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_record::{Recorder, Redaction, Secrets};
use deftool_test_support::server::{Act, Answer, Server, delta, encode_events, event, finish as end};
use deftool_worker::{SubmitRequest, Worker};
use serde_json::{Value, json};

use super::ends::asking;
use super::harness::*;

/// Returns the text of a reply that echoes `said`, byte by byte, to a worker with this endpoint and key.
async fn echoed(endpoint: impl Fn(&str) -> String, key: Option<&str>, said: &str) -> String {
    let server = Server::script([Answer::text(said).byte_by_byte()]);
    let worker = Worker::start(config(), echo(), http(&endpoint(&server.endpoint()), key));
    ask(&worker).await.text().to_owned()
}

#[tokio::test]
async fn every_secret_of_an_endpoint_is_redacted_for_any_chunks() {
    let plain = |base: &str| base.to_owned();
    let user = |base: &str| base.replace("http://", "http://me:hunter2hunter2@");
    let signed = |base: &str| format!("{base}?sig=s1gnature-0123");
    let encoded = |base: &str| format!("{base}?api_key=left%2Fright");
    let two = |base: &str| format!("{base}?sig=ab-secret-2");
    for (name, text, redacted) in [
        ("a key of four bytes", echoed(plain, Some("k-42"), "it is k-42.").await, "it is [redacted]."),
        ("a shorter key is ignored", echoed(plain, Some("k-4"), "it is k-4.").await, "it is k-4."),
        ("a placeholder", echoed(plain, Some("None"), "None of it").await, "None of it"),
        ("a placeholder", echoed(plain, Some("OLLAMA"), "OLLAMA, ollama").await, "OLLAMA, ollama"),
        ("the password", echoed(user, None, "me:hunter2hunter2@").await, "me:[redacted]@"),
        ("a signature", echoed(signed, None, "sig=s1gnature-0123&").await, "sig=[redacted]&"),
        (
            "a value, encoded and decoded",
            echoed(encoded, None, "left%2Fright left/right").await,
            "[redacted] [redacted]",
        ),
        (
            "two secrets with a common prefix",
            echoed(two, Some("aab-secret-1"), "aab-secret-1 ab-secret-2 aab-secret-3").await,
            "[redacted] [redacted] aab-secret-3",
        ),
    ] {
        assert_eq!(text, redacted, "{name}");
    }
}

/// Many servers escape slashes in JSON.
#[tokio::test]
async fn a_key_with_escaped_slashes_is_redacted() {
    let escaped = event(&delta("it is key/with/slashes")).replace('/', "\\/");
    let server =
        Server::script([Answer::stream().piece(escaped).chunk(&end("stop")).done().end().byte_by_byte()]);
    let worker = Worker::start(config(), echo(), http(&server.endpoint(), Some("key/with/slashes")));
    assert_eq!(ask(&worker).await.text(), "it is [redacted]");
}

/// A possible prefix of the key is held back until the next read; at the end of a body it is text.
#[tokio::test]
async fn the_end_of_a_body_that_may_be_a_prefix_of_the_key_is_shown() {
    for answer in [
        Answer::whole(400, &[], "no such models"),
        Answer::head(400, &[]).piece("no such models").then(Act::Reset),
    ] {
        let server = Server::script([answer]);
        let worker = Worker::start(config(), echo(), http(&server.endpoint(), Some("sk-0123456789")));
        let ended = ask(&worker).await;
        let (.., detail, _) = ended.failed();
        assert!(detail.ends_with("HTTP 400: no such models"), "{detail}");
    }
}

/// Skipped items are named in a warning.
#[tokio::test]
async fn an_item_with_the_name_of_the_key_is_not_reported() {
    const KEY: &str = "abcdef0123456789";
    let item = json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": KEY}});
    let escaped = event(&item).replace("abcdef", "\\u0061bcdef");
    let fine = encode_events(Api::Responses, &[delta("fine"), end("stop")]);
    let answer = fine.iter().fold(Answer::stream().piece(escaped), Answer::chunk).end();
    let server = Server::script([answer]);
    let ended = ask(&Worker::start(over(Api::Responses), echo(), http(&server.endpoint(), Some(KEY)))).await;
    let events: Vec<String> = ended.events.iter().map(|event| json!(event).to_string()).collect();
    assert!(!events.concat().contains(KEY), "{events:?}");
    assert_eq!(ended.text(), "fine");
}

fn secrets(values: &[&str], patterns: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    for value in values {
        secrets.add_value(value);
    }
    for pattern in patterns {
        secrets.add_pattern(pattern).unwrap();
    }
    secrets
}

/// Submits a request that is recorded with `secrets` redacted.
fn submit(worker: &Worker, path: &Path, secrets: Secrets, prompt: &str) -> (Arc<Recorder>, String) {
    let recorder = Arc::new(Recorder::create(path, Redaction::new(None, secrets)).unwrap());
    let request = SubmitRequest { recorder: Some(recorder.clone()), ..SubmitRequest::prompt(prompt) };
    let id = worker.submit(request).unwrap();
    (recorder, id)
}

#[tokio::test]
async fn a_secret_is_found_in_every_form_and_removed_completely() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([Answer::text("fine")]);
    let worker = worker(&server, config());
    for (values, patterns, prompt, expected) in [
        (&["abc123"][..], &[][..], "x abc123 y", "x [redacted-1] y"),
        (&["abc12"], &[], "x abc12 y", "x abc12 y"),
        (&["  hunter22\n"], &[], "x hunter22 y", "x [redacted-1] y"),
        // A secret within another secret, and two overlapping secrets.
        (&["hunter2-and-more", "ter2-and"], &[], "x hunter2-and-more y", "x [redacted-1] y"),
        (&["one-two", "two-three"], &[], "x one-two-three y", "x [redacted-1] y"),
        // Base64 in both alphabets.
        (&["~~~???>>>"], &[], "fn5+Pz8/Pj4+ fn5-Pz8_Pj4-", "[redacted-1] [redacted-1]"),
        // An existing mark is not changed.
        (&[], &[r"pin=(\S+)"], "pin=[redacted-7] pin=4711", "pin=[redacted-7] pin=[redacted-1]"),
    ] {
        let (recorder, id) = submit(&worker, &path, secrets(values, patterns), prompt);
        finish(&worker, &id).await;
        recorder.close().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let session: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(session["conversation"][0]["content"], expected, "{values:?} {patterns:?}");
    }
}

/// Secrets in texts of tools, users and deftool.
#[tokio::test]
async fn no_line_of_a_recording_contains_a_user_secret() {
    const SECRET: &str = "hunter2-and-more";
    let folder = tempfile::tempdir().unwrap();
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": SECRET}}]});
    let failing = || {
        toolbox(FakeTools(|_: ToolCall, _| async {
            let details = Some(format!("scripts/look.lua:2: {SECRET}"));
            Err(ToolError { details, ..ToolError::new(ToolErrorKind::Script, format!("no {SECRET}")) })
        }))
    };
    let cases = [
        ("a tool's details", vec![Answer::calls(&[("look", "{}")])], failing(), "tool_finished"),
        (
            "a person's reason",
            vec![Answer::calls(&[("ask", "{}")]), Answer::text("fine")],
            asking(),
            "approval",
        ),
        ("a failure", vec![Answer::error(400, &[], &format!("bad {SECRET}"))], echo(), "stopped"),
        ("a broken reply", vec![Answer::stream().delta(SECRET).then(Act::Reset)], echo(), "finished"),
        ("reasoning", vec![Answer::chunks(&[reasoning, delta("fine"), end("stop")])], echo(), "finished"),
    ];
    for (name, answers, tools, line) in cases {
        let path = folder.path().join("r.jsonl");
        let server = Server::script(answers);
        let worker = Worker::start(config(), tools, http(&server.endpoint(), None));
        let (recorder, id) = submit(&worker, &path, secrets(&[SECRET], &[]), "hello");
        let mut events = worker.events(&id, 0).unwrap();
        while let Some(event) = events.next().await {
            if let Event::Approval { id: call, answer: None, .. } = &*event {
                let reason = format!("the password is {SECRET}");
                assert!(worker.approve(&id, call, Approval::Refused { reason }));
            }
        }
        finish(&worker, &id).await;
        recorder.close().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let recorded = format!("\"{line}\"");
        let has_mark = |row: &str| row.contains(&recorded) && row.contains("[redacted-1]");
        assert!(text.lines().any(has_mark), "{name}: {text}");
        assert!(!text.contains(SECRET), "{name}: {text}");
    }
}

/// A reply and the request after it contain arguments and results as text, and events contain their values.
#[tokio::test]
async fn a_pattern_with_the_name_of_a_member_is_found_in_texts_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([Answer::calls(&[("look", r#"{"at": "sesame"}"#)]), Answer::text("fine")]);
    let worker = worker(&server, config());
    let (recorder, id) = submit(&worker, &path, secrets(&[], &[r#""at": ?"(\w+)""#]), "hello");
    assert_eq!(finish(&worker, &id).await.text(), "fine");
    recorder.close().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sesame"), "{text}");
}

/// With user secrets, the chunks of a reply are buffered until its end. The session may end before.
#[tokio::test]
async fn a_recording_that_is_closed_within_a_reply_contains_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let worker = worker(&server, config());
    let (recorder, id) = submit(&worker, &path, secrets(&["hunter22"], &[]), "hello");
    wait_for_text(&worker, &id, 6).await;
    recorder.close().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("so far"), "{text}");
    worker.cancel(&id);
}
