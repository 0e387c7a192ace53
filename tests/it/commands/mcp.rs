//! `deftool mcp`: clients that others wrote, and raw messages.

#![cfg(unix)]

mod approvals;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use deftool_test_support::can_use;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, STATE, command_in};
use crate::support::watching::{LIMIT, WatchProcess};

const SPECS: &str = r#"
(deftool :name "count" :description "Count the characters of a text." :effect pure
 :returns (:type object :properties (:length (:type integer)) :required ["length"])
 :args ((:name "text" :type string :description "The text.")))
(deftool :name "broken" :description "Fails." :args ())
(deftool :name "careful" :description "Change a file with care." :confirm t
 :args ((:name "path" :type string :description "The file.")))
(deftool :name "wait" :description "Wait until the file exists." :allow (:run ["sh"]) :args ())
(defexit :name "done" :description "The task is done." :args ())
"#;

pub(super) fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", SPECS);
    project.write(
        "scripts/count.lua",
        "return function(text)\n tool.progress(0.5, \"half\")\n log.warn(\"odd\")\n log.debug(\"no\")\n\
         return { length = utf8.len(text) }\nend\n",
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

/// The script of a call that finishes unless it is canceled.
pub(super) const SLOW: &str = r#"return function()
  process.run({ "sh", "-c", "echo $$ > pid; sleep 4; touch finished" })
end
"#;

/// Runs a client program and returns what it printed. `server`: its arguments that name the server.
fn outcome_of(client: &mut Command, server: &[&str], project: &Project) -> String {
    let ended =
        Ended::of(client.args(server).arg(project.path("")).env("XDG_STATE_HOME", STATE).output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

/// A server over HTTP with the token `secret`, and its URL.
pub(super) fn start_http(project: &Project, arguments: &[&str]) -> (WatchProcess, String) {
    start(http_command(project, arguments))
}

pub(super) fn http_command(project: &Project, arguments: &[&str]) -> Command {
    let arguments = [&["mcp", "--port", "0", "--token-env", "TOKEN"], arguments].concat();
    command_in(&project.path(""), &arguments)
}

pub(super) fn start(mut command: Command) -> (WatchProcess, String) {
    command.env("TOKEN", "secret").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = WatchProcess::of(command.spawn().unwrap());
    let ready = process.stdout.recv_timeout(LIMIT).unwrap();
    (process, ready.strip_prefix("READY ").unwrap().to_owned())
}

const LOGGED: &str = "log: count warning odd";

const SEEN: &str = "\
tools: broken careful count wait
count: {\"length\":3}
structured: {\"length\": 3}
count: failed: invalid arguments of `count`: Additional properties are not allowed ('txt' was unexpected); did you mean `text`?; \"text\" is a required property
broken: failed: error[script]: scripts/broken.lua:1: no luck
asked: Run careful path: \"a\"?
careful: changed a
asked: Run careful path: \"b\"?
careful: failed: the user refused this call to `careful`
missing: unknown tool `missing`; known tools: broken, careful, count, wait
ToolsListChanged()
count: {\"length\": 2}";

/// The clients of the libraries for Python (`ClientSession` for 2025-11-25, `Client` for 2026-07-28) and JavaScript
/// (version 1 for 2025-11-25, version 2 for 2026-07-28), and of `fastmcp`.
#[test]
fn third_party_clients_get_the_same_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp");
    let python = folder.join(".venv/bin/python");
    let mut clients = Vec::new();
    for name in ["session", "client", "fastmcp"] {
        clients.push((name, vec![python.clone(), folder.join("clients.py"), name.into()], ".venv"));
    }
    for version in ["v1", "v2"] {
        clients.push((
            version,
            vec!["node".into(), folder.join("client.mjs"), version.into()],
            "node_modules",
        ));
    }
    for (name, program, installed) in clients {
        if !is_installed(installed) {
            continue;
        }
        for is_http in [false, true] {
            let project = project();
            let mut client = Command::new(&program[0]);
            client.args(&program[1..]);
            let seen = if is_http {
                let (_server, url) = start_http(&project, &[]);
                outcome_of(&mut client, &[&url], &project)
            } else {
                outcome_of(&mut client, &[env!("CARGO_BIN_EXE_deftool"), "mcp", "-C"], &project)
            };
            let root = project.path("").canonicalize().unwrap();
            let seen = seen.replace(&format!("{}/", root.display()), "").replace("MCP error -32602: ", "");
            // A client may drop progress that it reads together with the result, or add its own, and handles log lines
            // beside the result.
            let is_event = |line: &&str| line.starts_with("progress: ") || *line == LOGGED;
            assert!(seen.lines().any(|line| line == LOGGED), "{name}, HTTP: {is_http}: {seen}");
            let seen: Vec<&str> = seen.lines().filter(|line| !is_event(line)).collect();
            assert_eq!(seen.join("\n"), SEEN, "{name}, HTTP: {is_http}");
        }
    }
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    if !is_installed("node_modules") {
        return;
    }
    let inspector = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/node_modules/.bin/mcp-inspector");
    let project = project();
    let run = |arguments: &[&str]| -> Value {
        let mut command = Command::new(&inspector);
        command.args(["--cli", env!("CARGO_BIN_EXE_deftool"), "mcp", "-C"]).arg(project.path(""));
        let ended = Ended::of(command.args(arguments).env("XDG_STATE_HOME", STATE).output().unwrap());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    assert_eq!(run(&["--method", "tools/list"])["tools"][2]["name"], "count");
    let call = ["--method", "tools/call", "--tool-name", "count", "--tool-arg", "text=abc"];
    assert_eq!(run(&call)["structuredContent"]["length"], 3);
}

/// Whether a folder of `tests/mcp` is installed. Only CI requires it.
pub(super) fn is_installed(folder: &str) -> bool {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(folder).join("installed");
    can_use("MCP client", installed.exists(), "DEFTOOL_MCP", "tests/mcp/install")
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
pub(super) struct Host {
    process: WatchProcess,
    stdin: Option<ChildStdin>,
}

impl Host {
    pub(super) fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::start_as(project, arguments, &json!({}))
    }

    /// Starts a server for a client with these capabilities.
    fn start_as(project: &Project, arguments: &[&str], capabilities: &Value) -> Self {
        let mut command = command_in(&project.path(""), &[&["mcp"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let mut host = Self { process: WatchProcess::of(child), stdin };
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client});
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

    pub(super) fn ask(&mut self, id: u32, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Returns the next message of the server. Everything on stdout is a message.
    pub(super) fn next(&self) -> Value {
        self.process.report()
    }

    /// Sends a request and returns its answer.
    pub(super) fn request(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.ask(id, method, params);
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(super) fn call(&mut self, id: u32, name: &str, arguments: &Value) -> Value {
        self.request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// Closes the connection and returns the exit code.
    pub(super) fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.process.child.wait().unwrap().code()
    }
}

/// Returns the two ends of a pipe, a socket or a file: the one to read and the one to write.
fn ends_of(kind: &str, file: &Path) -> (OwnedFd, OwnedFd) {
    match kind {
        "pipe" => std::io::pipe().map(|(read, write)| (read.into(), write.into())).unwrap(),
        "socket" => UnixStream::pair().map(|(read, write)| (read.into(), write.into())).unwrap(),
        _ => File::create(file).and_then(|write| Ok((File::open(file)?.into(), write.into()))).unwrap(),
    }
}

/// stdin and stdout may be shared with other processes, such as the shell that started this one. Their flags stay.
#[test]
fn each_kind_of_stdin_and_stdout_is_used_without_changing_its_flags() {
    let project = project();
    let client = json!({"name": "test", "version": "1"});
    let start = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let call = json!({"name": "broken", "arguments": {}});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    ];
    let input = messages.iter().map(|message| format!("{message}\n")).collect::<Vec<_>>().concat();
    for kind in ["pipe", "socket", "file"] {
        let (stdin, client_output) = ends_of(kind, &project.path("in"));
        let (client_input, stdout) = ends_of(kind, &project.path("out"));
        File::from(client_output).write_all(input.as_bytes()).unwrap();
        let mut command = command_in(&project.path(""), &["mcp"]);
        command.stdin(stdin.try_clone().unwrap()).stdout(stdout.try_clone().unwrap()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{kind}");
        drop(command);
        for end in [&stdin, &stdout] {
            assert!(!fcntl_getfl(end).unwrap().contains(OFlags::NONBLOCK), "{kind}");
        }
        drop(stdout);
        let mut output = String::new();
        File::from(client_input).read_to_string(&mut output).unwrap();
        assert!(output.ends_with('\n') && output.contains("no luck"), "{kind}: {output}");
    }
}

/// Waits until a file has a line, and returns it.
pub(super) fn line_of(path: &Path) -> String {
    let begun = std::time::Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(begun.elapsed() < LIMIT, "{} was not written", path.display()),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

pub(super) fn wait_until_gone(id: Pid) {
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
    let mut listed = listed["result"]["tools"].clone();
    // What the sandbox ensures is known only to the server that runs the scripts.
    let count = &listed[2]["annotations"];
    assert_eq!(
        *count,
        json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
    );
    assert_eq!(listed[3].get("annotations"), None, "this tool may run programs: {listed}");
    for (index, tool) in compiled.iter().enumerate() {
        match tool.get("annotations") {
            Some(annotations) => listed[index]["annotations"] = annotations.clone(),
            None => drop(listed[index].as_object_mut().unwrap().shift_remove("annotations")),
        }
    }
    assert_eq!(listed, json!(compiled));
    assert_eq!(host.end(), Some(0));
}

#[test]
fn progress_and_log_lines_are_sent_before_the_result_if_the_client_asks_for_them() {
    let project = project();
    let mut host = Host::start(&project, &[]);
    let mut seen_of = |id: u32, level: Option<&str>, meta: Value| {
        if let Some(level) = level {
            host.request(100 + id, "logging/setLevel", &json!({"level": level}));
        }
        host.ask(id, "tools/call", &json!({"name": "count", "arguments": {"text": "a"}, "_meta": meta}));
        let mut seen = Vec::new();
        loop {
            let message = host.next();
            if message["id"] == id {
                return seen;
            }
            seen.push(message["params"].clone());
        }
    };
    let progress = json!({"progressToken": "t", "progress": 0.5, "total": 1.0, "message": "half"});
    let warning = json!({"level": "warning", "logger": "count", "data": "odd"});
    let debug = json!({"level": "debug", "logger": "count", "data": "no"});
    assert_eq!(seen_of(1, None, json!({"progressToken": "t"})), [progress, warning.clone()]);
    assert_eq!(seen_of(2, Some("debug"), json!({})), [warning, debug]);
    assert_eq!(seen_of(3, Some("critical"), json!({})), Vec::<Value>::new());
}

/// The protocol requires that the progress of a call grows.
#[test]
fn progress_grows_with_each_report() {
    let project = project();
    let reports = "0.1 0.1 0.05 0.5 nil nil 0.5 2 2 nil".split(' ');
    let reports: Vec<_> = reports.map(|value| format!(" tool.progress({value}, \"at {value}\")\n")).collect();
    project
        .write("scripts/broken.lua", format!("return function()\n{} return 'ok'\nend\n", reports.concat()));
    let mut host = Host::start(&project, &[]);
    host.ask(1, "tools/call", &json!({"name": "broken", "arguments": {}, "_meta": {"progressToken": "t"}}));
    let (mut seen, mut last) = (Vec::new(), -1.0);
    loop {
        let message = host.next();
        if message["id"] == 1 {
            break;
        }
        let report = &message["params"];
        let progress = report["progress"].as_f64().unwrap();
        assert!(progress > last, "{report} after {last}");
        assert!(report["total"].is_null() || (report["total"] == 1.0 && progress <= 1.0), "{report}");
        last = progress;
        seen.push(report["message"].as_str().unwrap().to_owned());
    }
    let all = "at 0.1,at 0.1,at 0.05,at 0.5,at nil,at nil,at 0.5,at 2,at 2,at nil";
    assert_eq!(seen.join(","), all);
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

/// A client that sends requests without reading fills no memory, and gets all answers when it reads.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded_if_a_client_does_not_read() {
    /// The answers have 40 MB.
    const REQUESTS: u32 = 2_000;
    let project = Project::empty();
    let long = "x".repeat(20_000);
    project.write("specs/a.eld", format!("(deftool :name \"a\" :description \"{long}\" :args ())"));
    project.write("scripts/a.lua", "return function() end\n");
    let mut command = command_in(&project.path(""), &["mcp"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
        .unwrap();
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let peak = || crate::support::process::peak_memory(child.id());
    let before = peak();
    let sent = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 1..=REQUESTS {
                let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
                writeln!(stdin, "{request}").unwrap();
                sent.store(id, Ordering::Relaxed);
            }
        });
        // Reading earlier would make the test easier, not wrong.
        let mut last = u32::MAX;
        while last != sent.load(Ordering::Relaxed) {
            last = sent.load(Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        let mut answered = HashSet::new();
        while answered.len() < REQUESTS as usize {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "ended after {} answers", answered.len());
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert!(answered.insert(answer["id"].as_u64().unwrap()), "{}", answer["id"]);
        }
        let grown = peak() - before;
        assert!(grown < 20_000, "{grown} kB more");
    });
    // Not earlier: a process that has ended has no memory to measure.
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
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
fn a_reload_is_announced_and_does_not_affect_calls_in_flight() {
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

/// Requests from a pipe are answered, although stdin ends before their results are there.
#[test]
fn calls_end_after_the_end_of_stdin() {
    let project = project();
    project.write("scripts/wait.lua", "return function() task.wait(0.2) return \"done\" end");
    let mut host = Host::start(&project, &["--trust"]);
    host.ask(1, "tools/call", &json!({"name": "wait", "arguments": {}}));
    host.stdin = None;
    assert_eq!(host.next()["result"]["content"][0]["text"], "done");
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

#[test]
fn exit_tools_are_offered_on_request() {
    let project = project();
    let mut host = Host::start(&project, &["--exit-tools"]);
    let listed = host.request(1, "tools/list", &json!({})).to_string();
    assert!(listed.contains("\"done\""), "{listed}");
    let done = host.call(2, "done", &json!({}));
    assert_eq!(done["result"]["content"][0]["text"], "recorded");
    host.process.wait_for_stderr("exit tool done: {}");
}

#[test]
fn an_image_of_a_script_is_an_image_for_the_client() {
    let project = Project::empty();
    project.write(
        "specs/tools.eld",
        r#"(deftool :name "picture" :description "Return a picture." :effect pure :args ())"#,
    );
    project.write(
        "scripts/picture.lua",
        "return function() return { page = 1, picture = tool.image('\\137PNG\\r\\n\\26\\n') } end\n",
    );
    let expected = json!([
        {"type": "text", "text": r#"{"page":1,"picture":"[image: image/png, 8 bytes]"}"#},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]);
    for isolation in ["threads", "process"] {
        let mut host = Host::start(&project, &["--isolate", isolation]);
        assert_eq!(host.call(1, "picture", &json!({}))["result"]["content"], expected, "{isolation}");
    }
}
