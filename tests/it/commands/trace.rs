//! The trace context of the caller, through each command to the model server, to HTTP servers and to MCP servers.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use deftool_test_support::server::{Answer, Received, Server, call, finish};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

pub(super) const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
pub(super) const STATE: &str = "vendor=a";

/// A project with a tool that requests a URL. The MCP server `far` has the same tool.
pub(super) fn project() -> Project {
    let project = Project::empty();
    let deftool = env!("CARGO_BIN_EXE_deftool");
    for folder in ["", "far/"] {
        project.write(
            &format!("{folder}specs/fetch.eld"),
            r#"(deftool :name "fetch" :description "Fetch." :allow (:net ["127.0.0.1:*"])
 :args ((:name "url" :type string :description "The URL.")))"#,
        );
        project.write(
            &format!("{folder}scripts/fetch.lua"),
            "return function(url) return http.get(url).status end\n",
        );
    }
    project.write(
        "specs/far.eld",
        format!(r#"(defmcp :name "far" :command ["{deftool}" "mcp" "-C" "far" "--trust"])"#),
    );
    project
}

/// A server that answers each request with 200, and its URL.
pub(super) fn web() -> (Server, String) {
    let server = Server::answering_all(|_, _| Answer::whole(200, &[], ""));
    let url = format!("http://{}/", server.address());
    (server, url)
}

/// A model that calls `tool`, and then answers.
fn model(tool: &str, url: &str) -> Server {
    let arguments = json!({ "url": url }).to_string();
    Server::script([Answer::chunks(&[call(0, tool, &arguments), finish("tool_calls")]), Answer::text("done")])
}

/// Returns the trace context of a request.
pub(super) fn trace_of(received: &Received) -> (Option<&str>, Option<&str>) {
    (received.header("traceparent"), received.header("tracestate"))
}

/// Checks that all `count` requests to the server belong to the trace of the caller.
fn expect_trace(server: &Server, count: usize) {
    let received = server.posts();
    assert_eq!(received.len(), count, "{received:?}");
    for request in &received {
        assert_eq!(trace_of(request), (Some(PARENT), Some(STATE)));
    }
}

/// A command that exchanges one message per line.
pub(super) struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::spawn(project.command(arguments))
    }

    pub(super) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, input, output }
    }

    /// Sends a request and returns its result.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "{method}: no response");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 1 {
                assert!(message["result"].is_object(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    pub(super) fn end(mut self) {
        drop(self.input.take());
        self.process.wait().unwrap();
    }
}

fn run(project: &Project, arguments: &[&str], parent: &str, state: &str) -> Ended {
    let mut command = project.command(arguments);
    command.env("TRACEPARENT", parent).env("TRACESTATE", state).stdin(Stdio::null());
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn a_request_continues_the_trace_of_its_environment() {
    let project = project();
    for isolate in ["threads", "process"] {
        let (web, url) = web();
        let model = model("fetch", &url);
        let endpoint = model.endpoint();
        let options = ["--trust", "--isolate", isolate, "--endpoint", &endpoint];
        run(&project, &[&["run", "x"], &options[..]].concat(), PARENT, STATE);
        expect_trace(&model, 2);
        expect_trace(&web, 1);
    }
    let (web, url) = web();
    let model = model("fetch", &url);
    let chat = ["chat", "x", "--no-save", "--trust", "--endpoint", &model.endpoint()];
    run(&project, &chat, PARENT, STATE);
    run(&project, &["call", "fetch", "--trust", &json!({ "url": url }).to_string()], PARENT, STATE);
    expect_trace(&model, 2);
    expect_trace(&web, 2);
}

#[test]
fn without_a_valid_parent_no_request_has_trace_headers() {
    let project = project();
    for parent in ["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n", "garbage"] {
        let (web, url) = web();
        let model = model("fetch", &url);
        run(&project, &["run", "x", "--trust", "--endpoint", &model.endpoint()], parent, STATE);
        for request in model.posts().iter().chain(&web.posts()) {
            assert_eq!(trace_of(request), (None, None), "{parent:?}");
        }
    }
}

/// The remote server is deftool too: it passes the member of `_meta` to the HTTP request of its script.
#[test]
fn calls_of_mcp_servers_continue_the_trace() {
    let project = project();
    let (web, url) = web();
    let model = model("far__fetch", &url);
    run(&project, &["run", "x", "--trust", "--endpoint", &model.endpoint()], PARENT, STATE);
    expect_trace(&web, 1);
    let mut host = Peer::start(&project, &["mcp", "-C", "far", "--trust"]);
    let info = json!({"name": "test", "version": "1"});
    host.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
    );
    let meta = json!({"traceparent": 7, "tracestate": STATE});
    host.request("tools/call", json!({"name": "fetch", "arguments": {"url": url}, "_meta": meta}));
    host.end();
    assert_eq!(trace_of(&web.posts()[1]), (None, None));
}

#[test]
fn clients_send_their_trace_with_a_message() {
    let project = project();
    let (web, url) = web();
    let model = model("fetch", &url);
    let mut client = Peer::start(&project, &["rpc", "--trust", "--endpoint", &model.endpoint()]);
    let trace = |mut params: Value| {
        params["traceparent"] = json!(PARENT);
        params["tracestate"] = json!(STATE);
        params
    };
    let submitted = client.request("submit", trace(json!({"prompt": "x"})));
    let ended = client.request("result", json!({"request_id": submitted["request_id"]}));
    assert_eq!(ended["outcome"]["state"], "completed", "{ended}");
    client.request("call", trace(json!({"tool": "fetch", "arguments": {"url": url}})));
    client.end();
    expect_trace(&model, 2);
    expect_trace(&web, 2);

    let model = self::model("fetch", &url);
    let mut editor = Peer::start(&project, &["acp", "--trust", "--endpoint", &model.endpoint()]);
    editor.request("initialize", json!({"protocolVersion": 1}));
    let opened = editor.request("session/new", json!({"cwd": project.path(""), "mcpServers": []}));
    let prompt = json!([{"type": "text", "text": "x"}]);
    let prompt = json!({"sessionId": opened["sessionId"], "prompt": prompt, "_meta": trace(json!({}))});
    assert_eq!(editor.request("session/prompt", prompt)["stopReason"], "end_turn");
    editor.end();
    expect_trace(&model, 2);
    expect_trace(&web, 3);
}

/// A resumed request stays in the trace of its submitter.
#[test]
fn a_resumed_request_keeps_its_trace() {
    let project = project();
    let (web, url) = web();
    let model = Server::answering(|_, _| Answer::silent());
    let options = ["--trust", "--endpoint", &model.endpoint()];
    let mut command = project.command(&[&["run", "x", "--journal", "j"], &options[..]].concat());
    command.env("TRACEPARENT", PARENT).env("TRACESTATE", STATE).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    model.wait_for_posts(1);
    child.kill().unwrap();
    child.wait().unwrap();
    let model = self::model("fetch", &url);
    let ended = project.run(&["journal", "resume", "j", "--trust", "--endpoint", &model.endpoint()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    expect_trace(&model, 2);
    expect_trace(&web, 1);
}

/// A build without telemetry reports that it ignores a collector. A replay would not use it.
#[cfg(not(feature = "otel"))]
#[test]
fn a_build_without_telemetry_ignores_a_collector_with_one_warning() {
    let project = project();
    let (_web, url) = web();
    let model = model("fetch", &url);
    let warning = "warning: OTEL_EXPORTER_OTLP_ENDPOINT is ignored: this build has no telemetry; use a release package, \
                   or build with `--features otel`\n";
    let endpoint = model.endpoint();
    let record = ["run", "x", "--trust", "--record", "r.jsonl", "--endpoint", &endpoint];
    for (arguments, count) in [(&record[..], 1), (&["run", "--trust", "--replay", "r.jsonl"], 0)] {
        let mut command = project.command(arguments);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318").stdin(Stdio::null());
        let ended = Ended::of(command.output().unwrap());
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), "done"), "{ended:?}");
        assert_eq!(ended.stderr.matches(warning).count(), count, "{ended:?}");
    }
}
