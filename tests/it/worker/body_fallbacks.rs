//! Body fallbacks: each is applied once, remembered, and never repeated.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_chat::Dialect;
use deftool_chat::{
    Api, BodyFallback, BodyForm, Capabilities, ChatRequest, Message, MessageToolCall, Tables,
    classify_http_error, next_body_fallback,
};
use deftool_lang::spec::{Fallback, SystemMessages};
use deftool_test_support::server::{Answer, Received, Server, Texts, delta, finish as end};
use deftool_worker::{SubmitRequest, Worker, WorkerConfig};
use serde_json::{Map, Value, json};

use super::harness::*;

pub(super) fn config_for(dialect: Dialect) -> WorkerConfig {
    WorkerConfig { server: Capabilities::of(dialect), ..config() }
}

pub(super) fn params(params: &Value) -> Map<String, Value> {
    params.as_object().unwrap().clone()
}

pub(super) fn named(tool: &str) -> Value {
    json!({"type": "function", "function": {"name": tool}})
}

pub(super) fn roles(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.map(|message| message["role"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// A server that rejects each body for which `is_rejected` returns true, with `status` and `message`, and otherwise
/// answers.
fn rejecting_server(
    status: u16,
    message: &'static str,
    is_rejected: impl Fn(&Value) -> bool + Send + Sync + 'static,
) -> Server {
    Server::answering(move |_, request| {
        if is_rejected(&request.body) { Answer::error(status, &[], message) } else { Answer::text("fine") }
    })
}

/// Each rejection costs one more request. The next request of the worker costs none.
#[tokio::test]
async fn a_rejected_body_is_changed_once_and_the_change_is_remembered() {
    type IsRejected = fn(&Value) -> bool;
    let cases: Vec<(&str, u16, &'static str, Value, IsRejected)> = vec![
        ("stream_options", 400, "Unknown field: stream_options", json!({}), |body| {
            body.get("stream_options").is_some()
        }),
        (
            "max_tokens",
            400,
            "Unsupported parameter: max_tokens. Use max_completion_tokens",
            json!({"max_tokens": 9}),
            |body| body.get("max_tokens").is_some(),
        ),
        (
            "max_completion_tokens",
            422,
            "extra: max_completion_tokens",
            json!({"max_completion_tokens": 9}),
            |body| body.get("max_completion_tokens").is_some() || body["max_tokens"] != 9,
        ),
        // Kimi K2.5; xAI.
        (
            "temperature",
            400,
            "invalid temperature: only 1 is allowed for this model",
            json!({"temperature": 0, "top_p": 1}),
            |body| body.get("temperature").is_some() || body["top_p"] != 1,
        ),
        (
            "penalty",
            400,
            "Argument not supported on this model: presencePenalty",
            json!({"presence_penalty": 1, "seed": 1}),
            |body| body.get("presence_penalty").is_some() || body["seed"] != 1,
        ),
        (
            "parallel",
            400,
            "parallel_tool_calls: not supported",
            json!({"parallel_tool_calls": true}),
            |body| body.get("parallel_tool_calls").is_some(),
        ),
        (
            "an object",
            400,
            "Invalid tool_choice type: 'object'",
            json!({"tool_choice": named("look")}),
            |body| body["tool_choice"] != "required" || body["tools"].as_array().unwrap().len() != 1,
        ),
        ("required", 400, "tool_choice must be auto", json!({"tool_choice": "required"}), |body| {
            body.get("tool_choice").is_some()
        }),
        ("no system", 400, "System role not supported", json!({}), |body| roles(body) != "user"),
        ("one system", 500, "Jinja Exception: System message must be at the beginning.", json!({}), |body| {
            roles(body) != "system user"
        }),
        (
            "alternate",
            400,
            "conversation roles must alternate user/assistant/user/assistant/...",
            json!({}),
            |body| roles(body) != "system user",
        ),
    ];
    for (name, status, message, extra, is_rejected) in cases {
        let server = rejecting_server(status, message, is_rejected);
        let mut config = config_for(Dialect::default());
        config.run.params = params(&extra);
        config.run.system = Some(String::from("be kind"));
        config.run.system_messages = SystemMessages::Separate;
        let worker = worker(&server, config);
        let ended = ask(&worker).await;
        assert_eq!(ended.text(), "fine", "{name}");
        assert_eq!(server.posts().len(), 2, "{name}");
        let [(2, 0, detail)] = ended.retries()[..] else { panic!("{name}: {:?}", ended.retries()) };
        assert!(detail.contains(message) && detail.contains("sent again with"), "{name}: {detail}");
        assert_eq!(ask(&worker).await.text(), "fine", "{name}");
        assert_eq!(server.posts().len(), 3, "{name}: the change must be remembered");
    }
}

/// Without these members, a reply would mean something else.
#[tokio::test]
async fn members_that_change_a_reply_are_never_omitted() {
    let server = rejecting_server(400, "tools, response_format and stop are not supported", |_| true);
    let mut config = config_for(Dialect::default());
    config.run.params = params(&json!({"response_format": {"type": "json_object"}, "stop": ["x"]}));
    assert_eq!(ask(&worker(&server, config)).await.failed().1, "http_error");
    let [post] = &server.posts()[..] else { panic!("{:?}", server.posts().len()) };
    assert!(["tools", "response_format", "stop"].iter().all(|name| post.body.get(name).is_some()));
}

/// Another model of the same server may accept what one rejected.
#[tokio::test]
async fn a_change_is_remembered_for_its_model() {
    let server = rejecting_server(400, "System role not supported", |body| {
        body["model"] == "gemma" && roles(body) != "user"
    });
    let worker = worker(&server, config_for(Dialect::default()));
    for (model, posts, expected) in
        [("gemma", 2, "user"), ("qwen", 3, "system user"), ("gemma", 4, "user"), ("qwen", 5, "system user")]
    {
        let mut request = SubmitRequest::prompt("hello");
        request.model = Some(String::from(model));
        let id = worker.submit(request).unwrap();
        assert_eq!(finish(&worker, &id).await.text(), "fine", "{model}");
        assert_eq!(server.posts().len(), posts, "{model}");
        assert_eq!(roles(&server.posts()[posts - 1].body), expected, "{model}");
    }
}

/// All known rejections together: each causes one more request, then the request fails.
#[tokio::test]
async fn rejections_never_cause_an_endless_loop() {
    let all = "stream_options max_tokens max_completion_tokens parallel_tool_calls return_progress tool_choice single tool-calls \
               system role not supported; system message must be first; roles must alternate; does not support tools";
    let server = Server::answering(move |_, _| Answer::error(400, &[], all));
    let mut config = config_for(Dialect::named("llama-cpp"));
    config.run.system = Some(String::from("be kind"));
    config.run.params =
        params(&json!({"max_tokens": 9, "parallel_tool_calls": true, "tool_choice": named("look")}));
    let worker = worker(&server, config);
    let ended = ask(&worker).await;
    assert_eq!(ended.failed().1, "http_error");
    let posts = server.posts().len();
    assert!((2..=BodyFallback::all().count() + 1).contains(&posts), "{posts}");
    // No fallback helped, so none is remembered. The time of the prompt may differ.
    ask(&worker).await;
    let without_prompt = |index: usize| {
        let mut body = server.posts()[index].body.clone();
        body["messages"].as_array_mut().unwrap().pop();
        body
    };
    assert_eq!(without_prompt(posts), without_prompt(0));
}

#[tokio::test]
async fn two_calls_that_a_template_rejects_are_sent_as_pairs() {
    let refusal = include_str!(
        "../../../crates/chat/tests/wire/llama-cpp-special/99_llama31_two_calls_one_message.json"
    );
    let has_two = |request: &Received| {
        let messages = request.body["messages"].as_array().unwrap();
        messages.iter().any(|message| message["tool_calls"].as_array().is_some_and(|calls| calls.len() > 1))
    };
    let server = Server::answering(move |index, request| match index {
        0 => Answer::calls(&[("look", r#"{"at": "1"}"#), ("look", r#"{"at": "2"}"#)]),
        _ if has_two(request) => Answer::whole(400, &[], refusal),
        _ => Answer::text("fine"),
    });
    assert_eq!(ask(&worker(&server, config_for(Dialect::named("llama-cpp")))).await.text(), "fine");
    let posts = server.posts();
    assert_eq!(posts.len(), 3);
    assert_eq!(roles(&posts[1].body), "system user assistant tool tool");
    assert_eq!(roles(&posts[2].body), "system user assistant tool assistant tool");
    // If the server reports what its template supports, no rejection is needed.
    let server = Server::script([
        Answer::calls(&[("look", r#"{"at": "1"}"#), ("look", r#"{"at": "2"}"#)]),
        Answer::text("fine"),
    ]);
    let mut config = config_for(Dialect::named("llama-cpp"));
    config.server.parallel_calls = Some(false);
    config.run.parallel_tool_calls_supported = false;
    assert_eq!(ask(&worker(&server, config)).await.text(), "fine");
    assert_eq!(roles(&server.posts()[1].body), "system user assistant tool assistant tool");
}

#[tokio::test]
async fn tools_for_a_model_without_tool_support_are_described_in_the_prompt_or_fail_with_advice() {
    let ollama = "registry.ollama.ai/library/gemma:2b does not support tools";
    let vllm = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
    for (dialect, status, message, advice) in [
        (Dialect::named("ollama"), 400, ollama, "use a model that supports tool calls"),
        (
            Dialect::named("openrouter"),
            404,
            "No endpoints found that support tool use.",
            "use a model that supports tool calls",
        ),
        (Dialect::named("vllm"), 400, vllm, "start vLLM with these options"),
        (
            Dialect::named("llama-cpp"),
            500,
            "tools param requires --jinja flag",
            "start llama-server with --jinja",
        ),
    ] {
        let server = rejecting_server(status, message, |body| body.get("tools").is_some());
        let ended = ask(&worker(&server, config_for(dialect))).await;
        let (_, kind, detail, _) = ended.failed();
        assert_eq!(kind, "http_error");
        assert!(
            detail.contains(message) && detail.contains(advice) && detail.contains(":fallback"),
            "{detail}"
        );
        assert_eq!(server.posts().len(), 1);
    }
    // With `:fallback on`, the prompt describes the tools, and calls are written as text.
    let line = "{\"tool\": \"look\", \"arguments\": {\"at\": \"1\"}}\n";
    let server = Server::answering(move |_, request| {
        let has_result = request.texts("user").iter().any(|text| text.starts_with("Result of look:"));
        match (request.body.get("tools"), has_result) {
            (Some(_), _) => Answer::error(400, &[], ollama),
            (None, false) => Answer::text(line),
            (None, true) => Answer::text("fine"),
        }
    });
    let mut config = config_for(Dialect::named("ollama"));
    config.run.fallback = Fallback::On;
    let ended = ask(&worker(&server, config)).await;
    assert_eq!(ended.text(), "fine");
    assert_eq!(ended.outcome.tool_iterations, 1);
    let posts = server.posts();
    assert_eq!(posts.len(), 2, "two turns");
    assert_eq!(roles(&posts[1].body), "system user assistant user");
    assert!(posts[1].contents("system")[0].contains("\"name\":\"look\""), "{}", posts[1].body);
}

#[tokio::test]
async fn a_missing_required_call_causes_a_warning() {
    let demand = |choice: Value| {
        let mut config = config_for(Dialect::named("llama-cpp"));
        config.run.params = params(&json!({"tool_choice": choice}));
        config
    };
    for choice in [json!("required"), named("look")] {
        let server = Server::script([Answer::text("I would rather talk.")]);
        let ended = ask(&worker(&server, demand(choice))).await;
        assert_eq!(ended.text(), "I would rather talk.");
        assert!(
            ended.warnings().iter().any(|text| text.contains("required to call a tool but did not")),
            "{:?}",
            ended.events
        );
    }
    // The call was made, as a call or as a signal, or it was not required: no warning.
    for (choice, first) in [
        (named("look"), Answer::calls(&[("look", "{}")])),
        (json!("required"), Answer::calls(&[("done", "{}")])),
        (json!("auto"), Answer::text("hm")),
    ] {
        let server = Server::script([first, Answer::text("fine")]);
        let ended = ask(&worker(&server, demand(choice))).await;
        assert_eq!(ended.warnings(), Vec::<&str>::new(), "{:?}", ended.events);
        for post in server.posts().iter().skip(1) {
            assert_eq!(post.body.get("tool_choice"), None, "forced once");
            assert_eq!(post.body["tools"].as_array().unwrap().len(), 3);
        }
    }
}

#[tokio::test]
async fn a_prompt_that_ollama_truncated_causes_a_warning() {
    let reply =
        |read| Answer::chunks(&[delta("fine"), end("stop"), deftool_test_support::server::usage(read, 3)]);
    for (dialect, read, expects_warning) in [
        (Dialect::named("ollama"), 4095, true),
        (Dialect::named("ollama"), 50, false),
        (Dialect::named("vllm"), 4095, false),
    ] {
        let mut config = config_for(dialect);
        config.server.context = Some(4096);
        let server = Server::script([reply(read)]);
        let ended = ask(&worker(&server, config)).await;
        assert_eq!(ended.text(), "fine");
        let has_warning =
            ended.warnings().iter().any(|text| text.contains("4096 tokens") && text.contains("num_ctx"));
        assert_eq!(has_warning, expects_warning, "{dialect:?} {read}");
    }
}

#[tokio::test]
async fn openrouters_comments_and_errors_are_read() {
    let waiting = ": OPENROUTER PROCESSING\n\n";
    let server = Server::script([Answer::stream()
        .piece(waiting)
        .delta("fi")
        .piece(waiting)
        .delta("ne")
        .chunk(&end("stop"))
        .done()
        .end()]);
    assert_eq!(ask(&worker(&server, config_for(Dialect::named("openrouter")))).await.text(), "fine");
    let upstream = json!({"error": {"code": 400, "message": "Provider returned error", "metadata": {
        "provider_name": "Some Cloud", "raw": "{\"error\":{\"message\":\"temperature: too hot\"}}"
    }}});
    let server = Server::script([Answer::whole(400, &[], &upstream.to_string())]);
    let ended = ask(&worker(&server, config_for(Dialect::named("openrouter")))).await;
    let detail = ended.failed().2;
    assert!(
        detail.contains("HTTP 400: Provider returned error: Some Cloud: temperature: too hot"),
        "{detail}"
    );
    let server = Server::script([Answer::error(402, &[], "Insufficient credits")]);
    let ended = ask(&worker(&server, config_for(Dialect::named("openrouter")))).await;
    assert!(ended.failed().2.ends_with("HTTP 402: Insufficient credits; add credits to the account"));
    let late = json!({"id": "x", "error": {"code": 502, "message": "Provider disconnected"},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]});
    let server = Server::script([Answer::stream().piece(waiting).delta("so far").chunk(&late).end()]);
    let ended = ask(&worker(&server, config_for(Dialect::named("openrouter")))).await;
    let (_, kind, detail, text) = ended.failed();
    assert_eq!((kind, text), ("server_error", "so far"));
    assert!(detail.contains("502: Provider disconnected"), "{detail}");
}

#[tokio::test]
async fn a_server_that_loads_its_model_is_awaited_until_it_is_healthy() {
    let loading = include_str!("../../../crates/chat/tests/wire/llama-cpp-special/80_loading_chat.json");
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let server = Server::answering_all(move |_, request| {
        let seen = counted.load(Ordering::SeqCst);
        match request.line.as_str() {
            "GET /health" => {
                counted.fetch_add(1, Ordering::SeqCst);
                Answer::whole(if seen < 2 { 503 } else { 200 }, &[], "{}")
            }
            _ if seen < 3 => Answer::whole(503, &[("retry-after-ms", "10")], loading),
            _ => Answer::text("fine"),
        }
    });
    let ended = ask(&worker(&server, config_for(Dialect::named("llama-cpp")))).await;
    assert_eq!(ended.text(), "fine");
    let posts = server.posts().iter().filter(|post| post.line.starts_with("POST")).count();
    assert_eq!(
        (posts, ended.retries().len()),
        (2, 1),
        "no request must be sent to a server that is not ready"
    );
}

/// Under a paused clock: a model that never finishes loading fails the request after ten minutes.
#[tokio::test(start_paused = true)]
async fn an_endlessly_loading_server_fails_the_request() {
    use deftool_worker::PageResponse;

    use super::scripted::{Reply, Scripted};
    let replies = std::iter::repeat_with(|| Reply::error(503, "Loading model")).take(200);
    let transport = Scripted::with_pages(replies, |_| PageResponse::Received(503, Value::Null));
    let started = tokio::time::Instant::now();
    let ended =
        ask_for_hours(&Worker::start(config_for(Dialect::named("llama-cpp")), echo(), transport)).await;
    let (_, kind, detail, _) = ended.failed();
    assert_eq!(kind, "http_error");
    assert!(detail.contains("HTTP 503: Loading model; try again later"), "{detail}");
    assert!((600..660).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

/// Recorded llama.cpp errors are recognised.
#[test]
fn recorded_rejections_are_recognised() {
    let calls = ["1", "2"].map(|id| MessageToolCall::new(id, "look", "{}"));
    let system = || Message::System { content: String::from("be kind") };
    let request = ChatRequest {
        messages: [
            system(),
            system(),
            Message::user("hello"),
            Message::Assistant { content: String::new(), tool_calls: calls.to_vec(), received: None },
            Message::tool("1", "{}"),
        ]
        .map(Arc::new)
        .into(),
        tools: vec![named("look")],
        ..ChatRequest::default()
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/chat/tests/wire");
    for (file, status, expected) in [
        ("llama-cpp-special/99_llama31_two_calls_one_message.json", 400, Some(BodyFallback::CallPairs)),
        (
            "templates/mistralai-Mistral-Nemo-Instruct-2407/par_required_stream.json",
            400,
            Some(BodyFallback::SystemFirst),
        ),
        (
            "templates/Mistral-Small-3.2-24B-Instruct-2506/par_required_stream.json",
            400,
            Some(BodyFallback::SystemFirst),
        ),
        ("llama-cpp-special/88_history_bad_args.json", 500, None),
        ("llama-cpp-special/80_loading_chat.json", 503, None),
        ("llama-cpp/34_err_ctx_overflow_stream.json", 400, None),
        ("llama-cpp-tools/31_err_bad_tools_schema_stream.json", 400, None),
    ] {
        let body = std::fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let error = classify_http_error(Tables::default(), status, &body);
        let found = next_body_fallback(&request, BodyForm::default(), &error);
        assert_eq!(found, expected, "{file}: {}", error.message);
    }
}

/// The body fallbacks for the Responses API.
#[tokio::test]
async fn rejected_bodies_are_changed_for_the_responses_api() {
    type IsRejected = fn(&Value) -> bool;
    let cases: [(&'static str, Value, IsRejected); 4] = [
        ("Unknown parameter: 'tool_choice'", json!({"tool_choice": "required"}), |body| {
            body.get("tool_choice").is_some()
        }),
        ("tool_choice must be a string", json!({"tool_choice": {"type": "auto"}}), |body| {
            body["tool_choice"].is_object()
        }),
        ("tool_choice: no object", json!({"tool_choice": named("look")}), |body| {
            body["tool_choice"].is_object()
        }),
        ("parallel_tool_calls is not known", json!({"parallel_tool_calls": true}), |body| {
            body.get("parallel_tool_calls").is_some()
        }),
    ];
    for (message, extra, is_rejected) in cases {
        let server = Server::answering(move |_, request| {
            if is_rejected(&request.body) {
                Answer::error(400, &[], message)
            } else {
                turn(Api::Responses, "fine", &[])
            }
        });
        let mut config = WorkerConfig { api: Api::Responses, ..config_for(Dialect::default()) };
        config.run.params = params(&extra);
        let ended = ask(&worker(&server, config)).await;
        assert_eq!(ended.text(), "fine", "{message}");
        assert_eq!(server.posts().len(), 2, "{message}");
    }
}

#[tokio::test]
async fn a_tool_is_forced_until_its_call_with_the_responses_api() {
    let server = Server::answering(|index, _| match index {
        0 | 1 => turn(Api::Responses, "", &[("look", "{}")]),
        _ => turn(Api::Responses, "fine", &[]),
    });
    let mut config = WorkerConfig { api: Api::Responses, ..config_for(Dialect::default()) };
    config.run.params = params(&json!({"tool_choice": named("look")}));
    assert_eq!(ask(&worker(&server, config)).await.text(), "fine");
    let choices: Vec<Value> = server.posts().iter().map(|post| post.body["tool_choice"].clone()).collect();
    assert_eq!(choices, [json!({"type": "function", "name": "look"}), Value::Null, Value::Null]);
}

/// A fallback learned by one request must not break another request that uses the right name.
#[tokio::test]
async fn the_name_of_the_token_limit_is_learned_in_one_direction() {
    let server = rejecting_server(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        |body| body.get("max_tokens").is_some(),
    );
    let worker = worker(&server, config_for(Dialect::default()));
    for (name, posts) in [("max_tokens", 2), ("max_completion_tokens", 3), ("max_tokens", 4)] {
        let mut request = SubmitRequest::prompt("hello");
        request.params = params(&json!({name: 9}));
        let id = worker.submit(request).unwrap();
        assert_eq!(finish(&worker, &id).await.text(), "fine", "{name}");
        assert_eq!(server.posts().len(), posts, "{name}");
        assert_eq!(server.posts()[posts - 1].body["max_completion_tokens"], 9);
    }
}

/// A limit that is too large must be corrected by the user. A different name might disable the limit.
#[tokio::test]
async fn a_rejected_value_of_the_token_limit_is_reported() {
    let server = rejecting_server(
        400,
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        |body| body["max_tokens"].as_u64().is_some_and(|limit| limit > 8192),
    );
    let mut config = config_for(Dialect::default());
    config.run.params = params(&json!({"max_tokens": 9000}));
    let ended = ask(&worker(&server, config)).await;
    assert!(ended.failed().2.contains("the valid range of max_tokens"), "{ended:?}");
    assert_eq!(server.posts().len(), 1);
}

/// An absurdly large count is accepted.
#[tokio::test]
async fn the_largest_token_count_does_not_fail_the_request() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}});
    let server = Server::script([Answer::chunks(&[delta("fine"), end("stop"), usage])]);
    let mut config = config_for(Dialect::named("ollama"));
    config.server.context = Some(4096);
    let ended = ask(&worker(&server, config)).await;
    assert_eq!(ended.text(), "fine");
    assert!(ended.warnings().iter().any(|text| text.contains("4096 tokens")));
}
