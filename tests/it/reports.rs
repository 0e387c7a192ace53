//! Public bug reports about other clients, servers and models, as inputs for the real binary: `tests/reports`.

#![cfg(unix)]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use deftool_test_support::server::{Answer, Received, Server, call, finish};
use serde_json::{Value, json};

use crate::support::project::Project;

/// An MCP server that answers with the files `tools/list` and `tools/call`.
const MCP_SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) answer='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"tools/list"'*) answer=\"result\":$(cat tools/list) ;;
    *'"tools/call"'*) answer=\"result\":$(cat tools/call) ;;
    *) answer='"error":{"code":-32601,"message":"unknown method"}' ;;
  esac
  [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

/// Inputs that were reported, one per file.
#[test]
fn reported_inputs_are_handled() {
    let paths = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_case = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "json")
            && path.file_stem().unwrap().to_str().unwrap().parse::<u64>().is_ok()
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_case).collect();
    paths.sort();
    check(paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect());
}

/// More inputs of these kinds.
macro_rules! kinds {
    ($($kind:ident)*) => {
        $(
            #[test]
            fn $kind() {
                check(serde_json::from_str(&read(concat!(stringify!($kind), ".json"))).unwrap());
            }
        )*
    };
}

kinds! { state layout markup repairs mcp calls servers }

/// Runs the cases.
fn check(cases: Vec<Value>) {
    let only = std::env::var("DEFTOOL_REPORT").ok().map(|id| id.parse::<u64>().unwrap());
    let mut wrong = Vec::new();
    for case in cases {
        let id = case["id"].as_u64().unwrap();
        if only.is_some_and(|only| only != id) {
            continue;
        }
        let seen = if case.get("acp").is_some() { Seen::session(&case) } else { Seen::run(&case) };
        let faults: Vec<String> =
            list(&case["accept"]).iter().filter_map(|accepted| seen.fault(accepted).err()).collect();
        if faults.len() == list(&case["accept"]).len() {
            wrong.push(seen.explain(&case, &faults));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// Returns the project of a case: `tests/reports/base`, with the worker and the MCP server of the case.
fn project(case: &Value) -> Project {
    let project = Project::empty();
    for part in ["specs", "scripts"] {
        for entry in fs::read_dir(folder().join("base").join(part)).unwrap() {
            let name = format!("{part}/{}", entry.unwrap().file_name().to_str().unwrap());
            project.write(&name, read(&format!("base/{name}")));
        }
    }
    if let Some(worker) = case["worker"].as_str() {
        project.write("specs/worker.eld", worker);
    }
    if let Some(results) = case["mcp"].as_object() {
        project.write("specs/mcp.eld", r#"(defmcp :name "t" :command ["sh" "server"])"#);
        project.write("server", MCP_SERVER);
        for (method, result) in results {
            project.write(method, result.to_string());
        }
    }
    project
}

/// What a case did.
#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    stderr: String,
    /// The bodies of all requests.
    requests: Vec<Value>,
    refused: usize,
    /// The response to `session/new`.
    session: Value,
}

impl Seen {
    /// Runs the worker against the server of the case.
    fn run(case: &Value) -> Self {
        let mut bodies: Vec<String> = list(&case["replies"]).iter().map(stream).collect();
        if let [Value::String(tool), arguments] = list(&case["call"]) {
            let calls = call(0, tool, &arguments.to_string())["choices"][0]["delta"].clone();
            bodies = vec![stream(&json!([calls])), read("ok.sse")];
        }
        let (refuse, condition) = (case["refuse"].clone(), case["refuse"]["if"].clone());
        let is_refused = move |request: &Received| !condition.is_null() && is_met(&condition, request);
        let (refuses, accepted) = (is_refused.clone(), std::sync::atomic::AtomicUsize::new(0));
        let server = Server::answering(move |_, request| {
            if refuses(request) {
                let status = u16::try_from(refuse["status"].as_u64().unwrap()).unwrap();
                return Answer::json(status, &refuse["body"]);
            }
            let index = accepted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Answer::stream().piece(&bodies[index.min(bodies.len() - 1)]).end()
        });
        let endpoint = server.endpoint();
        let arguments = ["run", "Please do it.", "--json", "--no-stdin", "--trust", "--endpoint", &endpoint];
        let ended = project(case).run(&arguments);
        let refused = server.posts().iter().filter(|request| is_refused(request)).count();
        let requests = server.posts().into_iter().map(|request| request.body).collect();
        Self { events: ended.events(), stderr: ended.stderr, requests, refused, session: Value::Null }
    }

    /// Opens a session in an editor, with the MCP servers of the case.
    fn session(case: &Value) -> Self {
        let (server, project) = (Server::script([Answer::text("Hello.")]), project(case));
        let mut command = project.command(&["acp", "--trust", "--endpoint", &server.endpoint()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = command.spawn().unwrap();
        let mut input = agent.stdin.take().unwrap();
        let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
        let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let mut send = |method: &str, params: Value| {
            let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
            writeln!(input, "{request}").unwrap();
            messages.find(|message| message["id"] == method).unwrap_or_default()
        };
        send("initialize", json!({"protocolVersion": 1}));
        let session = send("session/new", json!({"cwd": project.path(""), "mcpServers": case["acp"]}));
        drop(input);
        let events = messages.collect();
        let stderr = String::from_utf8(agent.wait_with_output().unwrap().stderr).unwrap();
        Self { events, stderr, session, ..Self::default() }
    }

    /// Compares with one accepted outcome. Returns the first difference.
    fn fault(&self, accepted: &Value) -> Result<(), String> {
        for (condition, expected) in accepted.as_object().unwrap() {
            if !self.meets(condition, expected) {
                return Err(format!("`{condition}` is not {expected}"));
            }
        }
        Ok(())
    }

    fn meets(&self, condition: &str, expected: &Value) -> bool {
        let text = expected.as_str().unwrap_or_default();
        let mut texts = list(expected).iter().map(|text| text.as_str().unwrap());
        match condition {
            "state" => self.finished()["state"] == *expected,
            "calls" => is_like(expected, &json!(self.calls())),
            "text_lacks" => {
                texts.all(|text| !self.finished()["text"].as_str().unwrap_or_default().contains(text))
            }
            "history" => self.assistant().any(|message| {
                expected.as_object().unwrap().iter().all(|(member, value)| message[member] == *value)
            }),
            "history_text" => self.assistant().any(|message| message.to_string().contains(text)),
            "input_text" => self.requests.last().unwrap()["input"].to_string().contains(text),
            "ids" => {
                let calls = self.assistant().flat_map(|message| list(&message["tool_calls"]));
                let results = self.results().map(|result| &result["tool_call_id"]);
                let ids: Vec<&Value> = calls.map(|call| &call["id"]).collect();
                ids == results.collect::<Vec<_>>() && ids == list(expected).iter().collect::<Vec<_>>()
            }
            "unique_ids" => {
                let ids: Vec<String> =
                    self.results().map(|result| result["tool_call_id"].to_string()).collect();
                let calls = self.assistant().flat_map(|message| list(&message["tool_calls"]));
                let unique: HashSet<&String> = ids.iter().collect();
                unique.len() == ids.len() && calls.map(|call| call["id"].to_string()).eq(ids.iter().cloned())
            }
            "result" => self.results().any(|result| result["content"] == *expected),
            "results_have" => self.results().any(|result| result["content"].to_string().contains(text)),
            "offered" => self.parameters(text).is_some(),
            "offered_object" => self.parameters(text).is_some_and(|schema| schema["type"] == "object"),
            "left_out" => self.parameters(text).is_none(),
            "all_objects" => self.tools().all(|tool| tool["parameters"]["type"] == "object"),
            "arrays_have_items" => self.schemas_are(|schema| {
                schema["type"] != "array" || schema.get("items").or(schema.get("prefixItems")).is_some()
            }),
            "no_items_list" => self.schemas_are(|schema| !schema["items"].is_array()),
            "no_base64_text" => {
                let messages = &self.requests.last().unwrap()["messages"];
                every(messages, &|value| ["content", "text"].iter().all(|member| !is_base64(&value[*member])))
            }
            "named" => self.stderr.contains(text) || json!(self.events).to_string().contains(text),
            "acp_session" => self.session["result"]["sessionId"].is_string() == expected.as_bool().unwrap(),
            "refused_at_most" => self.refused as u64 <= expected.as_u64().unwrap(),
            _ => panic!("unknown condition `{condition}`"),
        }
    }

    fn finished(&self) -> &Value {
        self.events.last().filter(|event| event["type"] == "finished").unwrap_or(&Value::Null)
    }

    /// Returns the name and the arguments of each call that ran.
    fn calls(&self) -> Vec<(&Value, &Value)> {
        let is_started = |id: &Value| {
            self.events.iter().any(|event| event["type"] == "tool_started" && event["id"] == *id)
        };
        let calls =
            self.events.iter().filter(|event| event["type"] == "tool_call" && is_started(&event["id"]));
        calls.map(|call| (&call["name"], &call["arguments"])).collect()
    }

    /// Returns the messages of the last request that have this role.
    fn messages(&self, role: &'static str) -> impl Iterator<Item = &Value> {
        let messages = self.requests.last().map(|body| list(&body["messages"])).unwrap_or_default();
        messages.iter().filter(move |message| message["role"] == role)
    }

    fn assistant(&self) -> impl Iterator<Item = &Value> {
        self.messages("assistant")
    }

    fn results(&self) -> impl Iterator<Item = &Value> {
        self.messages("tool")
    }

    /// Returns the tools of the first request.
    fn tools(&self) -> impl Iterator<Item = &Value> {
        let tools = self.requests.first().map(|body| list(&body["tools"])).unwrap_or_default();
        tools.iter().map(|tool| tool.get("function").unwrap_or(tool))
    }

    fn parameters(&self, name: &str) -> Option<&Value> {
        self.tools().find(|tool| tool["name"] == name).map(|tool| &tool["parameters"])
    }

    fn schemas_are(&self, is_right: impl Fn(&Value) -> bool) -> bool {
        self.tools().count() > 0 && self.tools().all(|tool| every(&tool["parameters"], &is_right))
    }

    fn explain(&self, case: &Value, faults: &[String]) -> String {
        let body = self.requests.last().unwrap_or(&Value::Null);
        let messages = body.get("messages").unwrap_or(&body["input"]).to_string();
        let messages: String = messages.chars().take(3000).collect();
        let tools: Vec<&Value> =
            self.tools().filter(|tool| tool["name"].as_str().unwrap().starts_with("t__")).collect();
        format!(
            "{}: {}\nright: {}\nfaults: {}\ncalls: {}\nfinished: {}\nrefused: {} of {}\nlast messages: {messages}\nMCP tools: {}\n\
             session: {}\nstderr: {}",
            case["id"],
            case["symptom"],
            case["right"],
            faults.join("; or "),
            json!(self.calls()),
            self.finished(),
            self.refused,
            self.requests.len(),
            json!(tools),
            self.session,
            self.stderr,
        )
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a reply: the content of a file, or a stream with these deltas. A delta with a `type` is an event of the Responses
/// API.
fn stream(reply: &Value) -> String {
    let Value::Array(deltas) = reply else { return read(reply.as_str().unwrap()) };
    let chunk =
        |delta: &Value| json!({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut chunks: Vec<Value> = deltas
        .iter()
        .map(|delta| if delta.get("type").is_some() { delta.clone() } else { chunk(delta) })
        .collect();
    let has_calls = deltas.iter().any(|delta| delta.get("tool_calls").is_some());
    if deltas.iter().all(|delta| delta.get("type").is_none()) {
        chunks.push(finish(if has_calls { "tool_calls" } else { "stop" }));
    }
    chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .chain([String::from("data: [DONE]\n\n")])
        .collect()
}

/// Reports whether the server of a case refuses this request.
fn is_met(condition: &Value, request: &Received) -> bool {
    let body = &request.body;
    let messages = list(&body["messages"]);
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    let turns = || messages.iter().filter(|message| message.get("tool_calls").is_some());
    condition.as_object().unwrap().iter().all(|(name, value)| match name.as_str() {
        "assistant_with_calls_lacks" => turns().any(|message| message.get(value.as_str().unwrap()).is_none()),
        "assistant_has" => messages.iter().any(|message| message.get(value.as_str().unwrap()).is_some()),
        "first_call_lacks" => {
            turns().any(|message| message["tool_calls"][0].get(value.as_str().unwrap()).is_none())
        }
        "calls_lack_item" => {
            let types: Vec<&Value> = list(&body["input"]).iter().map(|item| &item["type"]).collect();
            types.contains(&&json!("function_call")) && !types.contains(&value)
        }
        "late_system" => roles.iter().skip(1).any(|role| *role == "system"),
        "path" => request.path().ends_with(value.as_str().unwrap()),
        "roles_break_mistral" => {
            let breaks = [["tool", "system"], ["tool", "user"], ["assistant", "system"]];
            roles.windows(2).any(|pair| breaks.iter().any(|roles| roles == pair))
                || !matches!(roles.last(), Some(&("user" | "tool")))
        }
        "more_than_one_system" => roles.iter().filter(|role| **role == "system").count() > 1,
        _ => panic!("unknown condition `{name}`"),
    })
}

/// Reports whether two values are equal, where `*` is equal to any value.
fn is_like(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Array(expected), Value::Array(values)) => {
            expected.len() == values.len()
                && expected.iter().zip(values).all(|(one, other)| is_like(one, other))
        }
        (Value::Object(expected), Value::Object(values)) => {
            expected.len() == values.len()
                && expected.iter().all(|(key, one)| values.get(key).is_some_and(|other| is_like(one, other)))
        }
        _ => expected == value,
    }
}

/// Reports whether `is_right` is true for every object inside of a value.
fn every(value: &Value, is_right: &impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(members) => is_right(value) && members.values().all(|member| every(member, is_right)),
        Value::Array(items) => items.iter().all(|item| every(item, is_right)),
        _ => true,
    }
}

/// Reports whether a string contains the data of a file.
fn is_base64(text: &Value) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    text.as_str().is_some_and(|text| {
        text.as_bytes().chunk_by(|a, b| is_digit(a) && is_digit(b)).any(|run| run.len() > 256)
    })
}
