//! The main loop: the requests of each turn.

use std::sync::Arc;

use deftool_chat::Api;
use deftool_chat::request::{Event, FinishReason};
use deftool_lang::spec::{BiosBudget, StringResults};
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_test_support::server::{Answer, Server, Texts, call, delta, finish, usage, without_budget};
use deftool_worker::{SubmitRequest, Worker};
use serde_json::{Value, json};

use super::harness::*;
use super::simulation::wire;

#[tokio::test]
async fn a_call_runs_and_its_result_answer_and_signal_are_kept() {
    for api in Api::ALL {
        let server = Server::script([
            Answer::reply(
                api,
                &[
                    delta("Looking. "),
                    call(0, "look", r#"{"at": "sea"}"#),
                    call(1, "done", r#"{"at": "early"}"#),
                    call(2, "look", "{}"),
                    finish("tool_calls"),
                    usage(10, 5),
                ],
            ),
            Answer::reply(
                api,
                &[
                    delta("It is calm."),
                    call(0, "done", r#"{"at": "end"}"#),
                    finish("tool_calls"),
                    usage(20, 6),
                ],
            ),
        ]);
        let mut config = over(api);
        config.run.params = json!({"temperature": 0, "max_tokens": 50}).as_object().unwrap().clone();
        let worker = Worker::start(config, echo(), http(&server.endpoint(), None));
        let ended = ask(&worker).await;

        assert_eq!(ended.text(), "Looking. It is calm.");
        assert_eq!((ended.outcome.finish_reason, ended.outcome.tool_iterations), (FinishReason::Stop, 1));
        let usage = ended.outcome.usage.unwrap();
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (30, 11));
        let signals: Vec<_> = ended.outcome.signals.iter().map(|signal| &signal.arguments).collect();
        assert_eq!(signals, [&json!({"at": "early"}), &json!({"at": "end"})]);
        let loop_names = [
            "submitted",
            "turn_started",
            "text",
            "signal",
            "tool_call",
            "tool_call",
            "tool_started",
            "tool_finished",
            "tool_started",
            "tool_finished",
            "budget",
            "turn_started",
            "text",
            "signal",
            "finished",
        ];
        assert_eq!(ended.names(), loop_names, "{api:?}");

        let posts = server.posts();
        assert_eq!(posts.len(), 2);
        for post in &posts {
            assert_eq!(post.line, format!("POST {}", api_path(api)));
            assert_eq!(post.header("authorization"), None);
            assert_eq!(post.header("accept-encoding"), Some("identity"));
            assert_eq!(post.header("x-conversation-id"), None);
            assert_eq!(post.body["stream"], true);
            assert_eq!(post.body["model"], "scripted");
            assert_eq!(post.body["temperature"], 0);
            assert_eq!(post.body["tools"].as_array().unwrap().len(), 3);
            if api == Api::ChatCompletions {
                assert_eq!(post.body["stream_options"], json!({"include_usage": true}));
                assert_eq!(post.body["max_tokens"], 50);
            }
        }
        assert_eq!(posts[0].texts("user"), ["hello"]);
        check_conversation(&posts[1].body);
    }
}

/// Checks the conversation of the second turn.
fn check_conversation(body: &Value) {
    let messages = wire::messages(body).unwrap();
    let at = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    let [assistant, first, second] = &messages[at..] else { panic!("{messages:?}") };
    assert_eq!(assistant["content"], "Looking. ");
    let calls = assistant["tool_calls"].as_array().unwrap();
    let names: Vec<&Value> = calls.iter().map(|call| &call["function"]["name"]).collect();
    assert_eq!(names, ["look", "look"], "the exit call is not part of the conversation");
    for (call, result) in calls.iter().zip([first, second]) {
        let id = call["id"].as_str().unwrap();
        assert!(!id.is_empty());
        assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!(id)));
    }
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let results = [first, second].map(|result| without_budget(result["content"].as_str().unwrap()));
    assert_eq!(results, [r#"{"seen":{"at":"sea"}}"#, r#"{"seen":{}}"#]);
}

#[tokio::test]
async fn a_key_is_sent_as_a_bearer_token() {
    let server = Server::script([Answer::text("hi")]);
    let worker = Worker::start(config(), echo(), http(&server.endpoint(), Some("sk-one-two-three")));
    assert_eq!(ask(&worker).await.text(), "hi");
    assert_eq!(server.posts()[0].header("authorization"), Some("Bearer sk-one-two-three"));
}

#[tokio::test]
async fn a_turn_uses_its_tools_to_the_end_and_the_next_turn_uses_the_newest() {
    struct Changing(std::sync::Mutex<deftool_worker::Toolbox>);
    impl deftool_worker::ToolSource for Changing {
        fn current(&self) -> deftool_worker::Toolbox {
            self.0.lock().unwrap().clone()
        }
    }
    let generation = |number: u64| {
        let answer = move |_, _| async move { Ok(json!(number)) };
        let toolbox = toolbox(FakeTools(answer));
        deftool_worker::Toolbox { generation: number, ..(*toolbox).clone() }
    };
    let source = Arc::new(Changing(std::sync::Mutex::new(generation(1))));
    let reloaded = Arc::clone(&source);
    let reload = deftool_test_support::server::Act::Do(Arc::new(move || {
        *reloaded.0.lock().unwrap() = generation(2);
    }));
    let calls = [call(0, "look", "{}"), finish("tool_calls")];
    let first = calls.iter().fold(Answer::stream().then(reload), Answer::chunk).done().end();
    let server = Server::script([first, Answer::chunks(&calls), Answer::text("over")]);
    let worker = Worker::start(config(), source, http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    assert_eq!(ended.text(), "over");
    assert_eq!(server.posts()[2].texts("tool"), ["1", "2"]);
    let names = ended.names();
    let reloads: Vec<usize> = (0..names.len()).filter(|&at| names[at] == "reloaded").collect();
    assert_eq!(reloads.len(), 1, "{names:?}");
    assert_eq!(names[reloads[0] + 1], "turn_started");
    assert!(
        ended
            .events
            .contains(&Event::Reloaded { generation: 2, detail: String::from("the tools were reloaded") })
    );
}

#[tokio::test]
async fn a_failing_or_panicking_tool_fails_only_its_request_and_keeps_the_text() {
    let server = Server::answering(|_, _| {
        Answer::chunks(&[delta("before"), call(0, "look", "{}"), finish("tool_calls")])
    });
    let failing =
        |_: ToolCall, _| async { Err(ToolError::new(ToolErrorKind::Script, "scripts/look.lua:2: no luck")) };
    let worker = Worker::start(config(), toolbox(FakeTools(failing)), http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    let (reason, kind, detail, text) = ended.failed();
    assert_eq!((reason.as_str(), kind, text), ("tool_execution_error", "script", "before"));
    assert_eq!(detail, "look: scripts/look.lua:2: no luck");

    let panicking = |_: ToolCall, _| async { panic!("a bug of the tool") };
    let worker = Worker::start(config(), toolbox(FakeTools(panicking)), http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    let (reason, kind, detail, text) = ended.failed();
    assert_eq!((reason.as_str(), kind, text), ("tool_execution_error", "internal", "before"));
    assert!(detail.contains("look: the tool runner panicked"), "{detail}");
    assert_eq!(worker.in_flight(), 0);
    // The worker accepts the next request.
    worker.submit(SubmitRequest::prompt("again")).unwrap();
}

#[tokio::test]
async fn a_call_context_contains_the_request_and_the_limit() {
    let server = Server::script([Answer::calls(&[("look", "{}"), ("slow", "{}")]), Answer::text("")]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let runner = FakeTools(move |call: ToolCall, context: deftool_lang::tool::CallContext| {
        log.lock().unwrap().push((call.name, context));
        async { Ok(Value::Null) }
    });
    let worker = Worker::start(config(), toolbox(runner), http(&server.endpoint(), None));
    let request = SubmitRequest { job_name: String::from("job"), ..SubmitRequest::prompt("hello") };
    let id = worker.submit(request).unwrap();
    super::harness::finish(&worker, &id).await;
    let seen = seen.lock().unwrap();
    let limits: Vec<_> =
        seen.iter().map(|(name, context)| (name.as_str(), context.timeout.unwrap())).collect();
    let (of_worker, of_tool) = (config().timers.tool, std::time::Duration::from_millis(50));
    assert_eq!(limits, [("look", of_worker), ("slow", of_tool)], "the tool's own limit wins");
    for (_, context) in seen.iter() {
        assert_eq!((context.request_id.as_str(), context.job_name.as_str()), (id.as_str(), "job"));
    }
}

/// A server finds a text in its cache only if it is unchanged, and some require the content of an empty result.
#[tokio::test]
async fn text_and_empty_results_go_back_as_they_came() {
    for api in Api::ALL {
        let text = "\n Looking. \n";
        let server = Server::script([turn(api, text, &[("look", "{}")]), turn(api, "fine", &[])]);
        let empty = toolbox(FakeTools(|_: ToolCall, _| async { Ok(json!("")) }));
        let mut config = over(api);
        config.run.string_results = StringResults::Raw;
        config.run.bios_budget = BiosBudget::Head;
        let worker = Worker::start(config, empty, http(&server.endpoint(), None));
        ask(&worker).await;
        let sent = server.posts()[1].body.to_string();
        assert!(sent.contains(&json!(text).to_string()), "{api:?}: {sent}");
        let result = match api {
            Api::ChatCompletions => r#""tool_call_id":"call_0","content":"""#,
            Api::Responses => r#""output":"""#,
            Api::Messages => r#""content":"""#,
        };
        assert!(sent.contains(result), "{api:?}: {sent}");
    }
}
