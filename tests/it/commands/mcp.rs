//! `deftool mcp`: clients that others wrote, and raw messages.

#![cfg(unix)]

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, STATE, command_in};
use crate::support::watching::{LIMIT, WatchProcess};

const SPECS: &str = r#"
(deftool :name "count" :description "Count the characters of a text." :effect pure
 :args ((:name "text" :type string :description "The text.")))
(deftool :name "broken" :description "Fails." :args ())
(deftool :name "careful" :description "Change a file with care." :confirm t
 :args ((:name "path" :type string :description "The file.")))
(deftool :name "wait" :description "Wait until the file exists." :allow (:run ["sh"]) :args ())
(defexit :name "done" :description "The task is done." :args ())
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", SPECS);
    project.write(
        "scripts/count.lua",
        "return function(text) tool.progress(0.5, \"half\") return { length = utf8.len(text) } end\n",
    );
    project.write("scripts/broken.lua", "return function() error(\"no luck\") end\n");
    project.write("scripts/careful.lua", "return function(path) return \"changed \" .. path end\n");
    project.write("scripts/wait.lua", WAIT);
    project
}

const WAIT: &str = r#"return function()
  process.run({ "sh", "-c", "echo $$ > pid; until [ -e go ]; do sleep 0.02; done" })
  return "first"
end
"#;

/// Runs the server for a client program and returns what the client printed.
fn outcome_of(client: &mut Command, project: &Project) -> String {
    let server = [env!("CARGO_BIN_EXE_deftool"), "mcp", "-C"];
    let ended =
        Ended::of(client.args(server).arg(project.path("")).env("XDG_STATE_HOME", STATE).output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

const SEEN: &str = "\
tools: broken careful count wait
count: {\"length\":3}
count: failed: invalid arguments of `count`: Additional properties are not allowed ('txt' was unexpected); \"text\" is a required property
broken: failed: error[script]: scripts/broken.lua:1: no luck
asked: Run careful with {\"path\":\"a\"}?
careful: changed a
asked: Run careful with {\"path\":\"b\"}?
careful: failed: the user refused this call of `careful`
missing: unknown tool `missing`
ToolsListChanged()
count: 2
";

/// The clients of the libraries for Python (`ClientSession` for 2025-11-25, `Client` for 2026-07-28) and JavaScript, and
/// of `fastmcp`.
#[test]
fn clients_that_others_wrote_see_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp");
    let python = folder.join(".venv/bin/python");
    let mut clients = Vec::new();
    for name in ["session", "client", "fastmcp"] {
        let mut client = Command::new(&python);
        client.arg(folder.join("clients.py")).arg(name);
        clients.push((name, client, folder.join(".venv/installed")));
    }
    let mut client = Command::new("node");
    client.arg(folder.join("client.mjs"));
    clients.push(("typescript", client, folder.join("node_modules/installed")));
    for (name, mut client, installed) in clients {
        let project = project();
        if !installed.exists() {
            let is_required = std::env::var("DEFTOOL_MCP").as_deref() == Ok("required");
            assert!(!is_required, "the MCP clients are required and not there: run tests/mcp/install");
            let _ =
                writeln!(std::io::stderr(), "skipped: no MCP client {name}; tests/mcp/install installs it");
            continue;
        }
        let seen = outcome_of(&mut client, &project).replace("0.5 1.0 half", "0.5 1 half");
        let root = project.path("").canonicalize().unwrap();
        let seen = seen.replace(&format!("{}/", root.display()), "").replace("MCP error -32602: ", "");
        // A client may drop progress that it reads together with the result.
        let progress = "progress: 0.5 1 half\n";
        assert_eq!(seen.replace(progress, ""), SEEN, "{name}");
    }
}

#[test]
fn a_client_that_starts_no_session_is_reported() {
    for input in ["", "hello\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n"] {
        let ended = project().run_with_stdin(&["mcp"], input.as_bytes());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.ends_with("closed the connection before it started a session\n"), "{ended:?}");
    }
}

/// A server and the test as its client.
struct Host {
    process: WatchProcess,
    stdin: Option<ChildStdin>,
}

impl Host {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut command = command_in(&project.path(""), &[&["mcp"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let mut host = Self { process: WatchProcess::of(child), stdin };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let started = host.request(0, "initialize", &params);
        assert_eq!(started["result"]["protocolVersion"], "2025-06-18", "{started}");
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    fn ask(&mut self, id: u32, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Returns the next message of the server. Everything on stdout is a message.
    fn next(&self) -> Value {
        self.process.report()
    }

    /// Sends a request and returns its answer.
    fn request(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.ask(id, method, params);
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, id: u32, name: &str, arguments: &Value) -> Value {
        self.request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// Closes the connection and returns the exit code.
    fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.process.child.wait().unwrap().code()
    }
}

/// Waits until a file has a line, and returns it.
fn line_of(path: &Path) -> String {
    let begun = std::time::Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(begun.elapsed() < LIMIT, "{} was not written", path.display()),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn wait_until_gone(id: Pid) {
    let begun = std::time::Instant::now();
    while test_kill_process(id).is_ok() {
        assert!(begun.elapsed() < LIMIT, "process {id:?} still runs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn tools_are_listed_as_they_are_compiled() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let listed = host.request(1, "tools/list", &json!({}));
    let compiled: Value = serde_json::from_str(&project.run(&["compile", "--target", "mcp"]).stdout).unwrap();
    let mut compiled = compiled.as_array().unwrap().clone();
    compiled.retain(|tool| tool["name"] != "done");
    compiled.sort_by_key(|tool| tool["name"].to_string());
    assert_eq!(listed["result"]["tools"], json!(compiled));
    assert_eq!(listed["result"]["tools"][2]["annotations"]["readOnlyHint"], true);
    assert_eq!(host.end(), Some(0));
}

#[test]
fn progress_is_sent_before_the_result_if_the_client_asks_for_it() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let params = json!({"name": "count", "arguments": {"text": "a"}, "_meta": {"progressToken": "t"}});
    host.ask(1, "tools/call", &params);
    let progress = host.next();
    let expected = json!({"progressToken": "t", "progress": 0.5, "total": 1.0, "message": "half"});
    assert_eq!((&progress["method"], &progress["params"]), (&json!("notifications/progress"), &expected));
    assert_eq!(host.next()["id"], 1);
    host.ask(2, "tools/call", &json!({"name": "count", "arguments": {"text": "a"}}));
    assert_eq!(host.next()["id"], 2);
}

#[test]
fn malformed_messages_do_not_end_the_session() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    host.write(b"garbage\n\n{\"jsonrpc\":\"2.0\"}\n[]\n\xff\xfe\n");
    host.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 98}}));
    // Longer than a message may be.
    let text = "x".repeat(20 << 20);
    host.ask(1, "tools/call", &json!({"name": "count", "arguments": {"text": text}}));
    let unknown = host.request(2, "tools/sing", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = host.call(3, "count", &json!([1]));
    assert!(wrong["error"]["code"].is_i64(), "{wrong}");
    let missing = host.call(4, "coun", &json!({}));
    assert_eq!(missing["error"]["message"], "unknown tool `coun`; did you mean `count`?");
    let counted = host.call(5, "count", &json!({"text": "abc"}));
    assert_eq!(counted["result"]["content"][0]["text"], "{\"length\":3}");
    assert_eq!(host.end(), Some(0));
}

#[test]
fn calls_that_need_approval_are_refused_or_allowed() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let refused = host.call(1, "careful", &json!({"path": "a"}));
    assert_eq!(refused["result"]["isError"], true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("this client cannot ask for; start the server with --yes"), "{text}");
    let mut host = Host::start(&project, &["--yes"]);
    let allowed = host.call(1, "careful", &json!({"path": "a"}));
    assert_eq!(allowed["result"]["content"][0]["text"], "changed a");
}

#[test]
fn scripts_without_trust_are_refused() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let refused = host.call(1, "wait", &json!({}));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("trust grant"), "{text}");
    assert!(!project.path("pid").exists());
}

/// A reload is announced. The call in flight ends with the old version, the next call uses the new one.
#[test]
fn a_reload_is_announced_and_spares_calls_in_flight() {
    let project = project();
    let mut host = Host::start(&project, &["--trust"]);
    host.ask(1, "tools/call", &json!({"name": "wait", "arguments": {}}));
    line_of(&project.path("pid"));
    project.write("scripts/wait.lua", WAIT.replace("first", "second"));
    let announced = host.next();
    assert_eq!(announced["method"], "notifications/tools/list_changed", "{announced}");
    project.write("go", "");
    let first = host.next();
    assert_eq!(
        (&first["id"], &first["result"]["content"][0]["text"]),
        (&json!(1), &json!("first")),
        "{first}"
    );
    let second = host.call(2, "wait", &json!({}));
    assert_eq!(second["result"]["content"][0]["text"], "second");
    project.write("specs/tools.eld", SPECS.replace("\"broken\"", "\"other\""));
    assert_eq!(host.next()["method"], "notifications/tools/list_changed");
    assert_eq!(host.end(), Some(0));
}

/// A canceled call stops, and a client or a server that goes away leaves no process behind.
#[test]
fn no_process_outlives_its_call() {
    let project = project();
    let stop: [fn(&mut Host); 3] = [
        |host| {
            let cancel = json!({"requestId": 1, "reason": "enough"});
            host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
        },
        |host| host.stdin = None,
        |host| kill_process(Pid::from_child(&host.process.child), Signal::TERM).unwrap(),
    ];
    for (index, stop) in stop.into_iter().enumerate() {
        let mut host = Host::start(&project, &["--trust"]);
        host.ask(1, "tools/call", &json!({"name": "wait", "arguments": {}}));
        let id = line_of(&project.path("pid")).parse().unwrap();
        std::fs::remove_file(project.path("pid")).unwrap();
        stop(&mut host);
        wait_until_gone(Pid::from_raw(id).unwrap());
        match index {
            0 => assert_eq!(host.call(2, "count", &json!({"text": "a"}))["id"], 2),
            1 => assert_eq!(host.process.child.wait().unwrap().code(), Some(0)),
            _ => assert_eq!(host.process.child.wait().unwrap().code(), Some(143)),
        }
    }
}
