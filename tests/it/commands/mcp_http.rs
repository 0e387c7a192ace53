//! `deftool mcp` over HTTP: raw requests of several clients.

#![cfg(unix)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use deftool_test_support::{HANG_LIMIT, step};
use rustix::process::Pid;
use serde_json::{Value, json};

use super::mcp::{SLOW, http_command, line_of, project, start, start_http, wait_until_gone};
use crate::support::project::Project;
use crate::support::watching::WatchProcess;

/// The headers of an accepted request.
const ACCEPTED: [(&str, &str); 2] = [("Host", "localhost"), ("Authorization", "Bearer secret")];

/// Less than the 30 s after which a server closes an idle connection.
const BEFORE_IDLE_ENDS: Duration = Duration::from_secs(25);

fn connect(url: &str) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG_LIMIT)).unwrap();
    stream
}

/// Starts a server whose tools use all of the processor, at the lowest priority, so that other tests are not delayed.
fn start_http_last(project: &Project, arguments: &[&str]) -> (WatchProcess, String) {
    let command = http_command(project, arguments);
    let mut last = Command::new("nice");
    last.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    last.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => last.env(name, value),
            None => last.env_remove(name),
        };
    }
    start(last)
}

/// Sends a request over HTTP.
fn send(url: &str, headers: &[(&str, &str)], body: &Value) -> TcpStream {
    let mut stream = connect(url);
    write_request(&mut stream, headers, body);
    stream
}

fn write_request(stream: &mut TcpStream, headers: &[(&str, &str)], body: &Value) {
    let body = body.to_string();
    let mut request =
        b"POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n".to_vec();
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    let accept = "Accept: application/json, text/event-stream";
    write!(request, "{accept}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.write_all(&request).unwrap();
}

/// Returns the answer until the end of the connection.
fn receive(mut stream: TcpStream) -> String {
    let begun = Instant::now();
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    // A stream of events has a sign of life every 15 s.
    while begun.elapsed() < HANG_LIMIT {
        match stream.read(&mut part) {
            Ok(0) => return String::from_utf8(answer).unwrap(),
            Ok(read) => answer.extend_from_slice(&part[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
        }
    }
    panic!("no complete answer: {}", String::from_utf8_lossy(&answer));
}

/// Sends a request over HTTP and returns the status line and the body.
fn post(url: &str, headers: &[(&str, &str)], body: &Value) -> (String, String) {
    let answer = receive(send(url, headers, body));
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.to_owned(), rest.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Only clients with the token reach the server, and no web page does.
#[test]
fn http_requests_are_checked() {
    let project = project();
    let (_server, url) = start_http(&project, &[]);
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (host, token) = (("Host", "localhost"), ("Authorization", "Bearer secret"));
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[host, token], "HTTP/1.1 200 OK"),
        (&[host], "HTTP/1.1 401 Unauthorized"),
        (&[host, ("Authorization", "Bearer secre")], "HTTP/1.1 401 Unauthorized"),
        (&[host, ("Authorization", "Basic secret")], "HTTP/1.1 401 Unauthorized"),
        (&[host, token, ("Origin", "http://localhost:3000")], "HTTP/1.1 403 Forbidden"),
        (&[("Host", "rebound.example"), token], "HTTP/1.1 403 Forbidden"),
    ];
    for (headers, expected) in cases {
        let (status, body) = post(&url, headers, &start);
        assert_eq!(status, expected, "{headers:?}: {body}");
        assert_eq!(body.contains("\"serverInfo\""), status.ends_with("OK"), "{headers:?}: {body}");
    }
    for (arguments, expected) in [
        (["--address", "0.0.0.0"], "set a bearer token with --token-env NAME"),
        (["--token-env", "DEFTOOL_NO_SUCH"], "`DEFTOOL_NO_SUCH` contains no token"),
        (["--address", "192.0.2.1"], "set a bearer token with --token-env NAME"),
    ] {
        let ended = project.run(&[&["mcp", "--port", "0"], &arguments[..]].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let taken = url.rsplit_once(':').unwrap().1.strip_suffix("/mcp").unwrap();
    let ended = project.run(&["mcp", "--port", taken]);
    assert!(ended.stderr.contains("choose a different --port"), "{ended:?}");
}

/// Sends a call without a session, as since protocol version 2026-07-28.
fn call_without_session(url: &str, client: &str, id: u32, name: &str, arguments: &Value) -> TcpStream {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
    });
    let params = json!({"name": name, "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    send(url, &[&ACCEPTED[..], &headers].concat(), &call)
}

/// Two clients on one server: each call has its own answer, and a client that goes away stops only its own call.
#[test]
fn clients_of_one_http_server_are_independent() {
    let project = project();
    let (_server, url) = start_http(&project, &["--trust"]);
    let call = |id, name, arguments: Value| call_without_session(&url, "test", id, name, &arguments);
    let waiting = call(1, "wait", json!({}));
    line_of(&project.path("pid"));
    let counted = receive(call(1, "count", json!({"text": "abc"})));
    assert!(counted.starts_with("HTTP/1.1 200") && counted.contains(r#""length":3"#), "{counted}");
    project.write("go", "");
    let waited = receive(waiting);
    assert!(waited.contains("first"), "{waited}");
    std::fs::remove_file(project.path("go")).unwrap();
    std::fs::remove_file(project.path("pid")).unwrap();
    let gone = call(2, "wait", json!({}));
    let id = line_of(&project.path("pid")).parse().unwrap();
    drop(gone);
    wait_until_gone(Pid::from_raw(id).unwrap());
}

/// A client with a session.
struct Client<'u> {
    url: &'u str,
    session: String,
}

impl<'u> Client<'u> {
    fn start(url: &'u str) -> Self {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let start = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = receive(send(url, &ACCEPTED, &start));
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let client = Self { url, session: session.unwrap_or_else(|| panic!("{answer}")).to_owned() };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        receive(client.send(&initialized));
        client
    }

    fn send(&self, message: &Value) -> TcpStream {
        let session = ("Mcp-Session-Id", self.session.as_str());
        send(self.url, &[&ACCEPTED[..], &[session]].concat(), message)
    }

    fn call(&self, id: u32, name: &str) -> TcpStream {
        let params = json!({"name": name, "arguments": {}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    /// Ends the session.
    fn delete(&self) -> String {
        let mut stream = connect(self.url);
        let head = "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nConnection: close\r\n";
        write!(stream, "{head}Mcp-Session-Id: {}\r\n\r\n", self.session).unwrap();
        receive(stream)
    }
}

/// Returns a project with a tool that does not end, and one that answers at once.
fn spinning_project() -> Project {
    let project = Project::empty();
    project.write(
        "specs/tools.eld",
        "(deftool :name \"spin\" :description \"Spin.\" :timeout \"10min\" :args ())
         (deftool :name \"fast\" :description \"Answer.\" :args ())",
    );
    project.write("scripts/spin.lua", "return function() while true do end end\n");
    project.write("scripts/fast.lua", "return function() return \"done\" end\n");
    project
}

/// The events of a call are in the stream of its request, in their order and before its answer.
#[test]
fn events_of_calls_are_in_their_own_streams() {
    let project = project();
    project.write(
        "scripts/count.lua",
        "return function(text)\n for part = 1, 3 do\n  log.warn(text .. part)\n  tool.progress(part / 4, text .. part)\n\
         task.wait(0.05)\n end\n return { length = 1 }\nend\n",
    );
    let (_server, url) = start_http(&project, &[]);
    let client = Client::start(&url);
    let calls = ["a", "b", "c"].map(|text| {
        let params = json!({"name": "count", "arguments": {"text": text}, "_meta": {"progressToken": text}});
        client.send(&json!({"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params}))
    });
    for (text, call) in ["a", "b", "c"].into_iter().zip(calls) {
        let answer = receive(call);
        let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        let messages: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
        let shown = |message: &Value| match message["method"].as_str() {
            Some("notifications/message") => format!("log {}", message["params"]["data"].as_str().unwrap()),
            Some("notifications/progress") => {
                format!("at {}", message["params"]["message"].as_str().unwrap())
            }
            _ => format!("answer {}", message["id"].as_str().unwrap()),
        };
        let shown: Vec<String> = messages.iter().map(shown).collect();
        let expected = [1, 2, 3].map(|part| format!("log {text}{part},at {text}{part},")).concat();
        assert_eq!(shown.join(","), format!("{expected}answer {text}"), "{answer}");
    }
}

/// The calls of one session use up all threads. A call of another session does not wait for their end.
#[test]
fn a_session_does_not_starve_another() {
    const CALLS: u32 = 100;
    let project = spinning_project();
    for isolation in ["threads", "process"].into_iter().step_by(step(2)) {
        let (_server, url) = start_http_last(&project, &["--isolate", isolation]);
        let (greedy, other) = (Client::start(&url), Client::start(&url));
        let spinning: Vec<TcpStream> = (0..CALLS).map(|id| greedy.call(id, "spin")).collect();
        // A session handles its messages in order: the calls have started when a later message is answered.
        receive(greedy.send(&json!({"jsonrpc": "2.0", "id": CALLS, "method": "tools/list"})));
        for id in 0..3 {
            let answer = receive(other.call(id, "fast"));
            assert!(answer.contains("done"), "{isolation}: {answer}");
        }
        drop(spinning);
    }
    // Without sessions, the names of the clients distinguish them.
    let (_server, url) = start_http_last(&project, &[]);
    let spinning: Vec<TcpStream> =
        (0..CALLS).map(|id| call_without_session(&url, "greedy", id, "spin", &json!({}))).collect();
    let answer = receive(call_without_session(&url, "another", 1, "fast", &json!({})));
    assert!(answer.contains("done"), "{answer}");
    drop(spinning);
}

/// More sessions than turns that are shared, each with a call that does not end: a call of another does not wait for them.
#[test]
fn many_sessions_do_not_starve_another() {
    const SESSIONS: u32 = 70;
    let project = spinning_project();
    let (_server, url) = start_http_last(&project, &[]);
    let sessions: Vec<Client<'_>> = (0..SESSIONS).map(|_| Client::start(&url)).collect();
    let other = Client::start(&url);
    let spinning: Vec<TcpStream> = sessions.iter().map(|session| session.call(1, "spin")).collect();
    for session in &sessions {
        receive(session.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})));
    }
    for id in 0..3 {
        let answer = receive(other.call(id, "fast"));
        assert!(answer.contains("done"), "{answer}");
    }
    drop(spinning);
}

/// Clients that all connect before any of them sends its request are all served.
#[test]
fn clients_that_connect_at_once_are_all_served() {
    let project = project();
    let (_server, url) = start_http(&project, &[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let mut connected: Vec<TcpStream> = (0..200).map(|_| connect(&url)).collect();
    for stream in &mut connected {
        write_request(stream, &ACCEPTED, &list);
    }
    for stream in connected {
        let answer = receive(stream);
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
}

/// The library would wait five seconds for the results of calls of an ended session.
#[test]
fn the_end_of_a_session_cancels_its_calls() {
    let project = project();
    project.write("scripts/wait.lua", SLOW);
    let (_server, url) = start_http(&project, &["--trust"]);
    let client = Client::start(&url);
    let call = client.call(1, "wait");
    let id = line_of(&project.path("pid")).parse().unwrap();
    let deleted = client.delete();
    assert!(deleted.starts_with("HTTP/1.1 2"), "{deleted}");
    wait_until_gone(Pid::from_raw(id).unwrap());
    assert!(!project.path("finished").exists());
    drop(call);
    let unknown = receive(client.call(2, "wait"));
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
}

/// Connections without the token do not delay clients with it, and do not stay open.
#[test]
fn unknown_connections_do_not_delay_clients() {
    let project = project();
    let (_server, url) = start_http(&project, &[]);
    let mut idle: Vec<TcpStream> = (0..300).map(|_| connect(&url)).collect();
    for (number, stream) in idle.iter_mut().enumerate() {
        let heads =
            ["", "POST /mcp HTT", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"];
        // Fails if the server has closed the connection.
        let _ = stream.write_all(heads[number % heads.len()].as_bytes());
    }
    // More clients than may be unknown at a time.
    for _ in 0..100 {
        let begun = Instant::now();
        Client::start(&url);
        assert!(begun.elapsed() < BEFORE_IDLE_ENDS, "a client waited for the end of idle connections");
    }
    for mut stream in idle {
        // A reset also ends a connection.
        let read = stream.read_to_end(&mut Vec::new());
        assert!(!read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "still open");
    }
}

#[test]
fn an_unfinished_body_has_a_deadline() {
    let project = project();
    let (_server, url) = start_http(&project, &[]);
    let mut stream = connect(&url);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 9\r\n\r\n{{"
    )
    .unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(str::from_utf8(&answer), Ok("HTTP/1.1 408"));
}
