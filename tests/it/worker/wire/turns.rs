//! Several turns of one request, and concurrent requests.

use std::time::Duration;

use deftool_chat::request::{Event, OnFailure};
use deftool_chat::{Api, Capabilities, Dialect};
use deftool_lang::tool::ToolCall;
use deftool_test_support::server::{Act, Answer, Server, Texts, call, delta, finish};
use deftool_worker::{SubmitRequest, Worker, WorkerConfig};
use serde_json::json;

use super::super::harness::*;

/// The text of a turn must not be lost when a later turn fails.
#[tokio::test]
async fn text_of_earlier_turns_is_kept_after_any_failure() {
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

/// Reports about `OpenRouter`, `DeepSeek` and vLLM.
#[tokio::test]
async fn an_empty_reply_is_requested_once_more_over_each_api() {
    let native = json!({"choices": [{
        "index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop",
        "native_finish_reason": "network_error"
    }]});
    let server = Server::script([Answer::chunks(&[native])]);
    let ended = ask(&worker(&server, config())).await;
    let (_, kind, detail, _) = ended.failed();
    assert_eq!((kind, server.posts().len()), ("server_error", 1));
    assert!(detail.contains("`network_error`"), "{detail}");

    for api in Api::ALL {
        let called = || Answer::reply(api, &[call(0, "look", "{}"), finish("tool_calls")]);
        let empty = || {
            let calls =
                json!({"choices": [{"index": 0, "delta": {"tool_calls": []}, "finish_reason": null}]});
            let calls = if api == Api::ChatCompletions { vec![calls; 20] } else { Vec::new() };
            Answer::reply(
                api,
                &[delta("")].into_iter().chain(calls).chain([finish("stop")]).collect::<Vec<_>>(),
            )
        };
        let done = || turn(api, "All done.", &[]);
        for (answers, end) in [
            (vec![empty(), done()], "All done."),
            (vec![called(), empty(), done()], "All done."),
            (vec![called(), empty(), empty()], ""),
            (vec![empty(), empty()], "empty_stream"),
        ] {
            let posts = answers.len();
            let server = Server::script(answers);
            let ended = ask(&worker(&server, WorkerConfig { api, ..config() })).await;
            let found = ended.outcome.kind.clone().unwrap_or_else(|| ended.outcome.text.clone());
            assert_eq!((found.as_str(), server.posts().len()), (end, posts), "{api:?}");
            let warned = ended.events.iter().any(|event| matches!(event, Event::Warning { .. }));
            assert!(warned, "{api:?} {end}");
        }
    }
}

/// Ollama and llama.cpp.
#[tokio::test]
async fn a_call_that_the_server_cannot_parse_is_requested_again_and_then_reported() {
    let messages = [
        "error parsing tool call: raw='{\"n\": oops}', err=invalid character 'o'",
        "Failed to parse input at pos 12: <tool_call>",
    ];
    for message in messages {
        let unparsed = || Answer::error(500, &[], message);
        let done = || Answer::text("All done.");
        for (on_invalid_arguments, answers, end) in [
            (OnFailure::Fail, vec![unparsed(), done()], "All done."),
            (OnFailure::Fail, vec![unparsed(), unparsed()], "http_error"),
            (OnFailure::Report, vec![unparsed(), unparsed(), done()], "All done."),
        ] {
            let posts = answers.len();
            let server = Server::script(answers);
            let mut config = config();
            config.server = Capabilities::of(Dialect::named("ollama"));
            config.run.on_invalid_arguments = on_invalid_arguments;
            let ended = ask(&worker(&server, config)).await;
            let found = ended.outcome.kind.clone().unwrap_or_else(|| ended.outcome.text.clone());
            assert_eq!((found.as_str(), server.posts().len()), (end, posts), "{message}");
            if posts == 3 {
                let last = server.posts().pop().unwrap().body.to_string();
                assert!(last.contains(&message[..20]), "{last}");
            }
        }
    }
}

/// Servers close idle connections. The next turn must not use a closed connection.
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

/// llama.cpp closes a connection after each stream, and its head announces the opposite. If the tool is fast, the next turn
/// must not be sent on the connection that is about to be closed.
#[tokio::test]
async fn a_connection_that_a_local_server_will_close_is_not_used() {
    for dialect in [
        Dialect::named("llama-cpp"),
        Dialect::named("vllm"),
        Dialect::named("ollama"),
        Dialect::named("lm-studio"),
    ] {
        let closing =
            || Answer::calls(&[("look", "{}")]).then(Act::Wait(Duration::from_millis(200))).then(Act::Close);
        let server = Server::script([closing(), closing(), Answer::text("fine")]);
        let worker = worker(&server, WorkerConfig { server: Capabilities::of(dialect), ..config() });
        let ended = ask(&worker).await;
        assert_eq!((ended.text(), ended.retries()), ("fine", vec![]), "{dialect:?}");
        assert_eq!(server.connections(), 3, "{dialect:?}");
    }
}

#[tokio::test]
async fn concurrent_requests_are_independent() {
    let server = Server::answering(|_, request| {
        let prompt = request.texts("user")[0].clone();
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
        let ended = super::super::harness::finish(&worker, id).await;
        assert_eq!(ended.text(), format!("n{number} ").repeat(20));
    }
}
