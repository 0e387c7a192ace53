//! The worker over the Responses API: the same loop, events and failures as over chat completions.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Event, FinalState, FinishReason};
use deftool_lang::spec::SystemMessages;
use deftool_test_support::server::{Act, Answer, ClosedPort, Server, event};
use deftool_worker::{SubmitRequest, Worker, WorkerConfig};
use serde_json::{Value, json};

use super::harness::{ask, config, echo, http, wait_for_text, with_timers, worker};

fn over_responses(config: WorkerConfig) -> WorkerConfig {
    WorkerConfig { api: Api::Responses, ..config }
}

/// Returns a text delta.
pub(super) fn said(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text})
}

fn message(text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]})
}

fn call(number: usize, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"), "name": name,
           "arguments": arguments, "status": "completed"})
}

/// Returns the events of a call with its arguments in two deltas.
fn called(number: usize, name: &str, arguments: &str) -> Vec<Value> {
    let (head, tail) = arguments.split_at(1);
    let delta = |piece: &str| {
        json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{number}"),
               "output_index": number, "delta": piece})
    };
    vec![
        json!({"type": "response.output_item.added", "output_index": number, "item": call(number, name, "")}),
        delta(head),
        delta(tail),
        json!({"type": "response.output_item.done", "output_index": number, "item": call(number, name, arguments)}),
    ]
}

fn ended(status: &str, members: &Value) -> Value {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let mut response = json!({"object": "response", "status": status, "model": "scripted", "usage": usage});
    response.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap());
    json!({"type": format!("response.{status}"), "response": response})
}

pub(super) fn completed() -> Value {
    ended("completed", &json!({}))
}

/// Returns a stream with event names, like real servers.
pub(super) fn events(events: &[Value]) -> Answer {
    let created = json!({"type": "response.created", "response": {"status": "in_progress", "output": []}});
    [created].iter().chain(events).fold(Answer::stream(), |answer, value| {
        answer.piece(format!("event: {}\n{}", value["type"].as_str().unwrap(), event(value)))
    })
}

/// Returns a complete reply with text and calls.
pub(super) fn turn(text: &str, calls: &[(&str, &str)]) -> Answer {
    let mut all = vec![said(text)];
    for (index, (name, arguments)) in calls.iter().enumerate() {
        all.extend(called(index + 1, name, arguments));
    }
    all.push(completed());
    events(&all).end()
}

#[tokio::test]
async fn a_call_runs_and_its_result_answer_and_signal_are_kept() {
    let server = Server::script([
        turn("Looking. ", &[("look", r#"{"at": "sea"}"#), ("done", r#"{"at": "early"}"#), ("look", "{}")]),
        turn("It is calm.", &[("done", r#"{"at": "end"}"#)]),
    ]);
    let mut config = over_responses(config());
    let params = json!({"temperature": 0, "max_tokens": 50, "reasoning_effort": "low"});
    config.run.params = params.as_object().unwrap().clone();
    config.run.system = Some(String::from("Be brief."));
    config.run.system_messages = SystemMessages::Separate;
    let ended = ask(&worker(&server, config)).await;

    assert_eq!(ended.text(), "Looking. It is calm.");
    assert_eq!((ended.outcome.finish_reason, ended.outcome.tool_iterations), (FinishReason::Stop, 1));
    let usage = ended.outcome.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (20, 10));
    let signals: Vec<_> = ended.outcome.signals.iter().map(|signal| &signal.arguments).collect();
    assert_eq!(signals, [&json!({"at": "early"}), &json!({"at": "end"})]);
    assert_eq!(ended.names().iter().filter(|name| *name == "tool_finished").count(), 2);

    let posts = server.posts();
    assert_eq!(posts.len(), 2);
    for post in &posts {
        assert_eq!(post.line, "POST /v1/responses");
        let members: Vec<&str> = post.body.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "model",
            "input",
            "tools",
            "temperature",
            "max_output_tokens",
            "reasoning",
            "stream",
            "store",
            "include",
        ];
        assert_eq!(members, expected);
        assert_eq!((&post.body["stream"], &post.body["store"]), (&json!(true), &json!(false)));
        assert_eq!(post.body["reasoning"], json!({"effort": "low"}));
        let tools = post.body["tools"].as_array().unwrap();
        let flat =
            |tool: &Value| tool["type"] == "function" && tool["name"].is_string() && tool["strict"] == false;
        assert!(tools.len() == 3 && tools.iter().all(flat), "{tools:?}");
    }
    let input = posts[1].body["input"].as_array().unwrap();
    let kinds: Vec<&str> =
        input.iter().map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap()).collect();
    let expected = [
        "system",
        "system",
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected, "exit calls are not part of the conversation");
    assert_eq!(input[1]["content"], json!([{"type": "input_text", "text": "Be brief."}]));
    assert_eq!(input[3]["content"][0]["text"], "Looking.");
    for (call, output) in [(4, 6), (5, 7)] {
        assert_eq!(input[call]["call_id"], input[output]["call_id"]);
    }
    assert_eq!(input[4]["arguments"], r#"{"at": "sea"}"#);
    assert_eq!(input[6]["output"], r#"{"seen":{"at":"sea"}}"#);
}

#[tokio::test]
async fn combined_system_messages_are_one_item() {
    let server = Server::script([turn("Hello.", &[])]);
    let mut config = over_responses(config());
    config.run.system = Some(String::from("Be brief."));
    config.run.system_messages = SystemMessages::Combined;
    assert_eq!(ask(&worker(&server, config)).await.text(), "Hello.");
    let posts = server.posts();
    let input = posts[0].body["input"].as_array().unwrap();
    let roles: Vec<&str> = input.iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user"]);
    let text = input[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("\n\nBe brief."), "{input:?}");
}

/// The expected end of a request with one turn.
struct Case {
    name: &'static str,
    answers: Vec<Answer>,
    /// Kind of the failure, or empty.
    kind: &'static str,
    says: &'static [&'static str],
    text: &'static str,
    posts: usize,
}

impl Case {
    /// Runs the case. Returns an error text if it fails.
    async fn play(self) -> Option<String> {
        let Self { name, answers, kind, says, text, posts } = self;
        let server = Server::script(answers);
        let config = with_timers(|timers| timers.stall = Duration::from_millis(600));
        let ended = ask(&worker(&server, over_responses(config))).await;
        let outcome = &ended.outcome;
        let detail = outcome.detail.clone().unwrap_or_default();
        let url = format!("{}/responses", server.endpoint());
        let seen = server.posts();
        let is_right = outcome.kind.as_deref().unwrap_or_default() == kind
            && outcome.text == text
            && says.iter().all(|part| detail.contains(&part.replace("URL", &url)))
            && seen.len() == posts
            && seen.iter().all(|post| post.line == "POST /v1/responses");
        (!is_right).then(|| format!("{name}: {} requests, {outcome:#?}", seen.len()))
    }
}

fn case(
    name: &'static str,
    answers: Vec<Answer>,
    kind: &'static str,
    says: &'static [&'static str],
    text: &'static str,
    posts: usize,
) -> Case {
    Case { name, answers, kind, says, text, posts }
}

async fn play_all(cases: Vec<Case>) {
    let played = futures_util::future::join_all(cases.into_iter().map(Case::play)).await;
    let wrong: Vec<String> = played.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_end_of_a_reply_is_reported_as_over_chat_completions_and_keeps_the_text() {
    let begun = || events(&[said("so far")]);
    let cut = called(1, "look", r#"{"at": "se"#);
    let with_cut = |last: Value| events(&[&[said("so far")], &cut[..3], &[last]].concat()).end();
    let out_of_tokens =
        || ended("incomplete", &json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    let failed = |code: &str, message: &str| {
        let error = json!({"error": {"code": code, "message": message}});
        events(&[said("so far"), ended("failed", &error)]).end()
    };
    let whole = json!({"object": "response", "status": "completed", "output": [message("in one piece")]});
    let cases = vec![
        case(
            "a whole reply as JSON",
            vec![Answer::whole(200, &[], &whole.to_string())],
            "",
            &[],
            "in one piece",
            1,
        ),
        case("byte by byte", vec![turn("naïve 😀", &[]).byte_by_byte()], "", &[], "naïve 😀", 1),
        case(
            "open after the end",
            vec![events(&[said("hi"), completed()]).then(Act::Silence)],
            "",
            &[],
            "hi",
            1,
        ),
        case("out of tokens", vec![events(&[said("so far"), out_of_tokens()]).end()], "", &[], "so far", 1),
        case(
            "a call cut",
            vec![with_cut(out_of_tokens())],
            "call_truncated",
            &["`look`", ":max-tokens"],
            "so far",
            1,
        ),
        case("reset", vec![begun().then(Act::Reset)], "stream_incomplete", &["cut off: URL"], "so far", 1),
        case("no end", vec![begun().end()], "stream_incomplete", &["the stream ended before"], "so far", 1),
        case(
            "stalled",
            vec![begun().then(Act::Silence)],
            "stall_timeout",
            &["URL: no byte for"],
            "so far",
            1,
        ),
        case("failed", vec![failed("server_error", "cuda")], "server_error", &["cuda"], "so far", 1),
        case(
            "too long a prompt, in the stream",
            vec![failed("context_length_exceeded", "too long")],
            "context_overflow",
            &["too long"],
            "so far",
            1,
        ),
        case(
            "an error event",
            vec![events(&[said("so far"), json!({"type": "error", "code": "x", "message": "boom"})]).end()],
            "server_error",
            &["boom"],
            "so far",
            1,
        ),
    ];
    play_all(cases).await;
}

#[tokio::test]
async fn http_errors_are_reported_with_the_url_of_the_api() {
    let cases = vec![
        case(
            "retried",
            vec![
                Answer::error(429, &[("retry-after-ms", "5")], "slow"),
                Answer::error(503, &[("retry-after", "0")], "loading"),
                turn("fine", &[]),
            ],
            "",
            &[],
            "fine",
            3,
        ),
        case(
            "no such API",
            vec![Answer::error(404, &[], "not found")],
            "http_error",
            &["URL: HTTP 404: not found", "`:api responses`"],
            "",
            1,
        ),
        case("no key", vec![Answer::error(401, &[], "no key")], "http_error", &["OPENAI_API_KEY"], "", 1),
        case(
            "redirected",
            vec![Answer::whole(307, &[("location", "http://other/v1/responses")], "")],
            "http_error",
            &["use http://other/v1 as the endpoint"],
            "",
            1,
        ),
        case(
            "no variant applies",
            vec![Answer::error(400, &[], "stream_options? max_tokens? max_completion_tokens?")],
            "http_error",
            &["HTTP 400"],
            "",
            1,
        ),
        case(
            "an empty stream, explained",
            vec![events(&[]).end(), Answer::error(400, &[], "the prompt is too long by far")],
            "empty_stream",
            &["URL returned HTTP 200 with an empty stream", "HTTP 400: the prompt is too long by far"],
            "",
            2,
        ),
        case(
            "HTML",
            vec![Answer::whole(200, &[], "<title>Sign in</title>")],
            "empty_stream",
            &["URL returned HTTP 200 with a body that is not a reply: Sign in"],
            "",
            1,
        ),
    ];
    play_all(cases).await;
}

#[tokio::test]
async fn the_token_limit_and_the_probe_work_as_over_chat_completions() {
    let incomplete = ended("incomplete", &json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    let server = Server::script([events(&[said("and so"), incomplete]).end()]);
    let ended = ask(&worker(&server, over_responses(config()))).await;
    assert_eq!((ended.text(), ended.outcome.finish_reason), ("and so", FinishReason::MaxTokens));

    let server = Server::script([events(&[]).end(), Answer::error(400, &[], "why")]);
    ask(&worker(&server, over_responses(config()))).await;
    let bodies: Vec<Value> = server.posts().into_iter().map(|post| post.body).collect();
    assert_eq!((&bodies[0]["stream"], &bodies[1]["stream"]), (&json!(true), &json!(false)));
    assert_eq!(bodies[0]["input"], bodies[1]["input"]);

    let nobody = ClosedPort::reserve();
    let worker = Worker::start(over_responses(config()), echo(), http(&nobody.endpoint(), None));
    let ended = ask(&worker).await;
    let (_, kind, detail, _) = ended.failed();
    assert_eq!(kind, "connect_failed");
    assert!(detail.contains(&format!("connection to {}/responses", nobody.endpoint())), "{detail}");
}

#[tokio::test]
async fn a_built_in_tool_of_the_server_is_reported_and_skipped() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let search = json!({"type": "response.output_item.done", "output_index": 0, "item": search});
    let server = Server::script([events(&[search, said("Found."), completed()]).end()]);
    let ended = ask(&worker(&server, over_responses(config()))).await;
    assert_eq!(ended.text(), "Found.");
    let warnings: Vec<&str> = ended
        .events
        .iter()
        .filter_map(
            |event| if let Event::Warning { message } = event { Some(message.as_str()) } else { None },
        )
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("/responses: the reply contains web_search_call"), "{warnings:?}");
}

#[tokio::test]
async fn a_cancel_disconnects_and_keeps_the_text() {
    let server = Server::script([events(&[said("so far")]).then(Act::Silence)]);
    let worker = worker(&server, over_responses(config()));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    wait_for_text(&worker, &id, 6).await;
    worker.cancel(&id);
    let ended = super::harness::finish(&worker, &id).await;
    assert_eq!((ended.outcome.state, ended.outcome.text.as_str()), (FinalState::Canceled, "so far"));
    assert_eq!(worker.in_flight(), 0);
    let server = Arc::new(server);
    tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
}
