//! Answers of MCP servers that are errors, or break the protocol: each ends its call at once, over every transport.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};

const RESULT: &str = "tool   t__ping → \"pong\"";

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name).display().to_string()
}

fn pong() -> Value {
    json!({"content": [{"type": "text", "text": "pong"}]})
}

/// Runs a worker that calls `ping` of the server `t` and then ends, if errors of the runner do not end it.
fn run(server: &str, played: &Value, calls: usize) -> (Ended, Project) {
    run_calls(server, played, &vec!["t__ping"; calls])
}

fn run_calls(server: &str, played: &Value, calls: &[&str]) -> (Ended, Project) {
    let project = Project::empty();
    project.write(
        "specs/a.eld",
        format!("(defmcp :name \"t\" {server} :timeout \"120s\")\n(defworker :name \"w\")\n"),
    );
    project.write("server.json", played.to_string());
    let replies: Vec<_> = calls.iter().map(|call| format!("(reply (call \"{call}\"))")).collect();
    let replies = replies.join(" ");
    project.write("stub.eld", format!("(defscenario :name \"s\" {replies} (reply \"done\"))"));
    let mut http = server.contains("URL").then(|| Http::start(&project));
    if let Some(http) = &mut http {
        let spec = std::fs::read_to_string(project.path("specs/a.eld")).unwrap();
        project.write("specs/a.eld", spec.replace("URL", &http.url));
    }
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool"), "run", "x", "--trust"];
    let mut command = command_in(&project.path(""), &stub);
    let ended = Ended::of(command.env("TOKEN", "secret").stdin(Stdio::null()).output().unwrap());
    assert!(!ended.stderr.contains("no result within"), "{played}: {ended:?}");
    (ended, project)
}

fn over_stdio(played: &Value) -> Ended {
    let mut played = played.clone();
    let tools = json!([{"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}]);
    played["initialize"] = json!({});
    played["list"] = tools;
    run(&format!(":command [\"python3\" \"{}\"]", file("played.py")), &played, 1).0
}

fn over_http(played: &Value) -> Ended {
    run(":url \"URL\"", played, 1).0
}

/// A running `played_http.py`.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(project: &Project) -> Self {
        let mut command = Command::new("python3");
        command.arg(file("played_http.py")).current_dir(project.path("")).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The members of an answer, what is printed, and whether the model receives it.
#[test]
fn an_answered_error_is_a_result() {
    let failed = |text: &str| format!("tool   t__ping → failed: MCP server `t`: {text}");
    let typed = |kind: &Value| json!({"content": pong()["content"], "resultType": kind});
    let rows = [
        (json!({"error": {"code": -32603, "message": "disk full"}}), failed("disk full (-32603)"), true),
        (json!({"error": {"code": -32602, "message": "no", "data": [1]}}), failed("no (-32602)"), true),
        (json!({"error": {"code": 404, "message": "no issue 5"}}), failed("no issue 5 (404)"), true),
        (json!({"error": {"code": -32601, "message": "what?"}}), failed("what? (-32601)"), false),
        (json!({"error": {"code": "-32000", "message": "a"}}), failed("a (-32000)"), true),
        (json!({"error": {"code": "E_DISK", "message": "full"}}), failed("E_DISK: full (-32603)"), true),
        (json!({"error": {"message": "full"}}), failed("full (-32603)"), true),
        (json!({"error": "full"}), failed("full (-32603)"), true),
        (json!({"error": {"code": 5}}), failed("{\"code\":5} (5)"), true),
        (json!({"error": {"code": 1, "message": "both"}, "result": pong()}), failed("both (1)"), true),
        (json!({"error": null, "result": pong()}), String::from(RESULT), true),
        (json!({"result": typed(&Value::Null)}), String::from(RESULT), true),
        (json!({"result": typed(&json!("complete"))}), String::from(RESULT), true),
        (json!({"result": typed(&json!("task"))}), failed("the tool asks for more input"), false),
        (json!({"id": null, "error": {"code": -32000, "message": "lost"}}), failed("lost (-32000)"), true),
        (json!({"error": null}), failed("the answer has no result and no error"), false),
    ];
    for (members, shown, is_received) in rows {
        let reply = json!({"call": {"status": 200, "body": members}});
        let mut event = reply.clone();
        event["sse"] = json!(true);
        for ended in [over_stdio(&json!({"answer": members})), over_http(&reply), over_http(&event)] {
            assert!(ended.stderr.contains(&shown), "{members}: {ended:?}");
            assert_eq!(ended.stdout.contains("done"), is_received, "{members}: {ended:?}");
        }
    }
}

/// Responses of a HTTP server that cannot be matched to the call by an id.
#[test]
fn every_http_response_ends_its_call() {
    let unmatched =
        json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}, "id": null});
    let foreign = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "No"}, "id": "server-error"});
    let rows = [
        (400, unmatched.clone(), "No valid session ID (-32000)", true),
        (500, unmatched.clone(), "No valid session ID (-32000)", true),
        (200, unmatched.clone(), "No valid session ID (-32000)", true),
        (429, unmatched, "No valid session ID (-32000)", true),
        (400, foreign, "No (-32600)", true),
        (202, json!(""), "HTTP 202 Accepted: no result", false),
        (200, json!(""), "HTTP 200 OK: no result", false),
        (200, json!("<html>"), "HTTP 200 OK: <html>", false),
        (502, json!("upstream is down"), "HTTP 502 Bad Gateway: upstream is down", false),
        (401, json!("who?"), "HTTP 401 Unauthorized: who?", false),
    ];
    for (status, body, text, is_received) in rows {
        let ended = over_http(&json!({"call": {"status": status, "body": body}}));
        let shown = format!("tool   t__ping → failed: MCP server `t`: {text}");
        assert!(ended.stderr.contains(&shown), "{status} {body}: {ended:?}");
        assert_eq!(ended.stdout.contains("done"), is_received, "{status} {body}: {ended:?}");
    }
}

/// A redirect within the origin keeps the request and its token. No other origin gets a request.
#[test]
fn redirects_stay_within_the_origin() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let elsewhere = format!("http://{}/mcp/", other.local_addr().unwrap());
    let is_another =
        format!("to {elsewhere}, which is another origin; write that URL in `:url` if you trust it");
    let keeps = "/mcp/, with a status that changes the request; write that URL in `:url`";
    for (status, location, method, shown) in [
        (307, "/mcp/", None, RESULT),
        (308, "/mcp/", None, RESULT),
        (307, "/mcp/", Some("tools/call"), RESULT),
        (302, "/mcp/", None, keeps),
        (307, "/mcp", None, "/mcp, and so on"),
        (307, &format!("{elsewhere}?key=1"), None, &is_another),
        (308, &elsewhere, Some("tools/call"), &is_another),
        (301, &elsewhere, None, &is_another),
    ] {
        let mut redirect = json!({"status": status, "location": location});
        if let Some(method) = method {
            redirect["method"] = json!(method);
        }
        let call = json!({"status": 200, "body": {"result": pong()}});
        let played = json!({"redirect": redirect, "token": "secret", "call": call});
        let (ended, _project) = run(":url \"URL\" :token-env \"TOKEN\"", &played, 1);
        assert!(ended.stderr.contains(shown), "{status} {location}: {ended:?}");
        assert!(other.accept().is_err(), "{status} {location}");
    }
}

/// The same as over stdio.
#[test]
fn a_change_before_a_result_counts_over_http() {
    let call = json!({"status": 200, "body": {"result": pong()}});
    let played = json!({"sse": true, "changed": true, "call": call});
    let replies = ["t__ping", "t__more"];
    let (ended, _project) = run_calls(":url \"URL\"", &played, &replies);
    assert!(ended.stderr.contains("tool   t__more → \"pong\""), "{ended:?}");
}

/// A server that was restarted refuses the session of the client.
#[test]
fn a_lost_session_is_initialised_again() {
    let unmatched =
        json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}, "id": null});
    for gone in [
        json!({"status": 400, "body": unmatched}),
        json!({"status": 400, "body": "unknown session"}),
        json!({"status": 404, "body": ""}),
    ] {
        let played =
            json!({"sessions": 1, "gone": gone, "call": {"status": 200, "body": {"result": pong()}}});
        let (ended, _project) = run(":url \"URL\"", &played, 3);
        assert_eq!(ended.stderr.matches(RESULT).count(), 3, "{gone}: {ended:?}");
    }
    // The server refuses each session.
    for (gone, text) in [
        (json!({"status": 400, "body": unmatched}), "No valid session ID (-32000)"),
        (json!({"status": 404, "body": "unknown session"}), "HTTP 404 Not Found: unknown session"),
    ] {
        let (ended, _project) = run(":url \"URL\"", &json!({"sessions": 0, "gone": gone, "call": {}}), 1);
        assert!(ended.stderr.contains(&format!("failed: MCP server `t`: {text}")), "{ended:?}");
    }
}

/// A server that logs to stdout.
#[test]
fn lines_that_are_not_json_rpc_get_no_answer() {
    for (log, warned) in [
        (r#"{"level":"info","msg":"ready"}"#, 1),
        (r#"{"level":"info","method":"GET","id":5}"#, 1),
        (r#"{"level":"error","error":"none","id":"x"}"#, 1),
        ("[1]", 1),
        ("5", 1),
        ("ready", 1),
        ("\nready\n", 1),
        (r#"{"jsonrpc":"2.0","method":"notifications/odd","params":5}"#, 0),
        ("", 0),
    ] {
        let played = json!({"initialize": {}, "log": log, "call": pong(),
            "list": [{"tools": [{"name": "ping", "inputSchema": {}}]}]});
        let server = format!(":command [\"python3\" \"{}\"]", file("played.py"));
        let (ended, project) = run(&server, &played, 2);
        assert_eq!(ended.stderr.matches(RESULT).count(), 2, "{log}: {ended:?}");
        let warning = format!(
            "MCP server `t`: prints lines on stdout that are not JSON-RPC and are ignored, such as `{}`",
            log.trim()
        );
        assert_eq!(ended.stderr.matches(&warning).count(), warned, "{log}: {ended:?}");
        assert_eq!(ended.stderr.matches("MCP server").count(), warned, "{log}: {ended:?}");
        let received: usize = std::fs::read_to_string(project.path("received")).unwrap().parse().unwrap();
        assert!(received < 10, "{log}: {received}");
    }
}

/// One limit, 32 MiB, for every transport. Programs write the id first or last.
#[test]
fn a_message_that_is_too_large_ends_its_call() {
    const MIB: usize = 1 << 20;
    for (size, shown) in [
        (17 * MIB, "tool   t__ping → \"xxx"),
        (33 * MIB, "failed: MCP server `t`: the message is larger than 32 MiB"),
    ] {
        let reply = json!({"call": {"size": size}});
        let mut event = reply.clone();
        event["sse"] = json!(true);
        let last = json!({"size": size, "id": "last"});
        for ended in
            [over_stdio(&json!({"size": size})), over_stdio(&last), over_http(&reply), over_http(&event)]
        {
            assert!(ended.stderr.contains(shown), "{size}: {:.2000}", ended.stderr);
        }
    }
}

/// The same limit for the messages of a host.
#[test]
fn a_request_that_is_too_large_is_answered() {
    let project = Project::empty();
    project.write("specs/a.eld", "(deftool :name \"now\" :description \"Tell the time.\" :args ())");
    project.write("scripts/now.lua", "return function() return \"noon\" end\n");
    let mut command = command_in(&project.path(""), &["mcp"]);
    let mut host =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = host.stdin.take().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let large = "x".repeat(33 << 20);
    for line in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).to_string(),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"now","arguments":{{"a":"{large}"}}}}}}"#),
        format!(r#"{{"params":{{"name":"now","arguments":{{"a":"{large}"}}}},"method":"tools/call","id":"eight"}}"#),
        format!(r#"{{"params":{{"a":"{large}"}},"method":"notifications/odd"}}"#),
        json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}).to_string(),
    ] {
        writeln!(input, "{line}").unwrap();
    }
    let answers: Vec<Value> =
        (0..4).map(|_| serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()).collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(7), &json!("eight"), &json!(9)], "{answers:?}");
    for answer in &answers[1..3] {
        let error = json!({"code": -32600, "message": "the message is larger than 32 MiB"});
        assert_eq!(answer["error"], error, "{answer}");
    }
    drop(input);
    host.wait().unwrap();
}
