//! What servers of every dialect are sent, and what of it stands in recordings.
//!
//! `tests/dialects/NAME.json` holds the bodies that a dialect is sent, by situation; `DEFTOOL_BLESS=1` writes what
//! they are today.

use std::path::Path;
use std::sync::Arc;

use deftool::chat::{BodyForm, Capabilities, ChatRequest, DIALECTS, Message, MessageToolCall, Swap, Swaps};
use deftool::spec::{Dialect, OnFailure};
use deftool::worker::{Recorder, Recording, ReplayTransport, SubmitRequest, Worker};
use serde_json::{Map, Value, json};

use super::bench::*;
use super::swaps::{named, of, params, roles};
use crate::support::server::{Answer, Server, delta, event, finish as end};

/// What is known of a server beyond its dialect.
type Change = fn(&mut BodyForm);

/// A request of every kind: what it is called, what it is, and what is known of its server beyond its dialect.
fn situations() -> Vec<(&'static str, ChatRequest, Change)> {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let system = |content: &str| Message::System { content: content.into() };
    let user = |content: &str| Message::User { content: content.into() };
    let call = |id: &str, name: &str| MessageToolCall::new(id, name, r#"{"at":"1"}"#);
    let result = |id: &str| Message::Tool { tool_call_id: id.into(), content: "1".into() };
    let plain = ChatRequest {
        model: "m".into(),
        messages: vec![system("bios"), user("hello")],
        tools: Vec::new(),
        params: params(&json!({"temperature": 0, "max_tokens": 9})),
    };
    let tools = ChatRequest { tools: vec![tool("look"), tool("done")], ..plain.clone() };
    let forced = ChatRequest { params: params(&json!({"tool_choice": named("look")})), ..tools.clone() };
    let two = vec![
        system("bios"),
        user("hello"),
        Message::Assistant {
            content: "So.".into(),
            tool_calls: vec![call("aaaaaaaaa", "look"), call("bbbbbbbbb", "look")],
        },
        result("aaaaaaaaa"),
        result("bbbbbbbbb"),
    ];
    let answered = ChatRequest { messages: two.clone(), ..tools.clone() };
    let called = ChatRequest { messages: two, ..forced.clone() };
    let none = |_: &mut BodyForm| {};
    vec![
        ("text alone", plain.clone(), none),
        ("tools", tools.clone(), none),
        ("tools, and the template takes several calls", tools.clone(), |form| {
            form.server.parallel_calls = Some(true);
        }),
        ("tools, and the template takes one call", tools, |form| form.server.parallel_calls = Some(false)),
        ("a tool that must be called", forced, none),
        ("a tool that was to be called and was", called, none),
        ("two calls", answered.clone(), none),
        ("two calls, which were refused", answered, |form| form.swaps = form.swaps.with(Swap::CallPairs)),
        ("the probe after an empty stream", plain.clone(), |form| form.stream = false),
        ("everything refused", plain, |form| {
            form.swaps = Swap::ALL.into_iter().fold(Swaps::default(), Swaps::with);
        }),
    ]
}

#[test]
fn every_dialect_is_sent_what_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects");
    let mut wrong = Vec::new();
    for dialect in DIALECTS {
        let name = json!(dialect).as_str().unwrap().to_owned();
        let bodies: Map<String, Value> = situations()
            .into_iter()
            .map(|(situation, request, change)| {
                let mut form = BodyForm { server: Capabilities::of(dialect), ..BodyForm::default() };
                change(&mut form);
                (situation.to_owned(), request.encode_body(form))
            })
            .collect();
        let text = serde_json::to_string_pretty(&bodies).unwrap() + "\n";
        let path = folder.join(format!("{name}.json"));
        if std::env::var("DEFTOOL_BLESS").is_ok() {
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(format!("{}\nis today\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_llama_cpps_own_is_sent_to_nobody_else() {
    for dialect in DIALECTS {
        for (situation, request, change) in situations() {
            let mut form = BodyForm { server: Capabilities::of(dialect), ..BodyForm::default() };
            change(&mut form);
            let body = request.encode_body(form);
            let extras = ["cache_prompt", "return_progress", "timings_per_token"];
            let has_any = extras.iter().any(|name| body.get(name).is_some());
            assert!(!has_any || dialect == Dialect::LlamaCpp, "{dialect:?}, {situation}: {body}");
        }
    }
    // What the worker's :params say of them holds.
    let request =
        ChatRequest { params: params(&json!({"return_progress": false})), ..ChatRequest::default() };
    let form = BodyForm { server: Capabilities::of(Dialect::LlamaCpp), ..BodyForm::default() };
    assert_eq!(request.encode_body(form)["return_progress"], false);
}

#[tokio::test]
async fn no_request_keeps_a_server_busy_or_comes_back_in_lumps() {
    for dialect in DIALECTS {
        let server = Server::script([Answer::text("fine")]);
        assert_eq!(ask(&worker(&server, of(dialect))).await.text(), "fine");
        let post = &server.posts()[0];
        assert_eq!(post.header("x-conversation-id"), None, "{dialect:?}");
        assert_eq!(post.header("accept-encoding"), Some("identity"), "{dialect:?}");
    }
}

/// Calls with ids of every kind and with arguments that are none, reported to the model: what goes back is what
/// everyone takes.
#[tokio::test]
async fn only_arguments_that_parsed_and_ids_of_nine_characters_go_back() {
    for dialect in DIALECTS {
        let call = |index: usize, id: Value, arguments: &str| {
            let function = json!({"name": "look", "arguments": arguments});
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": id, "function": function}]}}]})
        };
        let odd = [
            call(0, json!("functions.look:0"), r#"{"at": "1"}"#),
            call(1, json!(7), "{not json"),
            call(2, json!("call_7f3a-2"), "[1]"),
            call(3, Value::Null, ""),
            call(4, json!("abcdefghi"), r#"{"at": "2"}"#),
            call(5, json!("abcdefghi"), r#"{"to": 1}"#),
        ];
        let first = odd.iter().chain([&end("tool_calls")]).fold(Answer::stream(), Answer::chunk).done().end();
        let server = Server::script([first, Answer::text("fine")]);
        let mut config = of(dialect);
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
            assert!(
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{dialect:?}: {id}"
            );
            assert!(!ids.contains(&id), "{dialect:?}: {id} twice");
            ids.push(id);
        }
        let answered: Vec<&str> =
            messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        assert_eq!(answered, ids, "{dialect:?}: every call is answered, in order");
    }
}

/// A session in which much was refused, the worker's second request: it begins with what the first one taught.
#[tokio::test]
async fn what_was_learned_is_in_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let mut config = of(Dialect::LlamaCpp);
    config.run.system = Some(String::from("be kind"));
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
        let recorder = Arc::new(Recorder::create(&path).unwrap());
        let request = SubmitRequest { recorder: Some(recorder), ..SubmitRequest::prompt("hello") };
        let id = worker.submit(request).unwrap();
        assert_eq!(finish(&worker, &id).await.text(), "fine");
        assert_eq!(server.posts().len(), 4);
    }
    let recording = Recording::read(&path).unwrap();
    assert_eq!(recording.requests()[0].session.server, config.server);
    let learned = Swaps::default().with(Swap::SystemFirst).with(Swap::NoProgress);
    assert_eq!(recording.requests()[0].session.swaps, learned);
    // Another worker, another server: what counts is the recorded one.
    let mut config = of(Dialect::OpenAi);
    config.run.system = Some(String::from("be kind"));
    let worker = Worker::replay(config, echo(), Arc::new(ReplayTransport::new(recording, false)));
    assert_eq!(ask(&worker).await.text(), "fine");
}

/// As it was written before there were dialects: it holds whether the server is a llama.cpp, and its requests have
/// nothing of llama.cpp's own.
#[tokio::test]
async fn a_recording_from_before_there_were_dialects_plays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    for llama_cpp in [true, false] {
        let session = json!({"record": "session", "version": 1, "request_id": "req_1", "job_name": "", "worker": "w",
            "conversation": [{"role": "user", "content": "hello"}], "url": "http://h/v1/chat/completions", "model": "m",
            "llama_cpp": llama_cpp, "parallel_tool_calls": true, "submitted_at_ms": 1, "zone": "UTC", "local_time": "", "id_seed": 1});
        let chunks = event(&delta("fine")) + &event(&end("stop")) + "data: [DONE]\n\n";
        let lines = [
            session,
            json!({"record": "request", "turn": 1, "attempt": 1, "at_ms": 0, "body": {"model": "m"}}),
            json!({"record": "response", "at_ms": 1, "status": 200}),
            json!({"record": "data", "at_ms": 2, "text": chunks}),
            json!({"record": "end", "at_ms": 3}),
        ];
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let recording = Recording::read(&path).unwrap();
        let expected = if llama_cpp { Dialect::LlamaCpp } else { Dialect::OpenAi };
        assert_eq!(
            (recording.requests()[0].session.server.dialect, recording.requests()[0].session.server.shaped),
            (expected, false)
        );
        let replay = Arc::new(ReplayTransport::new(recording, true));
        let worker = Worker::replay(config(), echo(), replay.clone());
        assert_eq!(ask(&worker).await.text(), "fine");
        let differed = replay.differences().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(!differed.contains("cache_prompt") && !differed.contains("return_progress"), "{differed}");
    }
}
