//! The main features with a real server and a real model: llama.cpp's HTTP server, started by `tests/real/serve.py`.
//!
//! Unless `tests/real/install` was run, these tests are skipped with a message. With `DEFTOOL_REAL=required`, as in
//! `.ci/run`, they fail instead.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;

use deftool_test_support::can_use;
use serde_json::{Value, json};

pub(crate) const PROMPT: &str = "What is the weather in Paris, in celsius?";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A running server. It exits when its stdin is closed, at the latest when this process ends.
pub(crate) struct Server {
    child: Child,
    _lifeline: ChildStdin,
    pub(crate) endpoint: String,
}

impl Server {
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts the server with arguments for `tests/real/serve.py`. Returns `None` if it is not installed.
    pub(crate) fn start_with(arguments: &[&str]) -> Option<Self> {
        let folder = root().join("tests/real");
        let python = folder.join(".venv/bin/python");
        let is_there = folder.join(".venv/installed").exists();
        if !can_use("real server (140 MB)", is_there, "DEFTOOL_REAL", "tests/real/install") {
            return None;
        }
        let mut child = Command::new(python)
            .arg(folder.join("serve.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lifeline = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let endpoint =
            line.trim().strip_prefix("READY ").unwrap_or_else(|| panic!("the server said {line:?}"));
        Some(Self { endpoint: endpoint.to_owned(), child, _lifeline: lifeline })
    }
}

/// Returns the endpoint of the server that the tests share.
fn shared() -> Option<&'static str> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::start).as_ref().map(|server| server.endpoint.as_str())
}

fn deftool(arguments: &[&str], project: &Path, endpoint: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command.args(arguments).arg("-C").arg(project).env_remove("OPENAI_BASE_URL").env_remove("OPENAI_API_KEY");
    if let Some(endpoint) = endpoint {
        command.args(["--endpoint", endpoint]);
    }
    command
}

fn quickstart() -> PathBuf {
    root().join("examples/quickstart")
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not an event: {line}")))
        .collect()
}

/// Runs a command that must exit with this status, and returns its events.
fn run(command: &mut Command, status: i32) -> Vec<Value> {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let events = events(&output);
    assert_eq!(output.status.code(), Some(status), "{events:#?}\n{stderr}");
    events
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Creates a project without tools, in which the model writes a long reply.
fn talkative() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("specs")).unwrap();
    let worker = "(defworker :name \"talk\" :params (:temperature 0 :seed 1 :max-tokens 2000))";
    std::fs::write(folder.path().join("specs/worker.eld"), worker).unwrap();
    folder
}

/// Sends a request that requires a call of one tool. Returns the error, or `None` if the request succeeded.
fn refusal(endpoint: &str, parameters: &Value) -> Option<Value> {
    let function = json!({"name": "probe", "description": "Call this.", "parameters": parameters});
    let body = json!({
        "messages": [{"role": "user", "content": "Call it."}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "max_tokens": 1
    });
    let body = body.to_string();
    let address = endpoint.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap().get("error").cloned()
}

#[test]
fn recorded_grammar_rejections_still_match() {
    let Some(endpoint) = shared() else { return };
    let rows = [
        "string",
        "schema-true",
        "pattern-digit",
        "pattern-unclosed-bracket",
        "min-length-2001",
        "ref-to-property",
        "ref-root",
        "any-of-empty",
        "additional-properties-bracket",
        "not-true",
    ];
    for recorded in crate::language::llama_cpp::responses() {
        if rows.contains(&recorded.name.as_str()) {
            let error = refusal(endpoint, &recorded.parameters);
            assert_eq!(error.is_none(), recorded.error.is_none(), "{}: {error:?}", recorded.name);
        }
    }
}

const STORY: &str = "Tell me a long story about a ship and its crew.";

#[test]
fn doctor_tries_the_model() {
    let Some(endpoint) = shared() else { return };
    let output = deftool(&["doctor", "--try", "--json"], &quickstart(), Some(endpoint)).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let message = |name: &str| {
        let found = checks.iter().rfind(|check| check["check"] == name && check["level"] == "ok");
        found.unwrap_or_else(|| panic!("{name}: {report:#}"))["message"].as_str().unwrap()
    };
    assert_eq!(message("call"), "structured");
    assert_eq!(message("arguments"), r#"{"location":"Paris","unit":"celsius"}"#);
    assert!(message("result").contains("17 degrees"), "{report:#}");
    assert!(message("streaming").starts_with("up to "), "{report:#}");
    assert!(message("context").starts_with("4096 tokens; this prompt"), "{report:#}");
}

#[test]
fn the_quickstart_completes_with_one_call_a_streamed_answer_and_one_signal() {
    let Some(endpoint) = shared() else { return };
    let events = run(&mut deftool(&["run", PROMPT, "--json"], &quickstart(), Some(endpoint)), 0);
    let calls = of_type(&events, "tool_call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["name"], "get_weather");
    assert_eq!(calls[0]["arguments"]["location"], "Paris");
    assert_eq!(of_type(&events, "tool_finished")[0]["result"]["temperature"], 21);
    assert!(of_type(&events, "text").len() > 3, "the answer streams");
    let finished = events.last().unwrap();
    assert_eq!(finished["type"], "finished");
    assert_eq!(finished["state"], "completed");
    assert_eq!(finished["finish_reason"], "stop");
    assert_eq!(finished["tool_iterations"], 1);
    assert!(finished["text"].as_str().unwrap().contains("21"), "{finished}");
    let signals = finished["signals"].as_array().unwrap();
    assert_eq!(signals.len(), 1);
    assert_eq!(signals[0]["tool_name"], "task_complete");
    assert!(finished["usage"]["completion_tokens"].as_u64().unwrap() > 10);
}

/// Copies the quickstart project, with a different worker.
fn quickstart_with(worker: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["specs/weather.eld", "scripts/get_weather.lua"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(quickstart().join(name), path).unwrap();
    }
    std::fs::write(folder.path().join("specs/worker.eld"), worker).unwrap();
    folder
}

#[test]
fn the_quickstart_completes_over_the_responses_api_and_can_be_replayed() {
    complete_and_replay("responses", "response.output_text.delta");
}

#[test]
fn the_quickstart_completes_over_the_messages_api_and_can_be_replayed() {
    complete_and_replay("messages", "content_block_delta");
}

/// Runs the quickstart over another API, whose stream has events of this type.
fn complete_and_replay(api: &str, event: &str) {
    let Some(endpoint) = shared() else { return };
    let project = quickstart_with(&format!(
        "(defworker :name \"w\" :api {api} :params (:temperature 0 :seed 1 :max-tokens 300))"
    ));
    let file = project.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    let record = ["run", PROMPT, "--json", "--record", file];
    let told = run(&mut deftool(&record, project.path(), Some(endpoint)), 0);
    let calls = of_type(&told, "tool_call");
    assert_eq!((calls.len(), &calls[0]["name"]), (1, &json!("get_weather")));
    assert_eq!(calls[0]["arguments"]["location"], "Paris");
    assert!(of_type(&told, "text").len() > 3, "the answer streams");
    let finished = told.last().unwrap();
    assert_eq!((&finished["state"], &finished["finish_reason"]), (&json!("completed"), &json!("stop")));
    assert!(finished["text"].as_str().unwrap().contains("21"), "{finished}");
    assert_eq!(finished["signals"][0]["tool_name"], "task_complete");
    assert!(finished["usage"]["completion_tokens"].as_u64().unwrap() > 10, "{finished}");
    let recording = std::fs::read_to_string(file).unwrap();
    assert!(recording.contains(&format!("/v1/{api}")) && recording.contains(event));

    let replayed = run(&mut deftool(&["run", "--json", "--replay", file], project.path(), None), 0);
    assert_eq!(told, replayed);
}

#[test]
fn a_prompt_that_is_too_long_for_the_responses_api_is_reported() {
    let Some(endpoint) = shared() else { return };
    let project = quickstart_with("(defworker :name \"w\" :api responses)");
    let prompt = "a b c ".repeat(3000);
    let told = run(&mut deftool(&["run", &prompt, "--json"], project.path(), Some(endpoint)), 1);
    assert_eq!(told.last().unwrap()["kind"], "context_overflow", "{told:#?}");
}

#[test]
fn a_replay_of_a_recorded_session_gives_the_same_events() {
    let Some(endpoint) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    let record = ["run", PROMPT, "--json", "--record", file];
    let live = run(&mut deftool(&record, &quickstart(), Some(endpoint)), 0);
    let replayed = run(&mut deftool(&["run", "--json", "--replay", file], &quickstart(), None), 0);
    assert_eq!(live, replayed);
}

#[test]
#[cfg(unix)]
fn a_cancel_in_the_middle_keeps_the_text() {
    let Some(endpoint) = shared() else { return };
    let project = talkative();
    let mut child = deftool(&["run", STORY, "--json"], project.path(), Some(endpoint))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut shown = read_some_text(&mut lines);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    shown.extend(of_type(&rest, "text").iter().map(|event| event["text"].as_str().unwrap().to_owned()));
    let finished = rest.last().unwrap();
    assert_eq!(finished["state"], "canceled");
    assert_eq!(finished["finish_reason"], "canceled");
    assert_eq!(finished["text"], shown.concat());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
#[cfg(unix)]
fn a_server_that_dies_in_the_middle_fails_the_request_and_keeps_the_text() {
    let Some(mut server) = Server::start() else { return };
    let project = talkative();
    let mut child = deftool(&["run", STORY, "--json"], project.path(), Some(&server.endpoint))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut shown = read_some_text(&mut lines);
    server.child.kill().unwrap();
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    shown.extend(of_type(&rest, "text").iter().map(|event| event["text"].as_str().unwrap().to_owned()));
    let finished = rest.last().unwrap();
    assert_eq!(finished["state"], "failed");
    assert_eq!(finished["kind"], "stream_incomplete");
    assert!(finished["detail"].as_str().unwrap().contains("cut off"), "{finished}");
    assert_eq!(finished["text"], shown.concat());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    server.child.wait().unwrap();
}

/// Reads events until five text events were received. Returns their texts.
fn read_some_text(lines: &mut impl Iterator<Item = String>) -> Vec<String> {
    let mut shown = Vec::new();
    while shown.len() < 5 {
        let event: Value = serde_json::from_str(&lines.next().expect("the reply goes on")).unwrap();
        assert_ne!(event["type"], "finished", "{event}");
        if event["type"] == "text" {
            shown.push(event["text"].as_str().unwrap().to_owned());
        }
    }
    shown
}
