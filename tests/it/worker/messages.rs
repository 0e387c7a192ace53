//! The worker over the Messages API: the same loop, events and failures as over chat completions.

use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Event, FinishReason};
use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_record::{EntryKind, Recording, Timeline};
use deftool_test_support::server::{Act, Answer, Server, event};
use deftool_worker::{Worker, WorkerConfig};
use serde_json::{Value, json};

use super::harness::{Ended, FakeTools, ask, config, http, toolbox, with_timers, worker};
use super::replay::record;

pub(super) fn over_messages(config: WorkerConfig) -> WorkerConfig {
    WorkerConfig { api: Api::Messages, ..config }
}

/// Returns the events of a content block: its start, its deltas and its end.
fn block(index: usize, start: &Value, deltas: &[Value]) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": start});
    let deltas =
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let stop = json!({"type": "content_block_stop", "index": index});
    std::iter::once(start).chain(deltas).chain([stop]).collect()
}

pub(super) fn said(index: usize, text: &str) -> Vec<Value> {
    block(index, &json!({"type": "text", "text": ""}), &[json!({"type": "text_delta", "text": text})])
}

fn thought(index: usize, text: &str, signature: &str) -> Vec<Value> {
    let deltas = [
        json!({"type": "thinking_delta", "thinking": text}),
        json!({"type": "signature_delta", "signature": signature}),
    ];
    block(index, &json!({"type": "thinking", "thinking": "", "signature": ""}), &deltas)
}

/// Returns the events of a call with its arguments in two deltas.
fn called(index: usize, name: &str, arguments: &str) -> Vec<Value> {
    let (head, tail) = arguments.split_at(1);
    let delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
    let start = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}});
    block(index, &start, &[delta(head), delta(tail)])
}

pub(super) fn ended(stop_reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
}

/// Returns a stream with event names, like real servers.
pub(super) fn events(events: &[Vec<Value>]) -> Answer {
    let usage = json!({"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1});
    let message =
        json!({"id": "msg_1", "role": "assistant", "model": "scripted", "content": [], "usage": usage});
    let start = json!({"type": "message_start", "message": message});
    [start, json!({"type": "ping"})]
        .iter()
        .chain(events.iter().flatten())
        .fold(Answer::stream(), |answer, value| {
            answer.piece(format!("event: {}\n{}", value["type"].as_str().unwrap(), event(value)))
        })
}

/// Returns a complete reply with text and calls.
pub(super) fn turn(text: &str, calls: &[(&str, &str)]) -> Answer {
    let mut all = if text.is_empty() { Vec::new() } else { vec![said(0, text)] };
    for (index, (name, arguments)) in calls.iter().enumerate() {
        all.push(called(index + 1, name, arguments));
    }
    all.push(ended(if calls.is_empty() { "end_turn" } else { "tool_use" }));
    events(&all).end()
}

fn warnings(ended: &Ended) -> Vec<&str> {
    let warnings = ended.events.iter().filter_map(|event| match event {
        Event::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    warnings.collect()
}

#[tokio::test]
async fn a_call_runs_and_its_result_answer_and_signal_are_kept() {
    let calls = [
        called(2, "look", r#"{"at": "sea"}"#),
        called(3, "done", r#"{"at": "early"}"#),
        called(4, "slow", "{}"),
    ];
    let thinking = [thought(0, "I must look.", "SIG=="), said(1, "Looking. ")];
    let first = events(&[&thinking[..], &calls, &[ended("tool_use")]].concat()).end();
    let server = Server::script([first, turn("It is calm.", &[("done", r#"{"at": "end"}"#)])]);
    let mut config = over_messages(config());
    let params = json!({"temperature": 0, "max_tokens": 50, "stop": "x", "thinking": {"type": "adaptive"}});
    config.run.params = params.as_object().unwrap().clone();
    config.run.system = Some(String::from("Be brief."));
    config.run.on_tool_error = OnFailure::Report;
    let tools = toolbox(FakeTools(|call: ToolCall, _| async move {
        if call.name == "slow" {
            Err(ToolError::new(ToolErrorKind::Timeout, "no answer"))
        } else {
            Ok(json!({"seen": call.arguments}))
        }
    }));
    let ended = ask(&Worker::start(config, tools, http(&server.endpoint(), Some("sk-key-0123")))).await;

    assert_eq!(ended.text(), "Looking. It is calm.");
    assert_eq!(ended.outcome.reasoning.as_deref(), Some("I must look."));
    assert_eq!((ended.outcome.finish_reason, ended.outcome.tool_iterations), (FinishReason::Stop, 1));
    let usage = ended.outcome.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens), (20, 10, Some(8)));
    let signals: Vec<_> = ended.outcome.signals.iter().map(|signal| &signal.arguments).collect();
    assert_eq!(signals, [&json!({"at": "early"}), &json!({"at": "end"})]);

    let posts = server.posts();
    assert_eq!(posts.len(), 2);
    for post in &posts {
        assert_eq!(post.line, "POST /v1/messages");
        assert_eq!(post.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(post.header("x-api-key"), Some("sk-key-0123"));
        assert_eq!(post.header("authorization"), Some("Bearer sk-key-0123"));
        let members: Vec<&str> = post.body.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "model",
            "max_tokens",
            "system",
            "messages",
            "tools",
            "temperature",
            "stop_sequences",
            "thinking",
            "stream",
        ];
        assert_eq!(members, expected);
        let tools = post.body["tools"].as_array().unwrap();
        assert!(
            tools.len() == 3 && tools.iter().all(|tool| tool["input_schema"]["type"] == "object"),
            "{tools:?}"
        );
    }
    let body = &posts[1].body;
    assert!(body["system"][0]["text"].as_str().unwrap().ends_with("\n\nBe brief."), "{body}");
    let expected = json!([
        {"type": "thinking", "thinking": "I must look.", "signature": "SIG=="},
        {"type": "text", "text": "Looking. "},
        {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"at": "sea"}},
        {"type": "tool_use", "id": "toolu_4", "name": "slow", "input": {}},
    ]);
    assert_eq!(
        body["messages"][1],
        json!({"role": "assistant", "content": expected}),
        "exit calls are left out"
    );
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(results[0]["content"], r#"{"seen":{"at":"sea"}}"#);
    let members =
        |index: usize| [&results[index]["tool_use_id"], &results[index]["is_error"]].map(Value::clone);
    assert_eq!([members(0), members(1)], [[json!("toolu_2"), json!(null)], [json!("toolu_4"), json!(true)]]);
}

#[tokio::test]
async fn a_paused_reply_goes_back_and_continues_until_the_budget_is_spent() {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}});
    let paused = || events(&[said(0, "Searching. "), block(1, &search, &[]), ended("pause_turn")]).end();
    let server = Server::script([paused(), turn("Found.", &[])]);
    let mut config = over_messages(config());
    config.run.tool_budget = 1;
    let ended = ask(&worker(&server, config.clone())).await;
    assert_eq!(ended.text(), "Searching. Found.");
    let posts = server.posts();
    let content = json!([{"type": "text", "text": "Searching. "}, search]);
    assert_eq!(posts[1].body["messages"][1], json!({"role": "assistant", "content": content}));
    assert_eq!(posts[1].body["messages"].as_array().unwrap().len(), 2);
    let found = warnings(&ended);
    assert!(found.len() == 1 && found[0].contains("the reply contains server_tool_use"), "{found:?}");

    let server = Server::script([paused()]);
    let ended = ask(&worker(&server, config)).await;
    assert_eq!((ended.text(), server.posts().len()), ("Searching. Searching. ", 2));
    let found = warnings(&ended);
    assert!(found.iter().any(|message| message.contains("`pause_turn`")), "{found:?}");
}

#[tokio::test]
async fn ends_other_than_by_the_model_are_named() {
    for (stop_reason, finish_reason, warning) in [
        ("refusal", FinishReason::ContentFilter, "`refusal`"),
        ("model_context_window_exceeded", FinishReason::MaxTokens, "the context of the model is full"),
        ("max_tokens", FinishReason::MaxTokens, ""),
        ("nap", FinishReason::Stop, "unknown finish reason `nap`"),
    ] {
        let server = Server::script([events(&[said(0, "so far"), ended(stop_reason)]).end()]);
        let ended = ask(&worker(&server, over_messages(config()))).await;
        assert_eq!((ended.text(), ended.outcome.finish_reason), ("so far", finish_reason), "{stop_reason}");
        let found = warnings(&ended).concat();
        assert!(found.contains(warning) && found.is_empty() == warning.is_empty(), "{stop_reason}: {found}");
    }
}

#[tokio::test]
async fn a_refusal_is_explained_as_the_server_explains_it() {
    for (details, expected) in [
        (
            json!({"type": "refusal", "category": "cyber", "explanation": "Not\nallowed."}),
            "`refusal`: cyber: Not\\nallowed.",
        ),
        (
            json!({"type": "refusal", "category": null, "explanation": "Not allowed."}),
            "`refusal`: Not allowed.",
        ),
        (json!({"type": "refusal", "category": "bio", "explanation": null}), "`refusal`: bio"),
        (json!({"type": "refusal"}), "`refusal`"),
        (json!("no"), "`refusal`"),
        (Value::Null, "`refusal`"),
    ] {
        let delta =
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}});
        let whole = json!({
            "type": "message", "role": "assistant", "content": [{"type": "text", "text": "so far"}],
            "stop_reason": "refusal", "stop_details": details,
        });
        let stop = json!({"type": "message_stop"});
        for answer in [events(&[said(0, "so far"), vec![delta, stop]]).end(), Answer::json(200, &whole)] {
            let server = Server::script([answer]);
            let ended = ask(&worker(&server, over_messages(config()))).await;
            let expected = format!("the server's content filter ended the reply: {expected}");
            assert_eq!((ended.text(), warnings(&ended)), ("so far", vec![expected.as_str()]));
        }
    }
}

#[tokio::test]
async fn a_refused_signature_is_dropped_once() {
    let first = || events(&[thought(0, "hm", "SIG"), called(1, "look", "{}"), ended("tool_use")]).end();
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let server = Server::script([first(), Answer::error(400, &[], refusal), turn("Fine.", &[])]);
    let ended = ask(&worker(&server, over_messages(config()))).await;
    assert_eq!(ended.text(), "Fine.");
    let kinds: Vec<String> = server
        .posts()
        .iter()
        .skip(1)
        .map(|post| post.body["messages"][1]["content"][0]["type"].to_string())
        .collect();
    assert_eq!(kinds, ["\"thinking\"", "\"tool_use\""]);

    let server = Server::script([first(), Answer::error(400, &[], refusal)]);
    let ended = ask(&worker(&server, over_messages(config()))).await;
    assert_eq!((ended.failed().1, server.posts().len()), ("http_error", 3));
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

impl Case {
    /// Runs the case. Returns an error text if it fails.
    async fn play(self) -> Option<String> {
        let Self { name, answers, kind, says, text, posts } = self;
        let server = Server::script(answers);
        let config = with_timers(|timers| timers.stall = Duration::from_millis(600));
        let ended = ask(&worker(&server, over_messages(config))).await;
        let outcome = &ended.outcome;
        let detail = outcome.detail.clone().unwrap_or_default();
        let url = format!("{}/messages", server.endpoint());
        let seen = server.posts();
        let is_right = outcome.kind.as_deref().unwrap_or_default() == kind
            && outcome.text == text
            && says.iter().all(|part| detail.contains(&part.replace("URL", &url)))
            && seen.len() == posts;
        (!is_right).then(|| format!("{name}: {} requests, {outcome:#?}", seen.len()))
    }
}

/// Returns an HTTP error in the form of the API.
fn error(status: u16, kind: &str, message: &str) -> Answer {
    let error = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    Answer::whole(status, &[("retry-after-ms", "5")], &error.to_string())
}

fn in_stream(kind: &str) -> Vec<Value> {
    vec![json!({"type": "error", "error": {"type": kind, "message": "boom"}})]
}

fn fine() -> Answer {
    turn("fine", &[])
}

/// Returns replies, most of which have no regular end.
fn replies() -> Vec<Case> {
    let begun = || events(&[said(0, "so far")[..2].to_vec()]);
    let whole = json!({"type": "message", "content": [{"type": "text", "text": "in one piece"}], "stop_reason": "end_turn"});
    let cut = called(1, "look", r#"{"at": "se"#);
    vec![
        case(
            "a whole message as JSON",
            vec![Answer::whole(200, &[], &whole.to_string())],
            "",
            &[][..],
            "in one piece",
            1,
        ),
        case("byte by byte", vec![turn("naïve 😀", &[]).byte_by_byte()], "", &[], "naïve 😀", 1),
        case(
            "open after the end",
            vec![events(&[said(0, "hi"), ended("end_turn")]).then(Act::Silence)],
            "",
            &[],
            "hi",
            1,
        ),
        case(
            "a call cut",
            vec![events(&[said(0, "so far"), cut, ended("max_tokens")]).end()],
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
        case(
            "an error in the stream",
            vec![events(&[said(0, "so far"), in_stream("api_error")]).end()],
            "server_error",
            &["boom"],
            "so far",
            1,
        ),
        case(
            "overloaded in the stream",
            vec![events(&[in_stream("overloaded_error")]).end(), fine()],
            "",
            &[],
            "fine",
            2,
        ),
        case(
            "an empty stream, explained",
            vec![events(&[]).end(), error(400, "invalid_request_error", "why")],
            "empty_stream",
            &["HTTP 400: why"],
            "",
            2,
        ),
    ]
}

/// Returns errors in place of a reply.
fn errors() -> Vec<Case> {
    let quota = || {
        let error = json!({"type": "rate_limit_error", "message": "limit", "details": {"error_code": "enforced_spend_limit_reached"}});
        Answer::whole(429, &[], &json!({"type": "error", "error": error}).to_string())
    };
    vec![
        case(
            "overloaded",
            vec![
                error(529, "overloaded_error", "Overloaded"),
                error(429, "rate_limit_error", "slow"),
                fine(),
            ],
            "",
            &[],
            "fine",
            3,
        ),
        case(
            "500 and 504",
            vec![error(500, "api_error", "no"), error(504, "timeout_error", "late"), fine()],
            "",
            &[],
            "fine",
            3,
        ),
        case(
            "no spend left",
            vec![quota(), fine()],
            "http_error",
            &["the quota of the account is used up"],
            "",
            1,
        ),
        case(
            "no credits",
            vec![error(402, "billing_error", "pay"), fine()],
            "http_error",
            &["pay; add credits"],
            "",
            1,
        ),
        case(
            "no key",
            vec![error(401, "authentication_error", "invalid x-api-key")],
            "http_error",
            &["OPENAI_API_KEY"],
            "",
            1,
        ),
        case(
            "no permission",
            vec![error(403, "permission_error", "no")],
            "http_error",
            &["URL: HTTP 403: no"],
            "",
            1,
        ),
        case(
            "no such API",
            vec![error(404, "not_found_error", "gone")],
            "http_error",
            &["URL: HTTP 404: gone", "`chat-completions` or `responses`"],
            "",
            1,
        ),
        case(
            "too large",
            vec![error(413, "request_too_large", "too large")],
            "http_error",
            &["HTTP 413: too large"],
            "",
            1,
        ),
        case(
            "too long a prompt",
            vec![error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")],
            "context_overflow",
            &["shorten the prompt"],
            "",
            1,
        ),
    ]
}

#[tokio::test]
async fn every_end_is_reported_as_over_chat_completions_and_keeps_the_text() {
    let cases = replies().into_iter().chain(errors());
    let played = futures_util::future::join_all(cases.map(Case::play)).await;
    let wrong: Vec<String> = played.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_calls_and_the_turns_of_a_recording_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Server::script([turn("Looking. ", &[("look", r#"{"at": "sea"}"#)]), turn("Fine.", &[])]);
    record(&worker(&server, over_messages(config())), &path, None).await;
    let recording = Recording::read(&path).unwrap();
    let calls = recording.calls();
    let parameters =
        calls[0].definition.as_ref().and_then(|definition| definition.pointer("/function/parameters/type"));
    assert_eq!((calls.len(), calls[0].name.as_str(), parameters), (1, "look", Some(&json!("object"))));
    let timeline = Timeline::of_recording(recording);
    let turns = timeline.requests[0].entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Turn(turn) => {
            Some((turn.budget.map(|budget| budget.left), turn.messages.len(), turn.tool_count))
        }
        _ => None,
    });
    // The second request adds the reply and its results.
    assert_eq!(turns.collect::<Vec<_>>(), [(Some(8), 1, 3), (Some(7), 2, 3)]);
}

#[tokio::test]
async fn a_request_whose_text_is_thought_only_ends_without_text() {
    let server = Server::script([events(&[thought(0, "hm", "SIG"), ended("end_turn")]).end()]);
    let ended = ask(&worker(&server, over_messages(config()))).await;
    assert_eq!((ended.text(), ended.outcome.reasoning.as_deref()), ("", Some("hm")));
}
