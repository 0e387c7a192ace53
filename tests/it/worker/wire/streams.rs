//! Replies: bodies that are none, streams that end too soon or never, and how their bytes are cut.

use std::fmt::Write;
use std::time::{Duration, Instant};

use deftool::request::{FailReason, FinishReason};
use deftool::worker::Worker;
use serde_json::json;

use super::super::bench::*;
use super::super::scripted::{Piece, Reply, Scripted};
use super::{fails, gives, play_all};
use crate::support::server::{Act, Answer, Server, call, delta, event, finish, usage};

/// An error at HTTP 200, as Anthropic's API and the Responses API write it, with `error` around its message or without.
#[tokio::test]
async fn an_error_in_band_is_an_error_of_the_server() {
    const SAID: &str = "the model is on fire";
    let wrapped = json!({"type": "error", "error": {"type": "api_error", "message": SAID}}).to_string();
    let flat = json!({"type": "error", "code": "server_error", "message": SAID, "param": null}).to_string();
    let mut cases = Vec::new();
    for body in [wrapped, flat] {
        let frame = format!("data: {body}\n\n");
        let named = format!("event: error\ndata: {body}\n\n");
        let so_far = || Answer::stream().delta("so far");
        cases.extend([
            fails("a body", [Answer::whole(200, &[], &body)], "server_error", &[SAID]),
            fails("a frame", [Answer::stream().piece(&frame).end()], "server_error", &[SAID]),
            fails("a named frame", [Answer::stream().piece(&named).end()], "server_error", &[SAID]),
            fails("after text", [so_far().piece(&frame).done().end()], "server_error", &[SAID])
                .text("so far"),
            fails("after text, cut", [so_far().piece(&frame).then(Act::Reset)], "server_error", &[SAID])
                .text("so far"),
        ]);
    }
    play_all(cases).await;
    // The name alone is none.
    play_all(vec![gives(
        "a chunk of another type",
        [Answer::stream()
            .chunk(&json!({"type": "chunk", "choices": [{"delta": {"content": "fine"}}]}))
            .done()
            .end()],
        "fine",
    )])
    .await;
}

#[tokio::test]
async fn a_body_that_is_no_reply_is_told_and_a_reply_of_another_form_is_read() {
    let html = "<!doctype html><title>Sign in</title><body>please</body>";
    let whole = json!({"choices": [{"message": {"content": "in one piece"}, "finish_reason": "stop"}]});
    let refusal = || Answer::error(400, &[], "the prompt is too long by far");
    play_all(vec![
        fails(
            "HTML",
            [Answer::whole(200, &[], html)],
            "empty_stream",
            &["URL answered 200 with something that is no reply: Sign in", "ends in /v1"],
        ),
        fails(
            "an empty stream, explained by asking again",
            [Answer::stream().end(), refusal()],
            "empty_stream",
            &["URL answered 200 with an empty stream", "HTTP 400: the prompt is too long by far"],
        )
        .posts(2),
        fails(
            "comments only",
            [Answer::stream().piece(": ping\n\n").end(), refusal()],
            "empty_stream",
            &["empty stream", "HTTP 400"],
        )
        .posts(2),
        fails(
            "[DONE] only",
            [Answer::stream().done().end(), refusal()],
            "empty_stream",
            &["empty stream", "HTTP 400"],
        )
        .posts(2),
        fails(
            "token counts only",
            [Answer::chunks(&[usage(3, 0)]), refusal()],
            "empty_stream",
            &["empty stream", "HTTP 400"],
        )
        .posts(2),
        fails(
            "no content",
            [Answer::default().then(Act::Write(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())), refusal()],
            "empty_stream",
            &["URL answered 204 without a body", "HTTP 400"],
        )
        .posts(2),
        fails(
            "words that are no chunk",
            [Answer::stream().piece("data: out of memory\n\n").end()],
            "empty_stream",
            &["no reply: data: out of memory"],
        ),
        fails(
            "an empty stream that nothing explains",
            [Answer::stream().end(), Answer::whole(200, &[], "{}")],
            "empty_stream",
            &["URL answered 200 with an empty stream"],
        )
        .posts(2),
        gives("JSON instead of a stream", [Answer::whole(200, &[], &whole.to_string())], "in one piece"),
        fails(
            "an error as JSON",
            [Answer::error(200, &[], "model not loaded")],
            "server_error",
            &["model not loaded"],
        ),
        fails(
            "an error inside the stream",
            [Answer::stream()
                .delta("so far")
                .chunk(&json!({"error": {"code": 500, "message": "cuda"}}))
                .end()],
            "server_error",
            &["500: cuda"],
        )
        .text("so far"),
    ])
    .await;
}

/// The probe is for the detail alone: it must not make the end another one, nor a long one.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_not_answered_changes_nothing() {
    let transport = Scripted::new([Reply::with([Piece::End]), Reply::silent()]);
    let started = tokio::time::Instant::now();
    let ended = ask(&Worker::start(config(), echo(), transport)).await;
    assert_eq!(ended.failed().1, "empty_stream");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_fails_and_keeps_its_text() {
    let begun = || Answer::stream().delta("so far");
    let cut = call(0, "look", r#"{"at": "se"#);
    play_all(vec![
        fails("reset", [begun().then(Act::Reset)], "stream_incomplete", &["the reply was cut off: URL"])
            .text("so far"),
        fails("closed without the last piece", [begun().then(Act::Close)], "stream_incomplete", &["URL"])
            .text("so far"),
        fails("ended without a finish", [begun().end()], "stream_incomplete", &["the stream ended before"])
            .text("so far"),
        fails("closed before a word", [Answer::stream().then(Act::Close)], "stream_incomplete", &["URL"]),
        fails(
            "closed before the head",
            [Answer::default().then(Act::Close)],
            "stream_incomplete",
            &["URL: the connection broke"],
        ),
        fails(
            "half an event",
            [begun().piece("data: {\"choices\":[{\"del").then(Act::Close)],
            "stream_incomplete",
            &["URL"],
        )
        .text("so far"),
        fails(
            "arguments cut by a reset",
            [begun().chunk(&cut).then(Act::Reset)],
            "stream_incomplete",
            &["URL"],
        )
        .text("so far"),
        fails("arguments cut by the end", [begun().chunk(&cut).end()], "call_truncated", &["arguments"])
            .text("so far"),
        fails(
            "arguments cut and finished",
            [begun().chunk(&cut).chunk(&finish("length")).done().end()],
            "call_truncated",
            &["arguments"],
        )
        .text("so far"),
        gives("reset after the finish", [begun().chunk(&finish("stop")).then(Act::Reset)], "so far"),
    ])
    .await;
}

#[tokio::test]
async fn the_last_word_is_enough_whatever_the_connection_does() {
    let said = || Answer::stream().delta("whole").chunk(&finish("stop"));
    play_all(vec![
        gives("no [DONE]", [said().end()], "whole"),
        gives("no [DONE], closed", [said().then(Act::Close)], "whole"),
    ])
    .await;
    // A connection that stays open after the last word holds nothing up.
    let server = Server::script([said().done().then(Act::Silence)]);
    let worker = worker(&server, config());
    let started = Instant::now();
    assert_eq!(ask(&worker).await.text(), "whole");
    // Far from the stall that would end it.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    tokio::task::spawn_blocking(move || server.wait_for_client_to_leave()).await.unwrap();
}

#[tokio::test]
async fn a_limit_of_tokens_is_told_as_such() {
    let server = Server::script([Answer::chunks(&[delta("and so"), finish("length")])]);
    let ended = ask(&worker(&server, config())).await;
    assert_eq!(ended.text(), "and so");
    assert_eq!(ended.outcome.finish_reason, FinishReason::MaxTokens);
}

#[tokio::test]
async fn how_the_bytes_are_cut_and_ended_makes_no_difference() {
    let whole = || {
        Answer::chunks(&[delta("naïve — 😀"), delta("\n\u{2028}data: [DONE]"), finish("stop"), usage(1, 1)])
    };
    let text = "naïve — 😀\n\u{2028}data: [DONE]";
    let lump = [delta("naïve — 😀"), delta("\n\u{2028}data: [DONE]"), finish("stop")];
    let lump: String = lump.iter().map(event).collect();
    play_all(vec![
        gives("as it is", [whole()], text),
        gives("byte by byte", [whole().byte_by_byte()], text),
        gives("CR LF", [whole().crlf()], text),
        gives("CR LF, byte by byte", [whole().crlf().byte_by_byte()], text),
        gives(
            "in one piece, after a mark and blanks",
            [Answer::stream().piece(format!("\u{feff}\n\n{lump}")).end()],
            text,
        ),
    ])
    .await;
}

#[tokio::test]
async fn ten_megabytes_of_text_come_whole_and_soon() {
    let line = "Each of these lines is another one, number ";
    let mut text = String::new();
    let mut answer = Answer::stream();
    let mut number = 0;
    while text.len() < 10 << 20 {
        let mut piece = String::new();
        for _ in 0..400 {
            number += 1;
            let _ = writeln!(piece, "{line}{number}");
        }
        answer = answer.delta(&piece);
        text.push_str(&piece);
    }
    let server = Server::script([answer.chunk(&finish("stop")).done().end()]);
    let worker = worker(&server, config());
    let started = Instant::now();
    let ended = ask(&worker).await;
    assert!(ended.text() == text, "{} of {} bytes", ended.text().len(), text.len());
    // A debug build on a busy machine; released it is a fraction of a second.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_line_repeated_for_ever_ends_the_request_and_the_stream() {
    let again = event(&delta("I will look at the sea again and then again.\n"));
    let framed = format!("{:x}\r\n{again}\r\n", again.len());
    let server = Server::script([Answer::stream().then(Act::Endless(framed.into_bytes()))]);
    let worker = worker(&server, config());
    let ended = ask(&worker).await;
    let (reason, _, detail, text) = ended.failed();
    assert_eq!(reason, FailReason::RepeatedLineLoop);
    assert!(detail.contains("times in a row") && text.starts_with("I will look"), "{detail} {text}");
    tokio::task::spawn_blocking(move || server.wait_for_client_to_leave()).await.unwrap();
}
