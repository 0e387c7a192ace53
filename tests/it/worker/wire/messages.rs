//! What only the Messages API has.

use deftool_chat::Api;
use deftool_chat::request::FinishReason;
use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_record::{EntryKind, Recording, Timeline};
use deftool_test_support::server::{Answer, Server, call, delta, encode_events, encode_whole, finish};
use deftool_worker::Worker;
use serde_json::{Value, json};

use super::super::harness::{FakeTools, ask, http, over, toolbox, turn, worker};
use super::super::replay::record;
use super::{fails, play_all, succeeds};

const API: Api = Api::Messages;

fn thought(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]})
}

/// Returns a stream of these events.
fn stream_of(events: &[Value]) -> Answer {
    events.iter().fold(Answer::stream(), Answer::chunk).end()
}

#[tokio::test]
async fn requests_have_the_form_of_the_api_and_return_the_blocks_of_replies() {
    let cached =
        json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}});
    let chunks = [
        thought("I must look."),
        delta("Looking. "),
        call(0, "look", r#"{"at": "sea"}"#),
        call(1, "done", r#"{"at": "early"}"#),
        call(2, "slow", "{}"),
        finish("tool_calls"),
        json!({"choices": [], "usage": cached}),
    ];
    let server = Server::script([Answer::reply(API, &chunks), turn(API, "It is calm.", &[])]);
    let mut config = over(API);
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
    let usage = ended.outcome.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens), (20, 10, Some(4)));

    let posts = server.posts();
    for post in &posts {
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
    let whole = encode_whole(API, &chunks);
    let is_exit = |block: &&Value| block["name"] == "done";
    let kept: Value =
        whole["content"].as_array().unwrap().iter().filter(|block| !is_exit(block)).cloned().collect();
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": kept}), "exit calls are left out");
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(results[0]["content"], r#"{"seen":{"at":"sea"}}"#);
    let members =
        |index: usize| [&results[index]["tool_use_id"], &results[index]["is_error"]].map(Value::clone);
    assert_eq!([members(0), members(1)], [[json!("call_0"), json!(null)], [json!("call_2"), json!(true)]]);
}

#[tokio::test]
async fn a_paused_reply_goes_back_and_continues_until_the_budget_is_spent() {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}});
    let paused = || {
        let mut events = encode_events(API, &[delta("Searching. "), finish("pause_turn")]);
        let end = events.iter().position(|event| event["type"] == "message_delta").unwrap();
        let start = json!({"type": "content_block_start", "index": 1, "content_block": search});
        events.splice(end..end, [start, json!({"type": "content_block_stop", "index": 1})]);
        stream_of(&events)
    };
    let server = Server::script([paused(), turn(API, "Found.", &[])]);
    let mut config = over(API);
    config.run.tool_budget = 1;
    let ended = ask(&worker(&server, config.clone())).await;
    assert_eq!(ended.text(), "Searching. Found.");
    let posts = server.posts();
    let content = json!([{"type": "text", "text": "Searching. "}, search]);
    assert_eq!(posts[1].body["messages"][1], json!({"role": "assistant", "content": content}));
    assert_eq!(posts[1].body["messages"].as_array().unwrap().len(), 2);
    let found = ended.warnings();
    assert!(found.len() == 1 && found[0].contains("the reply contains server_tool_use"), "{found:?}");

    let server = Server::script([paused()]);
    let ended = ask(&worker(&server, config)).await;
    assert_eq!((ended.text(), server.posts().len()), ("Searching. Searching. ", 2));
    let found = ended.warnings();
    assert!(found.iter().any(|message| message.contains("`pause_turn`")), "{found:?}");
}

#[tokio::test]
async fn ends_other_than_by_the_model_are_named() {
    for (stop_reason, finish_reason, warning) in [
        ("refusal", FinishReason::ContentFilter, "`refusal`"),
        ("model_context_window_exceeded", FinishReason::MaxTokens, "the context of the model is full"),
        ("nap", FinishReason::Stop, "unknown finish reason `nap`"),
    ] {
        let server = Server::script([Answer::reply(API, &[delta("so far"), finish(stop_reason)])]);
        let ended = ask(&worker(&server, over(API))).await;
        assert_eq!((ended.text(), ended.outcome.finish_reason), ("so far", finish_reason), "{stop_reason}");
        let found = ended.warnings().concat();
        assert!(found.contains(warning), "{stop_reason}: {found}");
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
        let chunks = [delta("so far"), finish("refusal")];
        let (mut events, mut whole) = (encode_events(API, &chunks), encode_whole(API, &chunks));
        let end = events.iter_mut().find(|event| event["type"] == "message_delta").unwrap();
        end["delta"]["stop_details"] = details.clone();
        whole["stop_details"] = details;
        for answer in [stream_of(&events), Answer::json(200, &whole)] {
            let ended = ask(&worker(&Server::script([answer]), over(API))).await;
            let expected = format!("the server's content filter ended the reply: {expected}");
            assert_eq!((ended.text(), ended.warnings()), ("so far", vec![expected.as_str()]));
        }
    }
}

#[tokio::test]
async fn a_refused_signature_is_dropped_once() {
    let first = || Answer::reply(API, &[thought("hm"), call(0, "look", "{}"), finish("tool_calls")]);
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let server = Server::script([first(), Answer::error(400, &[], refusal), turn(API, "Fine.", &[])]);
    let ended = ask(&worker(&server, over(API))).await;
    assert_eq!(ended.text(), "Fine.");
    let kinds: Vec<String> = server
        .posts()
        .iter()
        .skip(1)
        .map(|post| post.body["messages"][1]["content"][0]["type"].to_string())
        .collect();
    assert_eq!(kinds, ["\"thinking\"", "\"tool_use\""]);

    let server = Server::script([first(), Answer::error(400, &[], refusal)]);
    let ended = ask(&worker(&server, over(API))).await;
    assert_eq!((ended.failed().1, server.posts().len()), ("http_error", 3));
}

/// Returns an HTTP error in the form of the API.
fn error(status: u16, kind: &str, message: &str) -> Answer {
    let error = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    Answer::whole(status, &[("retry-after-ms", "5")], &error.to_string())
}

#[tokio::test]
async fn errors_of_the_api_are_reported_or_retried() {
    let fine = || turn(API, "fine", &[]);
    let limit = json!({"type": "rate_limit_error", "message": "limit", "details": {"error_code": "enforced_spend_limit_reached"}});
    let quota = Answer::json(429, &json!({"type": "error", "error": limit}));
    let cases = vec![
        succeeds(
            "overloaded",
            [error(529, "overloaded_error", "Overloaded"), error(429, "rate_limit_error", "slow"), fine()],
            "fine",
        )
        .posts(3),
        succeeds(
            "500 and 504",
            [error(500, "api_error", "no"), error(504, "timeout_error", "late"), fine()],
            "fine",
        )
        .posts(3),
        fails("no spend left", [quota, fine()], "http_error", &["the quota of the account is used up"]),
        fails(
            "no credits",
            [error(402, "billing_error", "pay"), fine()],
            "http_error",
            &["pay; add credits"],
        ),
        fails(
            "no key",
            [error(401, "authentication_error", "invalid x-api-key")],
            "unauthorized",
            &["OPENAI_API_KEY"],
        ),
        fails(
            "no permission",
            [error(403, "permission_error", "no")],
            "unauthorized",
            &["URL: HTTP 403: no"],
        ),
        fails(
            "no such API",
            [error(404, "not_found_error", "gone")],
            "http_error",
            &["URL: HTTP 404: gone", "`chat-completions` or `responses`"],
        ),
        fails(
            "too large",
            [error(413, "request_too_large", "too large")],
            "http_error",
            &["HTTP 413: too large"],
        ),
        fails(
            "too long a prompt",
            [error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")],
            "context_overflow",
            &["shorten the prompt"],
        ),
    ];
    play_all(cases.into_iter().map(|case| case.over(API)).collect()).await;
}

#[tokio::test]
async fn the_calls_and_the_turns_of_a_recording_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Server::script([turn(API, "Looking. ", &[("look", "{}")]), turn(API, "Fine.", &[])]);
    record(&worker(&server, over(API)), &path, None).await;
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
    // It is requested once more.
    let reply = |text: &str| Answer::reply(API, &[thought(text), finish("stop")]);
    let server = Server::script([reply("hm"), reply(", hm")]);
    let ended = ask(&worker(&server, over(API))).await;
    assert_eq!((ended.text(), ended.outcome.reasoning.as_deref()), ("", Some("hm, hm")));
}
