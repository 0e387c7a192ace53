//! Retries: delays, jitter, and remembered body fallbacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deftool_chat::Dialect;
use deftool_chat::{Capabilities, Message};
use deftool_test_support::server::{Act, Answer, Server, Texts, call, delta, event, finish as end};
use deftool_worker::{Origin, PageResponse, SubmitRequest, Worker, WorkerConfig};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::*;
use super::scripted::{Piece, Reply, Scripted};

fn whole(text: &str) -> Reply {
    Reply::with([Piece::Bytes(event(&delta(text)) + &event(&end("stop")) + "data: [DONE]\n\n"), Piece::End])
}

/// Returns a request with this seed of the jitter.
fn seeded(seed: u64) -> SubmitRequest {
    let origin = Origin {
        request_id: format!("req_{seed}"),
        submitted_at_ms: 1,
        zone: String::from("UTC"),
        local_time: String::from("2026-01-01 00:00"),
        id_seed: seed,
    };
    SubmitRequest { origin: Some(origin), ..SubmitRequest::prompt("hello") }
}

#[tokio::test(start_paused = true)]
async fn delays_double_and_have_a_jitter_of_a_quarter() {
    let busy = || Reply::error(429, "busy");
    let mut delays = vec![Vec::new(); 3];
    for seed in 0..50 {
        let replies = [busy(), busy(), busy(), whole("fine")];
        let worker = Worker::start(config(), echo(), Scripted::new(replies));
        let id = worker.submit(seeded(seed)).unwrap();
        let ended = finish_within(&worker, &id, Duration::from_secs(60)).await;
        assert_eq!(ended.text(), "fine");
        for (delays, (_, delay, _)) in delays.iter_mut().zip(ended.retries()) {
            delays.push(delay);
        }
    }
    for (delays, middle) in delays.iter().zip([500, 1000, 2000]) {
        let (least, most) = (middle * 3 / 4, middle * 5 / 4);
        assert!(delays.iter().all(|delay| (least..=most).contains(delay)), "{middle}: {delays:?}");
        // Requests that were rejected together are not retried together.
        let spread = delays.iter().max().unwrap() - delays.iter().min().unwrap();
        assert!(spread > middle / 4, "{middle}: {delays:?}");
    }
}

/// Returns an error with this body.
fn refusal(status: u16, body: &Value) -> Reply {
    Reply { status, ..Reply::with([Piece::Bytes(body.to_string()), Piece::End]) }
}

/// Sends a request to a server of this dialect with scripted replies.
async fn ask_scripted(dialect: Dialect, replies: impl IntoIterator<Item = Reply>) -> Ended {
    let config = WorkerConfig { server: Capabilities::of(dialect), ..config() };
    ask_for_hours(&Worker::start(config, echo(), Scripted::new(replies))).await
}

fn counted_retries(ended: &Ended) -> u32 {
    ended.outcome.usage.map_or(0, |usage| usage.retries)
}

#[tokio::test(start_paused = true)]
async fn a_temporary_status_of_a_hosted_api_is_retried_twice() {
    for status in [425, 500, 502, 504, 520, 522, 529] {
        let failed = || Reply::error(status, "oops");
        let ended = ask_scripted(Dialect::named("openrouter"), [failed(), failed(), whole("fine")]).await;
        assert_eq!(
            (ended.text(), ended.retries().len(), counted_retries(&ended)),
            ("fine", 2, 2),
            "{status}"
        );
        let ended = ask_scripted(Dialect::default(), [failed(), failed(), failed()]).await;
        assert!(ended.failed().2.contains(&format!("HTTP {status}: oops")), "{:?}", ended.outcome);
        assert_eq!((ended.retries().len(), counted_retries(&ended)), (2, 2), "{status}");
        // The failures of local servers are usually permanent.
        for dialect in [
            Dialect::named("llama-cpp"),
            Dialect::named("vllm"),
            Dialect::named("ollama"),
            Dialect::named("lm-studio"),
        ] {
            let ended = ask_scripted(dialect, [failed()]).await;
            assert_eq!((ended.failed().1, ended.retries().len()), ("http_error", 0), "{status} {dialect:?}");
        }
    }
    let too_long = "This model's maximum context length is 4096 tokens";
    let ended = ask_scripted(Dialect::default(), [Reply::error(500, too_long)]).await;
    assert_eq!((ended.failed().1, ended.retries().len()), ("context_overflow", 0));
    for status in [400, 404, 422, 501, 505, 530] {
        let ended = ask_scripted(Dialect::default(), [Reply::error(status, "oops")]).await;
        assert_eq!((ended.failed().1, ended.retries().len()), ("http_error", 0), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_is_not_retried() {
    let anthropic = json!({"type": "rate_limit_error", "message": "You have reached your API usage limits",
                           "details": {"error_code": "enforced_spend_limit_reached"}});
    for error in [
        json!({"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}),
        json!({"message": "suspended", "type": "exceeded_current_quota_error"}),
        anthropic,
    ] {
        let ended = ask_scripted(Dialect::default(), [refusal(429, &json!({"error": error}))]).await;
        let (_, kind, detail, _) = ended.failed();
        assert_eq!((kind, ended.retries().len()), ("http_error", 0), "{detail}");
        assert!(detail.contains("the quota of the account is used up"), "{detail}");
    }
    let limited = json!({"error": {"message": "slow down", "type": "rate_limit_error"}});
    let ended = ask_scripted(Dialect::default(), [refusal(429, &limited), whole("fine")]).await;
    assert_eq!((ended.text(), ended.retries().len()), ("fine", 1));
}

/// Anthropic and `OpenRouter` report an overload after a head with status 200.
#[tokio::test(start_paused = true)]
async fn an_overload_in_a_stream_is_retried_before_any_output() {
    let overloaded =
        event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let stream = |before: &str| Reply::with([Piece::Bytes(format!("{before}{overloaded}")), Piece::End]);
    let role = event(&json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}));
    for (before, dialect, retries) in [
        (String::new(), Dialect::default(), 2),
        (format!(": ping\n\n{role}"), Dialect::named("openrouter"), 2),
        (event(&delta("so far")), Dialect::default(), 0),
        (event(&json!({"choices": [{"delta": {"reasoning": "hm"}}]})), Dialect::default(), 0),
        (event(&call(0, "look", "{}")), Dialect::default(), 0),
        (String::new(), Dialect::named("vllm"), 0),
    ] {
        let replies = (0..=retries).map(|_| stream(&before));
        let ended = ask_scripted(dialect, replies).await;
        assert_eq!((ended.failed().1, ended.retries().len()), ("http_error", retries), "{before}");
        if retries > 0 {
            let ended = ask_scripted(dialect, [stream(&before), whole("fine")]).await;
            assert_eq!((ended.text(), ended.retries().len(), counted_retries(&ended)), ("fine", 1, 1));
        }
    }
    for error in [
        json!({"code": 502, "message": "Provider returned error"}),
        json!({"code": 529, "message": "Overloaded"}),
        json!({"code": 500, "message": "Overloaded", "type": "overloaded_error"}),
    ] {
        let failed = Reply::with([Piece::Bytes(event(&json!({"error": error}))), Piece::End]);
        let ended = ask_scripted(Dialect::default(), [failed, whole("fine")]).await;
        assert_eq!((ended.text(), ended.retries().len()), ("fine", 1), "{error}");
    }
    // As after the status 500.
    let oops = event(&json!({"error": {"code": 500, "message": "oops"}}));
    let replies = (0..3).map(|_| Reply::with([Piece::Bytes(oops.clone()), Piece::End]));
    let ended = ask_scripted(Dialect::default(), replies).await;
    assert_eq!((ended.failed().1, ended.retries().len()), ("server_error", 2));
}

/// The body of the request was sent.
#[tokio::test]
async fn a_connection_that_is_lost_before_the_response_is_retried_twice() {
    let lost = [Act::Reset, Act::Close].map(|act| Answer::default().then(act));
    let [reset, closed] = lost;
    let server = Server::script([reset.clone(), closed, Answer::text("fine")]);
    let ended = ask(&worker(&server, config())).await;
    assert_eq!((ended.text(), ended.retries().len(), counted_retries(&ended)), ("fine", 2, 2));
    let server = Server::script([reset.clone()]);
    let ended = ask(&worker(&server, config())).await;
    assert_eq!((ended.failed().1, ended.retries().len(), server.posts().len()), ("stream_incomplete", 2, 3));
    let server = Server::script([reset]);
    let local = WorkerConfig { server: Capabilities::of(Dialect::named("llama-cpp")), ..config() };
    let ended = ask(&worker(&server, local)).await;
    assert_eq!((ended.failed().1, ended.retries().len()), ("stream_incomplete", 0));
}

#[tokio::test]
async fn the_server_decides_about_a_retry() {
    let retry = ("x-should-retry", "true");
    for (status, headers, retries) in [
        (503, vec![("x-should-retry", "false")], 0),
        (500, vec![("x-should-retry", "False")], 0),
        (418, vec![retry, ("retry-after-ms", "1")], 2),
        (429, vec![retry, ("retry-after-ms", "1")], 3),
        (502, vec![("x-should-retry", "perhaps"), ("retry-after-ms", "1")], 2),
        (502, vec![("retry-after", "3600")], 0),
    ] {
        let server = Server::script([Answer::error(status, &headers, "oops")]);
        let ended = ask(&worker(&server, config())).await;
        let (_, kind, detail, _) = ended.failed();
        assert_eq!((kind, ended.retries().len()), ("http_error", retries), "{status} {headers:?}: {detail}");
        if headers.contains(&("retry-after", "3600")) {
            assert!(
                detail.contains("the server requested a delay of 3600 s, more than the limit of"),
                "{detail}"
            );
        }
    }
}

/// A loading server may be too busy to answer.
#[tokio::test(start_paused = true)]
async fn a_loading_server_that_does_not_answer_is_retried() {
    let began = Instant::now();
    let transport = Scripted::with_pages([Reply::error(503, "Loading model"), whole("fine")], move |_| {
        if began.elapsed() < Duration::from_secs(60) {
            PageResponse::NoAnswer
        } else {
            PageResponse::Received(200, Value::Null)
        }
    });
    let mut config = config();
    config.server = Capabilities::of(Dialect::named("llama-cpp"));
    let ended = ask_for_hours(&Worker::start(config, echo(), transport)).await;
    assert_eq!((ended.text(), ended.retries().len()), ("fine", 1));
    assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
}

/// A server that is always healthy and never ready is not retried without limit.
#[tokio::test]
async fn retries_of_a_loading_server_are_limited() {
    let server = Server::answering_all(|_, request| match request.line.as_str() {
        "GET /health" => Answer::whole(200, &[], "{}"),
        _ => Answer::error(503, &[("retry-after-ms", "1")], "Loading model"),
    });
    let ended = ask(&worker(&server, config())).await;
    assert!(ended.failed().2.contains("HTTP 503: Loading model"), "{:?}", ended.outcome);
    assert_eq!(ended.retries().len(), 129);
}

/// The body fallbacks that two concurrent requests needed apply to the third request.
#[tokio::test]
async fn variants_of_concurrent_requests_are_combined() {
    let server = Server::answering(|_, request| {
        let prompt = request.texts("user").concat();
        let has = |member: &str| request.body.get(member).is_some();
        match prompt.as_str() {
            "one" if has("stream_options") => Answer::error(400, &[], "unknown field stream_options"),
            "two" if has("max_tokens") => {
                Answer::error(400, &[], "max_tokens is not supported, use max_completion_tokens instead")
            }
            _ => Answer::text(&prompt),
        }
    });
    let mut config = WorkerConfig { slots: 2, ..config() };
    config.run.params = json!({"max_tokens": 20}).as_object().unwrap().clone();
    let worker = worker(&server, config);
    let ids = ["one", "two"].map(|prompt| worker.submit(SubmitRequest::prompt(prompt)).unwrap());
    for id in &ids {
        finish(&worker, id).await;
    }
    let id = worker.submit(SubmitRequest::prompt("three")).unwrap();
    assert_eq!(finish(&worker, &id).await.text(), "three");
    let last = server.posts().pop().unwrap().body;
    assert_eq!((last.get("stream_options"), last.get("max_tokens")), (None, None), "{last}");
    assert_eq!(last["max_completion_tokens"], 20);
}

/// The status is sufficient.
#[tokio::test]
async fn an_endless_error_body_is_read_up_to_the_limit() {
    let endless = Answer::head(500, &[]).then(Act::Endless(b"5\r\nhello\r\n".to_vec()));
    let server = Server::script([endless]);
    let ended = ask(&worker(&server, config())).await;
    assert!(ended.failed().2.contains("HTTP 500: hello"), "{:?}", ended.outcome);
}

/// A proxy answers with a web page when the model server is down: the endpoint is correct.
#[tokio::test]
async fn a_web_page_with_status_5xx_does_not_blame_the_endpoint() {
    let page = "<html><head><title>nginx</title></head></html>";
    for (status, doubts) in [(400, true), (404, true), (502, false), (500, false)] {
        let server = Server::script([Answer::whole(status, &[], page)]);
        let ended = ask(&worker(&server, config())).await;
        let (.., detail, _) = ended.failed();
        assert_eq!(detail.contains("a model server does not answer with a web page"), doubts, "{detail}");
    }
}

/// The server reports a call that it could not parse with an error status.
#[tokio::test]
async fn a_call_that_a_server_could_not_parse_runs() {
    let failed = json!({"error": {
        "message": "Failed to call a function. See 'failed_generation'.", "code": "tool_use_failed",
        "failed_generation": "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"sea\"}}</tool_call>"
    }});
    let server = Server::script([Answer::whole(400, &[], &failed.to_string()), Answer::text("calm")]);
    let ended = ask(&worker(&server, config())).await;
    assert_eq!(ended.text(), "calm");
    assert_eq!(server.posts()[1].texts("tool"), [r#"{"seen":{"at":"sea"}}"#]);
}

/// The text of earlier turns is already in the conversation.
#[tokio::test]
async fn a_driver_panic_keeps_the_text_of_the_last_turn() {
    let chunks = [delta("so far"), call(0, "look", "{}"), end("stop")];
    let first = chunks.iter().map(event).collect::<String>() + "data: [DONE]\n\n";
    let second = Piece::Bytes(event(&delta("and on")));
    let replies = [Reply::with([Piece::Bytes(first)]), Reply::with([second, Piece::Panic])];
    let worker = Worker::start(config(), echo(), Scripted::new(replies));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    finish(&worker, &id).await.failed();
    let conversation = worker.conversation(&id).unwrap();
    let Some(Message::Assistant { content, .. }) = conversation.last() else { panic!("{conversation:?}") };
    assert!(content.starts_with("and on\n\n"), "{conversation:?}");
}

/// A probe that ends after the worker was stopped has no effect.
#[tokio::test]
async fn a_worker_that_is_stopped_during_a_probe_stays_stopped() {
    let (asked, answer) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (notify, waits) = (Arc::clone(&asked), Arc::clone(&answer));
    let server = Server::pages(move |_| {
        notify.notify_one();
        while waits.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        Answer::whole(200, &[], r#"{"data": []}"#)
    });
    let worker = worker(&server, config());
    let ready = tokio::spawn({
        let worker = worker.clone();
        async move { worker.ready().await }
    });
    asked.notified().await;
    worker.stop();
    answer.store(1, Ordering::SeqCst);
    assert!(ready.await.unwrap().is_err());
    tokio::time::timeout(Duration::from_secs(10), worker.stopped()).await.expect("the worker has ended");
}
