//! Answers that are not replies: errors, rejections, retries, and unreachable servers.

use std::time::{Duration, SystemTime};

use deftool_chat::Api;
use deftool_chat::request::{FailReason, FinalState};
use deftool_test_support::server::{Act, Answer, ClosedPort, Server, Texts, delta};
use deftool_worker::{HttpTransport, SubmitRequest, Worker};
use serde_json::json;

use super::super::harness::*;
use super::{fails, play_all, play_each, succeeds};

const SOON: &[(&str, &str)] = &[("retry-after-ms", "5")];

#[tokio::test]
async fn an_http_error_is_reported_with_url_message_and_advice() {
    let html = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let overflow = json!({"error": {
        "code": 400, "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096
    }});
    play_each(|api| {
        vec![
            fails("400", [Answer::error(400, &[], "bad seed")], "http_error", &["URL: HTTP 400: bad seed"]),
            fails(
                "401",
                [Answer::error(401, &[], "no key")],
                "unauthorized",
                &["URL: HTTP 401: no key", "OPENAI_API_KEY", ":api-key-env"],
            ),
            fails(
                "404",
                [Answer::error(404, &[], "no such model")],
                "http_error",
                &["URL: HTTP 404: no such model", "ends in `/v1`"],
            ),
            fails(
                "404 without a body",
                [Answer::whole(404, &[], "")],
                "http_error",
                &["URL: HTTP 404; check"],
            ),
            fails(
                "500, three times",
                [Answer::error(500, &[], "oops")],
                "http_error",
                &["URL: HTTP 500: oops", "log"],
            )
            .posts(3),
            fails(
                "HTML 502",
                [Answer::whole(502, &[], html)],
                "http_error",
                &["URL: HTTP 502: 502 Bad Gateway"],
            )
            .posts(3),
            fails(
                "context",
                [Answer::whole(400, &[], &overflow.to_string())],
                "context_overflow",
                &["HTTP 400", "5000 tokens, context of 4096", "shorten the prompt"],
            ),
            fails(
                "the name of the status next to the message",
                [Answer::whole(400, &[], r#"{"error":"Bad Request","message":"model m has no deployment"}"#)],
                "http_error",
                &["URL: HTTP 400: model m has no deployment"],
            ),
            fails(
                "Gemini's message for a prompt that is too long",
                [Answer::error(
                    400,
                    &[],
                    "The input token count (12) exceeds the maximum number of tokens allowed (8).",
                )],
                "context_overflow",
                &["HTTP 400", "shorten the prompt"],
            ),
            fails(
                "a relative redirect",
                [Answer::whole(307, &[("location", &format!("/openai{}", api_path(api)))], "")],
                "http_error",
                &["use http://127.0.0.1:", "/openai/v1 as the endpoint"],
            ),
            fails(
                "redirect",
                [Answer::whole(
                    308,
                    &[("location", &format!("https://api.example.org{}", api_path(api)))],
                    "",
                )],
                "http_error",
                &["URL: HTTP 308", "not followed", "use https://api.example.org/v1 as the endpoint"],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn an_error_is_reported_with_the_part_of_its_body_that_came() {
    play_each(|_| {
        vec![
            fails(
                "an error body that stalls",
                [Answer::head(500, &[]).piece("half a ").then(Act::Silence)],
                "http_error",
                &["HTTP 500: half a"],
            )
            .posts(3),
            fails(
                "an error body that is reset",
                [Answer::head(500, &[]).piece("half a ").then(Act::Reset)],
                "http_error",
                &["HTTP 500: half a"],
            )
            .posts(3),
            fails(
                "an endless error",
                [Answer::head(500, &[]).then(Act::Endless(b"5\r\nhello\r\n".to_vec()))],
                "http_error",
                &["HTTP 500: hello"],
            )
            .posts(3),
        ]
    })
    .await;
}

#[tokio::test]
async fn a_slow_error_body_is_not_awaited() {
    let trickle = (0..200).fold(Answer::head(400, &[]), |answer, _| answer.wait_ms(50).piece("x"));
    let server = Server::script([trickle.end()]);
    let worker = worker(&server, with_timers(|timers| timers.stall = Duration::from_millis(300)));
    let ended = ask(&worker).await;
    let (_, kind, detail, _) = ended.failed();
    assert_eq!(kind, "http_error");
    assert!(!detail.contains(&"x".repeat(200)), "the whole body was read: {detail}");
}

#[tokio::test]
async fn only_retryable_errors_are_retried() {
    let error = |status| Answer::error(status, SOON, "busy");
    play_each(|api| {
        let ok = || turn(api, "fine", &[]);
        let overload = json!({"error": {"type": "overloaded_error", "message": "Overloaded"}});
        vec![
            succeeds("408", [error(408), ok()], "fine").posts(2),
            succeeds("409", [error(409), ok()], "fine").posts(2),
            succeeds("429", [error(429), ok()], "fine").posts(2),
            succeeds("503, loading, then 200", [error(503), error(503), error(503), ok()], "fine").posts(4),
            fails("repeated 503", [error(503)], "http_error", &["URL: HTTP 503: busy"]).posts(4),
            succeeds("500", [error(500), ok()], "fine").posts(2),
            fails("repeated 502", [error(502)], "http_error", &["HTTP 502"]).posts(3),
            succeeds("an overload in the stream", [Answer::begun(api, &[overload]).end(), ok()], "fine")
                .posts(2),
            fails("400", [error(400), ok()], "http_error", &["HTTP 400"]),
            fails(
                "a delay of an hour is not awaited",
                [Answer::error(429, &[("retry-after", "3600")], "quota"), ok()],
                "http_error",
                &["HTTP 429: quota; the server requested a delay of 3600 s"],
            ),
            fails(
                "a delay above the integer limit",
                [Answer::error(429, &[("retry-after", "99999999999999999999999")], "quota"), ok()],
                "http_error",
                &["HTTP 429: quota; the server requested a delay of 18446744073709"],
            ),
            fails(
                "no retry after the first byte",
                [Answer::begun(api, &[delta("so far")]).then(Act::Reset), ok()],
                "stream_incomplete",
                &["URL"],
            )
            .text("so far"),
        ]
    })
    .await;
}

#[tokio::test]
async fn retry_after_is_respected_in_every_format() {
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
        // Invalid values: the default delay of 500 ms, with jitter.
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
async fn a_refused_connection_is_retried_and_then_reported_with_the_url() {
    for api in Api::ALL {
        let nobody = ClosedPort::reserve();
        let worker = Worker::start(over(api), echo(), http(&nobody.endpoint(), None));
        let ended = ask(&worker).await;
        let (reason, kind, detail, _) = ended.failed();
        assert_eq!((reason, kind), (FailReason::ConnectFailed, "connect_failed"));
        let path = api_path(api).trim_start_matches("/v1");
        assert!(detail.contains(&format!("connection to {}{path}", nobody.endpoint())), "{detail}");
        assert!(detail.contains("refused") && detail.ends_with("is the server running there?"), "{detail}");
        let attempts: Vec<u32> = ended.retries().iter().map(|(attempt, ..)| *attempt).collect();
        assert_eq!(attempts, [2, 3, 4]);
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_retried() {
    let worker = Worker::start(config(), echo(), http("http://nowhere.invalid/v1", None));
    let ended = ask(&worker).await;
    let (reason, _, detail, _) = ended.failed();
    assert_eq!(reason, FailReason::ConnectFailed);
    assert!(detail.contains("http://nowhere.invalid/v1") && detail.contains("check the address"), "{detail}");
    assert!(ended.retries().is_empty());
}

#[tokio::test]
async fn a_rejected_member_is_omitted_in_all_later_turns() {
    let refused = "Unrecognized request argument supplied: stream_options";
    let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                   'max_completion_tokens' instead.";
    let server = Server::answering(move |_, request| {
        if request.body.get("stream_options").is_some() {
            Answer::error(400, &[], refused)
        } else if request.body.get("max_tokens").is_some() {
            Answer::error(400, &[], renamed)
        } else if request.texts("tool").is_empty() {
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
    assert_eq!(posts.len(), 4, "two rejections, then two turns");
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
async fn a_repeated_rejection_fails_the_request() {
    for (status, message) in [(400, "no stream_options"), (422, "max_tokens? max_completion_tokens?")] {
        let server = Server::script([Answer::error(status, &[], message)]);
        let mut config = config();
        config.run.params = json!({"max_tokens": 20}).as_object().unwrap().clone();
        let ended = ask(&worker(&server, config)).await;
        let (_, kind, detail, _) = ended.failed();
        assert_eq!(kind, "http_error");
        assert!(detail.contains(message), "{detail}");
        assert_eq!(server.posts().len(), 2, "{message}");
    }
    // A member that was not sent cannot be rejected.
    play_all(vec![fails(
        "max_tokens",
        [Answer::error(422, &[], "max_tokens? max_completion_tokens?")],
        "http_error",
        &["HTTP 422"],
    )])
    .await;
}

#[tokio::test]
async fn an_invalid_endpoint_is_rejected_before_any_request() {
    for bad in ["", "localhost:8080/v1", "ftp://host/v1", "http://", "not a url"] {
        let error = HttpTransport::new(bad, None, Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("write http://HOST:PORT/v1"), "{bad}: {error}");
    }
    let server = Server::script([Answer::text("hi")]);
    let with_slash = format!("{}/", server.endpoint());
    let worker = Worker::start(config(), echo(), http(&with_slash, None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Completed);
    assert_eq!(server.posts()[0].line, "POST /v1/chat/completions");
}
