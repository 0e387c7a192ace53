//! What real servers do that they should not. Each case is a server's script and how the request must end.

use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime};

use deftool::request::{FailReason, FinalState, FinishReason};
use deftool::tool::ToolCall;
use deftool::worker::{SubmitRequest, Worker};
use serde_json::json;

use super::bench::*;
use crate::support::server::{Act, Answer, DeadEnd, Server, call, delta, event, finish, usage};

/// How a request must end.
struct Case {
    name: &'static str,
    answers: Vec<Answer>,
    /// Kind of the failure; empty: none.
    kind: &'static str,
    /// All of these must be in its detail.
    says: &'static [&'static str],
    text: &'static str,
    /// How many requests the server gets.
    posts: usize,
}

fn fails(
    name: &'static str,
    answers: impl IntoIterator<Item = Answer>,
    kind: &'static str,
    says: &'static [&'static str],
) -> Case {
    Case { name, answers: answers.into_iter().collect(), kind, says, text: "", posts: 1 }
}

fn gives(name: &'static str, answers: impl IntoIterator<Item = Answer>, text: &'static str) -> Case {
    Case { name, answers: answers.into_iter().collect(), kind: "", says: &[], text, posts: 1 }
}

impl Case {
    fn text(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    fn posts(self, posts: usize) -> Self {
        Self { posts, ..self }
    }

    /// What was wrong, if anything was.
    async fn play(self) -> Option<String> {
        let Self { name, answers, kind, says, text, posts } = self;
        let server = Server::script(answers);
        let config = with_timers(|timers| {
            timers.stall = Duration::from_millis(600);
            timers.headers = Some(Duration::from_secs(5));
        });
        let ended = ask(&worker(&server, config)).await;
        let outcome = &ended.outcome;
        let detail = outcome.detail.clone().unwrap_or_default();
        let seen = server.posts().len();
        let url = format!("{}/chat/completions", server.endpoint());
        let is_right = outcome.kind.as_deref().unwrap_or_default() == kind
            && outcome.text == text
            && says.iter().all(|part| detail.contains(&part.replace("URL", &url)))
            && seen == posts;
        (!is_right).then(|| format!("{name}: {seen} requests, {outcome:#?}"))
    }
}

async fn play_all(cases: Vec<Case>) {
    let wrong: Vec<String> = futures_util::future::join_all(cases.into_iter().map(Case::play))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const SOON: &[(&str, &str)] = &[("retry-after-ms", "5")];

#[tokio::test]
async fn an_http_error_is_told_with_url_message_and_what_to_do() {
    let html = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let overflow = json!({"error": {
        "code": 400, "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096
    }});
    play_all(vec![
        fails("400", [Answer::error(400, &[], "bad seed")], "http_error", &["URL: HTTP 400: bad seed"]),
        fails(
            "401",
            [Answer::error(401, &[], "no key")],
            "http_error",
            &["URL: HTTP 401: no key", "OPENAI_API_KEY", ":api-key-env"],
        ),
        fails(
            "404",
            [Answer::error(404, &[], "no such model")],
            "http_error",
            &["URL: HTTP 404: no such model", "ends in /v1"],
        ),
        fails("404 without a word", [Answer::whole(404, &[], "")], "http_error", &["URL: HTTP 404; check"]),
        fails(
            "500 is not tried again",
            [Answer::error(500, &[], "oops")],
            "http_error",
            &["URL: HTTP 500: oops", "log"],
        ),
        fails("HTML 502", [Answer::whole(502, &[], html)], "http_error", &["URL: HTTP 502: 502 Bad Gateway"]),
        fails(
            "context",
            [Answer::whole(400, &[], &overflow.to_string())],
            "context_overflow",
            &["HTTP 400", "5000 tokens, context of 4096", "shorten the prompt"],
        ),
        fails(
            "an error's body that stalls",
            [Answer::head(500, &[]).piece("half a ").then(Act::Silence)],
            "http_error",
            &["HTTP 500: half a"],
        ),
        fails(
            "an error's body that breaks",
            [Answer::head(500, &[]).piece("half a ").then(Act::Reset)],
            "http_error",
            &["HTTP 500: half a"],
        ),
        fails(
            "an endless error",
            [Answer::head(500, &[]).then(Act::Endless(b"5\r\nhello\r\n".to_vec()))],
            "http_error",
            &["HTTP 500: hello"],
        ),
        fails(
            "redirect",
            [Answer::whole(308, &[("location", "https://api.example.org/v1/chat/completions")], "")],
            "http_error",
            &["URL: HTTP 308", "not followed", "give https://api.example.org/v1 as the endpoint"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_error_body_that_trickles_is_not_waited_for() {
    let trickle = (0..200).fold(Answer::head(400, &[]), |answer, _| answer.wait_ms(50).piece("x"));
    let server = Server::script([trickle.end()]);
    let worker = worker(&server, with_timers(|timers| timers.stall = Duration::from_millis(300)));
    let started = Instant::now();
    assert_eq!(ask(&worker).await.failed().1, "http_error");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_a_server_asks_to_try_again_is_tried_again_and_nothing_else() {
    let ok = || Answer::text("fine");
    let error = |status| Answer::error(status, SOON, "busy");
    play_all(vec![
        gives("408", [error(408), ok()], "fine").posts(2),
        gives("409", [error(409), ok()], "fine").posts(2),
        gives("429", [error(429), ok()], "fine").posts(2),
        gives("503, loading, then 200", [error(503), error(503), error(503), ok()], "fine").posts(4),
        fails("503 for ever", [error(503)], "http_error", &["URL: HTTP 503: busy"]).posts(4),
        fails("500", [error(500), ok()], "http_error", &["HTTP 500"]),
        fails("502", [error(502), ok()], "http_error", &["HTTP 502"]),
        fails("400", [error(400), ok()], "http_error", &["HTTP 400"]),
        fails(
            "an hour is not waited",
            [Answer::error(429, &[("retry-after", "3600")], "quota"), ok()],
            "http_error",
            &["HTTP 429: quota; the server asks to wait 3600 s"],
        ),
        fails(
            "never after the first byte",
            [Answer::stream().delta("so far").then(Act::Reset), ok()],
            "stream_incomplete",
            &["URL"],
        )
        .text("so far"),
    ])
    .await;
}

#[tokio::test]
async fn retry_after_is_honoured_in_every_form() {
    let date = |ahead: u64| {
        let then = jiff::Timestamp::try_from(SystemTime::now() + Duration::from_secs(ahead)).unwrap();
        then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    let (past, ahead) = ("Wed, 21 Oct 2015 07:28:00 GMT".to_owned(), date(2));
    let cases = [
        ("retry-after-ms", "40", 40..=40),
        ("retry-after", "0.06", 60..=60),
        ("retry-after", "0", 0..=0),
        ("retry-after", past.as_str(), 0..=0),
        ("retry-after", ahead.as_str(), 500..=2000),
        // Nothing that can be read: our own wait, 500 ms and its jitter.
        ("retry-after", "soon", 375..=625),
        ("retry-after", "-5", 375..=625),
        ("x-nothing", "1", 375..=625),
    ];
    let checks = cases.map(|(name, value, expected)| {
        let server =
            Server::script([Answer::error(429, &[(name, value)], "slow down"), Answer::text("fine")]);
        let worker = worker(&server, config());
        let value = value.to_owned();
        async move {
            let ended = ask(&worker).await;
            assert_eq!(ended.text(), "fine");
            let retries = ended.retries();
            let [(2, delay, "HTTP 429: slow down")] = retries[..] else { panic!("{retries:?}") };
            assert!(expected.contains(&delay), "{name}: {value}: {delay} ms");
            let posts = server.posts();
            let waited = posts[1].at - posts[0].at;
            assert!(waited >= Duration::from_millis(delay), "{name}: {value}: {waited:?}");
        }
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_and_then_told_with_the_url() {
    let nobody = DeadEnd::new();
    let worker = Worker::start(config(), echo(), http(&nobody.endpoint(), None));
    let started = Instant::now();
    let ended = ask(&worker).await;
    let (reason, kind, detail, _) = ended.failed();
    assert_eq!((reason, kind), (FailReason::ConnectFailed, "connect_failed"));
    assert!(detail.contains(&format!("no connection to {}/chat/completions", nobody.endpoint())), "{detail}");
    assert!(detail.contains("refused") && detail.ends_with("is the server running there?"), "{detail}");
    let attempts: Vec<u32> = ended.retries().iter().map(|(attempt, ..)| *attempt).collect();
    assert_eq!(attempts, [2, 3, 4]);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_tried_again() {
    let worker = Worker::start(config(), echo(), http("http://nowhere.invalid/v1", None));
    let ended = ask(&worker).await;
    let (reason, _, detail, _) = ended.failed();
    assert_eq!(reason, FailReason::ConnectFailed);
    assert!(detail.contains("http://nowhere.invalid/v1") && detail.contains("check the address"), "{detail}");
    assert!(ended.retries().is_empty());
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
    let transport = super::scripted::Scripted::new([
        super::scripted::Reply::with([super::scripted::Piece::End]),
        super::scripted::Reply::silent(),
    ]);
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

#[tokio::test]
async fn a_field_that_a_server_refuses_is_left_out_once_and_for_all_turns() {
    let refused = "Unrecognized request argument supplied: stream_options";
    let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                   'max_completion_tokens' instead.";
    let server = Server::answering(move |_, request| {
        if request.body.get("stream_options").is_some() {
            Answer::error(400, &[], refused)
        } else if request.body.get("max_tokens").is_some() {
            Answer::error(400, &[], renamed)
        } else if request.contents("tool").is_empty() {
            Answer::calls(&[("look", "{}")])
        } else {
            Answer::text("fine")
        }
    });
    let mut config = config();
    config.run.params = json!({"max_tokens": 20}).as_object().unwrap().clone();
    let ended = ask(&worker(&server, config)).await;
    assert_eq!(ended.text(), "fine");
    let posts = server.posts();
    assert_eq!(posts.len(), 4, "two refusals, then two turns");
    for post in &posts[2..] {
        assert_eq!(post.body["max_completion_tokens"], 20);
        assert_eq!(post.body.get("max_tokens"), None);
        assert_eq!(post.body.get("stream_options"), None);
        assert_eq!(post.body["stream"], true);
    }
    let retries: Vec<(u32, u64)> =
        ended.retries().iter().map(|(attempt, delay, _)| (*attempt, *delay)).collect();
    assert_eq!(retries, [(2, 0), (3, 0)]);
}

#[tokio::test]
async fn a_field_that_is_refused_for_ever_is_given_up() {
    for (status, said) in [(400, "no stream_options"), (422, "max_tokens? max_completion_tokens?")] {
        let server = Server::script([Answer::error(status, &[], said)]);
        let mut config = config();
        config.run.params = json!({"max_tokens": 20}).as_object().unwrap().clone();
        let ended = ask(&worker(&server, config)).await;
        let (_, kind, detail, _) = ended.failed();
        assert_eq!(kind, "http_error");
        assert!(detail.contains(said), "{detail}");
        assert_eq!(server.posts().len(), 2, "{said}");
    }
    // What was not sent cannot have been refused.
    play_all(vec![fails(
        "max_tokens",
        [Answer::error(422, &[], "max_tokens? max_completion_tokens?")],
        "http_error",
        &["HTTP 422"],
    )])
    .await;
}

/// Text of one turn must not be lost when the next one fails.
#[tokio::test]
async fn text_of_earlier_turns_survives_any_failure_of_a_later_one() {
    let later = [
        ("http_error", Answer::error(500, &[], "oops")),
        ("empty_stream", Answer::whole(200, &[], "<p>hello</p>")),
        ("stream_incomplete", Answer::stream().delta(" second").then(Act::Reset)),
        ("stream_incomplete", Answer::default().then(Act::Close)),
        ("stall_timeout", Answer::stream().delta(" second").then(Act::Silence)),
        ("headers_timeout", Answer::silent()),
        ("unknown_tool", Answer::chunks(&[delta(" second"), call(0, "lok", "{}"), finish("stop")])),
        (
            "invalid_arguments",
            Answer::chunks(&[delta(" second"), call(0, "look", r#"{"to": 1}"#), finish("stop")]),
        ),
        ("invalid_arguments", Answer::chunks(&[delta(" second"), call(0, "look", "[1]"), finish("stop")])),
    ];
    let checks = later.map(|(kind, answer)| async move {
        let first = Answer::chunks(&[delta("first"), call(0, "look", "{}"), finish("tool_calls")]);
        let server = Server::script([first, answer]);
        let config = with_timers(|timers| {
            timers.stall = Duration::from_millis(300);
            timers.headers = Some(Duration::from_millis(300));
        });
        let worker = worker(&server, config);
        let ended = ask(&worker).await;
        let (reason, found, detail, text) = ended.failed();
        assert_eq!(found, kind, "{reason}: {detail}");
        assert!(text == "first" || text == "first second", "{kind}: {text}");
        assert_eq!(worker.in_flight(), 0);
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn an_unknown_endpoint_is_refused_before_anything_is_sent() {
    use deftool::worker::HttpTransport;
    for bad in ["", "localhost:8080/v1", "ftp://host/v1", "http://", "not a url"] {
        let error = HttpTransport::new(bad, None, Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("write http://HOST:PORT/v1"), "{bad}: {error}");
    }
    let server = Server::script([Answer::text("hi")]);
    let with_slash = format!("{}/", server.endpoint());
    let worker = Worker::start(config(), echo(), http(&with_slash, None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    assert_eq!(super::bench::finish(&worker, &id).await.outcome.state, FinalState::Completed);
    assert_eq!(server.posts()[0].line, "POST /v1/chat/completions");
}

/// Servers close connections that idle; the next turn must not run into that.
#[tokio::test]
async fn a_connection_that_the_server_closed_between_two_turns_is_not_used() {
    let called = || Answer::calls(&[("look", "{}")]);
    let closing = || called().then(Act::Wait(Duration::from_millis(20))).then(Act::Close);
    let server = Server::script([called(), closing(), called(), closing(), Answer::text("fine")]);
    let slow = toolbox(FakeTools(|_: ToolCall, _| async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        Ok(serde_json::Value::Null)
    }));
    let worker = Worker::start(config(), slow, http(&server.endpoint(), None));
    assert_eq!(ask(&worker).await.text(), "fine");
    assert_eq!(server.posts().len(), 5);
}

#[tokio::test]
async fn requests_at_once_do_not_mix() {
    let server = Server::answering(|_, request| {
        let prompt = request.contents("user")[0].clone();
        let pieces =
            (0..20).fold(Answer::stream(), |answer, _| answer.wait_ms(1).delta(&format!("{prompt} ")));
        pieces.chunk(&finish("stop")).done().end()
    });
    let mut config = config();
    config.slots = 20;
    config.keep_results = 20;
    let worker = worker(&server, config);
    let ids: Vec<String> =
        (0..20).map(|number| worker.submit(SubmitRequest::prompt(format!("n{number}"))).unwrap()).collect();
    for (number, id) in ids.iter().enumerate() {
        let ended = super::bench::finish(&worker, id).await;
        assert_eq!(ended.text(), format!("n{number} ").repeat(20));
    }
}
