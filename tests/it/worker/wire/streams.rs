//! Bodies that are not replies, streams that end early or never, and splits of the bytes.

use std::fmt::Write;
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{FailReason, FinishReason};
use deftool_test_support::server::{
    Act, Answer, Server, call, delta, encode_events, encode_whole, event, finish, usage,
};
use deftool_worker::{Worker, WorkerConfig};
use serde_json::{Value, json};

use super::super::harness::*;
use super::super::scripted::{Piece, Reply, Scripted};
use super::{fails, play_all, play_each, succeeds};

/// Returns a stream with a text and without an end.
fn begun(api: Api) -> Answer {
    Answer::begun(api, &[delta("so far")])
}

/// Returns a stream with a text and a finish reason. The body has no end.
fn finished(api: Api) -> Answer {
    Answer::begun(api, &[delta("whole"), finish("stop")])
}

/// An error with HTTP status 200, in the format of Anthropic's API and the Responses API, with or without `error`
/// around its message.
#[tokio::test]
async fn an_error_in_the_stream_is_a_server_error() {
    const MESSAGE: &str = "the model is on fire";
    let wrapped = json!({"type": "error", "error": {"type": "api_error", "message": MESSAGE}}).to_string();
    let flat =
        json!({"type": "error", "code": "server_error", "message": MESSAGE, "param": null}).to_string();
    for body in [wrapped, flat] {
        let frame = format!("data: {body}\n\n");
        let named = format!("event: error\ndata: {body}\n\n");
        play_each(|api| {
            let after_text = |end: fn(Answer) -> Answer| [end(begun(api).piece(&frame))];
            vec![
                fails("a body", [Answer::whole(200, &[], &body)], "server_error", &[MESSAGE]),
                fails("a frame", [Answer::stream().piece(&frame).end()], "server_error", &[MESSAGE]),
                fails("a named frame", [Answer::stream().piece(&named).end()], "server_error", &[MESSAGE]),
                fails("after text", after_text(|begun| begun.done().end()), "server_error", &[MESSAGE])
                    .text("so far"),
                fails(
                    "after text, cut",
                    after_text(|begun| begun.then(Act::Reset)),
                    "server_error",
                    &[MESSAGE],
                )
                .text("so far"),
            ]
        })
        .await;
    }
    // The type alone is not an error.
    play_all(vec![succeeds(
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
async fn a_body_without_a_reply_is_reported_and_a_json_reply_is_read() {
    let html = "<!doctype html><title>Sign in</title><body>please</body>";
    let refusal = || Answer::error(400, &[], "the prompt is too long by far");
    play_each(|api| {
        let whole = encode_whole(api, &[delta("in one piece"), finish("stop")]);
        let error = json!({"error": {"code": 500, "message": "cuda"}});
        vec![
            fails(
                "HTML",
                [Answer::whole(200, &[], html)],
                "empty_stream",
                &["URL returned HTTP 200 with a body that is not a reply: Sign in", "ends in `/v1`"],
            ),
            fails(
                "an empty stream, explained by the probe",
                [Answer::stream().end(), refusal()],
                "empty_stream",
                &["URL returned HTTP 200 with an empty stream", "HTTP 400: the prompt is too long by far"],
            )
            .posts(2),
            fails(
                "only the start of a stream",
                [Answer::begun(api, &[]).end(), refusal()],
                "empty_stream",
                &["URL returned HTTP 200 with an empty stream", "HTTP 400"],
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
                [Answer::reply(api, &[usage(3, 0)]), refusal()],
                "empty_stream",
                &["empty stream", "HTTP 400"],
            )
            .posts(2),
            fails(
                "no content",
                [Answer::default().then(Act::Write(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())), refusal()],
                "empty_stream",
                &["URL returned HTTP 204 without a body", "HTTP 400"],
            )
            .posts(2),
            fails(
                "plain text",
                [Answer::stream().piece("data: out of memory\n\n").end()],
                "empty_stream",
                &["not a reply: data: out of memory"],
            ),
            fails(
                "an unexplained empty stream",
                [Answer::stream().end(), Answer::whole(200, &[], "{}")],
                "empty_stream",
                &["URL returned HTTP 200 with an empty stream"],
            )
            .posts(2),
            succeeds("JSON instead of a stream", [Answer::json(200, &whole)], "in one piece"),
            fails(
                "an error as JSON",
                [Answer::error(200, &[], "model not loaded")],
                "server_error",
                &["model not loaded"],
            ),
            fails(
                "an error inside the stream",
                [Answer::begun(api, &[delta("so far"), error]).end()],
                "server_error",
                &["500: cuda"],
            )
            .text("so far"),
        ]
    })
    .await;
}

/// The probe is the same request without streaming.
#[tokio::test]
async fn an_empty_stream_is_probed_with_the_same_conversation() {
    for api in Api::ALL {
        let server = Server::script([Answer::begun(api, &[]).end(), Answer::error(400, &[], "why")]);
        assert_eq!(ask(&worker(&server, over(api))).await.failed().1, "empty_stream");
        let bodies = server.posts().into_iter().map(|post| post.body).collect::<Vec<_>>();
        assert_eq!((&bodies[0]["stream"], &bodies[1]["stream"]), (&json!(true), &json!(false)), "{api:?}");
        for member in ["messages", "input"] {
            assert_eq!(bodies[0][member], bodies[1][member], "{api:?}");
        }
    }
}

/// The probe only improves the detail. It must not change the outcome or delay it.
#[tokio::test(start_paused = true)]
async fn an_unanswered_probe_changes_nothing() {
    let transport = Scripted::new([Reply::with([Piece::End]), Reply::silent()]);
    let started = tokio::time::Instant::now();
    let ended = ask(&Worker::start(config(), echo(), transport)).await;
    assert_eq!(ended.failed().1, "empty_stream");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_stream_that_ends_early_fails_and_keeps_its_text() {
    let cut = || call(0, "look", r#"{"at": "se"#);
    play_each(|api| {
        let cut = |more: &[Value]| Answer::begun(api, &[&[delta("so far"), cut()], more].concat());
        vec![
            fails(
                "reset",
                [begun(api).then(Act::Reset)],
                "stream_incomplete",
                &["the reply was cut off: URL"],
            )
            .text("so far"),
            fails(
                "closed without the last chunk",
                [begun(api).then(Act::Close)],
                "stream_incomplete",
                &["URL"],
            )
            .text("so far"),
            fails(
                "ended without a finish reason",
                [begun(api).end()],
                "stream_incomplete",
                &["the stream ended before"],
            )
            .text("so far"),
            fails("stalled", [begun(api).then(Act::Silence)], "stall_timeout", &["URL: no byte for"])
                .text("so far"),
            fails(
                "closed before any event",
                [Answer::stream().then(Act::Close)],
                "stream_incomplete",
                &["URL"],
            ),
            fails(
                "closed before the headers",
                [Answer::default().then(Act::Close)],
                "stream_incomplete",
                &["URL: connection lost"],
            )
            .posts(3),
            fails(
                "half an event",
                [begun(api).piece("data: {\"choices\":[{\"del").then(Act::Close)],
                "stream_incomplete",
                &["URL"],
            )
            .text("so far"),
            fails("arguments cut off by a reset", [cut(&[]).then(Act::Reset)], "stream_incomplete", &["URL"])
                .text("so far"),
            fails("arguments cut off at the end", [cut(&[]).end()], "call_truncated", &["arguments"])
                .text("so far"),
            fails(
                "arguments cut off before a finish reason",
                [cut(&[finish("length")]).end()],
                "call_truncated",
                &["arguments", "`look`", ":max-tokens"],
            )
            .text("so far"),
            succeeds("reset after the finish", [finished(api).then(Act::Reset)], "whole"),
        ]
    })
    .await;
}

#[tokio::test]
async fn a_finish_reason_is_sufficient_regardless_of_the_connection() {
    play_each(|api| {
        vec![
            succeeds("no [DONE]", [finished(api).end()], "whole"),
            succeeds("no [DONE], closed", [finished(api).then(Act::Close)], "whole"),
        ]
    })
    .await;
    // An open connection after the end of the reply does not delay the request.
    for api in Api::ALL {
        let server = Server::script([finished(api).done().then(Act::Silence)]);
        let config = with_timers(|timers| timers.stall = Duration::from_secs(3600));
        assert_eq!(ask(&worker(&server, WorkerConfig { api, ..config })).await.text(), "whole");
        tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
    }
}

#[tokio::test]
async fn the_token_limit_is_reported_as_finish_reason() {
    for api in Api::ALL {
        let server = Server::script([Answer::reply(api, &[delta("and so"), finish("length")])]);
        let ended = ask(&worker(&server, over(api))).await;
        assert_eq!((ended.text(), ended.outcome.finish_reason), ("and so", FinishReason::MaxTokens));
        assert_eq!(ended.warnings(), [""; 0], "{api:?}");
    }
}

#[tokio::test]
async fn splits_and_line_ends_do_not_affect_the_reply() {
    let text = "naïve — 😀\n\u{2028}data: [DONE]";
    let chunks = [delta("naïve — 😀"), delta("\n\u{2028}data: [DONE]"), finish("stop")];
    play_each(|api| {
        let whole = || Answer::reply(api, &[&chunks[..], &[usage(1, 1)]].concat());
        let lump: String = encode_events(api, &chunks).iter().map(event).collect();
        vec![
            succeeds("unchanged", [whole()], text),
            succeeds("byte by byte", [whole().byte_by_byte()], text),
            succeeds("CR LF", [whole().crlf()], text),
            succeeds("CR LF, byte by byte", [whole().crlf().byte_by_byte()], text),
            succeeds(
                "in one piece, after a byte order mark and blanks",
                [Answer::stream().piece(format!("\u{feff}\n\n{lump}")).end()],
                text,
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn ten_megabytes_of_text_are_received_completely() {
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
    let ended = ask(&worker).await;
    assert!(ended.text() == text, "{} of {} bytes", ended.text().len(), text.len());
}

#[tokio::test]
async fn an_endlessly_repeated_line_ends_the_request_and_the_stream() {
    let again = event(&delta("I will look at the sea again and then again.\n"));
    let framed = format!("{:x}\r\n{again}\r\n", again.len());
    let server = Server::script([Answer::stream().then(Act::Endless(framed.into_bytes()))]);
    let worker = worker(&server, config());
    let ended = ask(&worker).await;
    let (reason, _, detail, text) = ended.failed();
    assert_eq!(reason, FailReason::RepeatedLineLoop);
    assert!(detail.contains("times in a row") && text.starts_with("I will look"), "{detail} {text}");
    tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
}
