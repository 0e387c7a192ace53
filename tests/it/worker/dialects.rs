//! Request bodies for servers of every dialect, and the recorded dialect.
//!
//! `tests/dialects/NAME.json` contains the bodies for each dialect, by situation. `UPDATE_EXPECT=1` updates them.

use std::path::Path;
use std::sync::Arc;

use deftool_chat::{
    BodyFallback, BodyFallbacks, BodyForm, Capabilities, ChatRequest, Dialect, Dialects, Message,
    MessageToolCall, OptionalMember,
};
use deftool_lang::spec::{OnFailure, SystemMessages};
use deftool_record::{Recorder, Recording, Redaction};
use deftool_test_support::server::{Answer, Server, finish as end};
use deftool_worker::{ReplayTransport, SubmitRequest, Worker};
use serde_json::{Map, Value, json};

use super::body_fallbacks::{config_for, named, params, roles};
use super::harness::*;

/// Changes to the form of a request: properties of its server beyond the dialect.
type Change = fn(&mut BodyForm);

/// The situations: name, request, and changes to the form.
fn situations() -> Vec<(&'static str, ChatRequest, Change)> {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let system = |content: &str| Arc::new(Message::System { content: content.into() });
    let user = |content: &str| Arc::new(Message::user(content));
    let call = |id: &str, name: &str| MessageToolCall::new(id, name, r#"{"at":"1"}"#);
    let result = |id: &str| Arc::new(Message::tool(id, "1"));
    let plain = ChatRequest {
        model: "m".into(),
        messages: vec![system("bios"), user("hello")],
        tools: Vec::new(),
        params: params(&json!({"temperature": 0, "max_tokens": 9})),
        ..ChatRequest::default()
    };
    let tools = ChatRequest { tools: vec![tool("look"), tool("done")], ..plain.clone() };
    let forced = ChatRequest { params: params(&json!({"tool_choice": named("look")})), ..tools.clone() };
    let two = vec![
        system("bios"),
        user("hello"),
        Arc::new(Message::Assistant {
            content: "So.".into(),
            tool_calls: vec![call("aaaaaaaaa", "look"), call("bbbbbbbbb", "look")],
            received: None,
        }),
        result("aaaaaaaaa"),
        result("bbbbbbbbb"),
    ];
    let answered = ChatRequest { messages: two.clone(), ..tools.clone() };
    let called = ChatRequest { messages: two, ..forced.clone() };
    let none = |_: &mut BodyForm| {};
    vec![
        ("text only", plain.clone(), none),
        ("tools", tools.clone(), none),
        ("tools with parallel calls", tools.clone(), |form| {
            form.server.parallel_calls = Some(true);
        }),
        ("tools without parallel calls", tools, |form| form.server.parallel_calls = Some(false)),
        ("a forced tool", forced, none),
        ("a forced tool after its call", called, none),
        ("two calls", answered.clone(), none),
        ("two calls as pairs", answered, |form| {
            form.fallbacks = form.fallbacks.with(BodyFallback::CallPairs);
        }),
        ("the probe after an empty stream", plain.clone(), |form| form.stream = false),
        ("all body fallbacks", plain, |form| {
            let all = BodyFallback::all().filter(|fallback| *fallback != BodyFallback::UseResponses);
            form.fallbacks = all.fold(BodyFallbacks::default(), BodyFallbacks::with);
        }),
    ]
}

/// The dialects that differ in features.
fn programs() -> impl Iterator<Item = Dialect> {
    Dialects::built_in().iter().filter(|dialect| dialect.features().next().is_some())
}

#[test]
fn bodies_for_every_dialect_match_the_expected_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects");
    let mut differences = Vec::new();
    for dialect in programs() {
        let name = json!(dialect).as_str().unwrap().to_owned();
        let bodies: Map<String, Value> = situations()
            .into_iter()
            .map(|(situation, request, change)| {
                let mut form = BodyForm { server: Capabilities::of(dialect), ..BodyForm::default() };
                change(&mut form);
                (situation.to_owned(), request.encode_body(form).to_value())
            })
            .collect();
        let text = serde_json::to_string_pretty(&bodies).unwrap() + "\n";
        let path = folder.join(format!("{name}.json"));
        if std::env::var("UPDATE_EXPECT").is_ok() {
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            differences
                .push(format!("{}: expected file differs; the new content is\n{text}", path.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn llama_cpp_members_are_only_sent_to_llama_cpp() {
    for dialect in programs() {
        for (situation, request, change) in situations() {
            let mut form = BodyForm { server: Capabilities::of(dialect), ..BodyForm::default() };
            change(&mut form);
            let body = request.encode_body(form);
            let extras = ["cache_prompt", "return_progress", "timings_per_token"];
            let has_any = extras.iter().any(|name| body.get(name).is_some());
            assert!(!has_any || dialect == Dialect::named("llama-cpp"), "{dialect:?}, {situation}: {body:?}");
        }
    }
    // The worker's `:params` have precedence.
    let request =
        ChatRequest { params: params(&json!({"return_progress": false})), ..ChatRequest::default() };
    let form = BodyForm { server: Capabilities::of(Dialect::named("llama-cpp")), ..BodyForm::default() };
    assert_eq!(request.encode_body(form).get("return_progress"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn requests_disable_compression_and_have_no_conversation_id() {
    for dialect in programs() {
        let server = Server::script([Answer::text("fine")]);
        assert_eq!(ask(&worker(&server, config_for(dialect))).await.text(), "fine");
        let post = &server.posts()[0];
        assert_eq!(post.header("x-conversation-id"), None, "{dialect:?}");
        assert_eq!(post.header("accept-encoding"), Some("identity"), "{dialect:?}");
    }
}

/// Calls with ids of every kind and invalid arguments that are reported to the model. The next request must be valid
/// for all servers.
#[tokio::test]
async fn histories_only_contain_valid_arguments_and_portable_ids() {
    for dialect in programs() {
        let call = |index: usize, id: Value, arguments: &str| {
            let function = json!({"name": "look", "arguments": arguments});
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": id, "function": function}]}}]})
        };
        let invalid = [
            call(0, json!("functions.look:0"), r#"{"at": "1"}"#),
            call(1, json!(7), "{not json"),
            call(2, json!("call_7f3a-2"), "[1]"),
            call(3, Value::Null, ""),
            call(4, json!("abcdefghi"), r#"{"at": "2"}"#),
            call(5, json!("abcdefghi"), r#"{"to": 1}"#),
        ];
        let first =
            invalid.iter().chain([&end("tool_calls")]).fold(Answer::stream(), Answer::chunk).done().end();
        let server = Server::script([first, Answer::text("fine")]);
        let mut config = config_for(dialect);
        config.run.on_invalid_arguments = OnFailure::Report;
        assert_eq!(ask(&worker(&server, config)).await.text(), "fine");
        let messages = server.posts()[1].body["messages"].as_array().unwrap().clone();
        let calls: Vec<&Value> = messages
            .iter()
            .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
            .collect();
        assert_eq!(calls.len(), 6, "{dialect:?}");
        let mut ids = Vec::new();
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(
                serde_json::from_str::<Value>(arguments).unwrap().is_object(),
                "{dialect:?}: {arguments}"
            );
            let id = call["id"].as_str().unwrap();
            assert!(!id.is_empty() && !ids.contains(&id), "{dialect:?}: duplicate id {id}");
            ids.push(id);
        }
        let answered: Vec<&str> =
            messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        assert_eq!(answered, ids, "{dialect:?}: every call is answered, in order");
    }
}

/// The second request of a worker after several rejections of the first one. It begins with the learned fallbacks.
#[tokio::test]
async fn learned_fallbacks_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let mut config = config_for(Dialect::named("llama-cpp"));
    config.run.system = Some(String::from("be kind"));
    config.run.system_messages = SystemMessages::Separate;
    config.server.context = Some(4096);
    {
        let server = Server::answering(|_, request| {
            if roles(&request.body).starts_with("system system") {
                Answer::error(400, &[], "System message must be at the beginning.")
            } else if request.body.get("return_progress").is_some() {
                Answer::error(400, &[], "unknown field: return_progress")
            } else {
                Answer::text("fine")
            }
        });
        let worker = worker(&server, config.clone());
        assert_eq!(ask(&worker).await.text(), "fine");
        let recorder = Arc::new(Recorder::create(&path, Redaction::default()).unwrap());
        let request = SubmitRequest { recorder: Some(recorder), ..SubmitRequest::prompt("hello") };
        let id = worker.submit(request).unwrap();
        assert_eq!(finish(&worker, &id).await.text(), "fine");
        assert_eq!(server.posts().len(), 4);
    }
    let recording = Recording::read(&path).unwrap();
    assert_eq!(recording.requests()[0].session.server, config.server);
    let learned = BodyFallbacks::from(vec![
        BodyFallback::SystemFirst,
        BodyFallback::Without(OptionalMember::named("return_progress").unwrap()),
    ]);
    assert_eq!(recording.requests()[0].session.body_fallbacks, learned);
    // A different worker and server: the recorded capabilities are used.
    let mut config = config_for(Dialect::default());
    config.run.system = Some(String::from("be kind"));
    let worker = Worker::replay(config, echo(), Arc::new(ReplayTransport::new(recording, false)));
    assert_eq!(ask(&worker).await.text(), "fine");
}
