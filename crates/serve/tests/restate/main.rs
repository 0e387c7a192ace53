//! `deftool-serve` with a real Restate server, which `tests/restate/install` installs.
//!
//! Without the server, most tests are skipped with a message. With `DEFTOOL_RESTATE=required`, as in
//! `.ci/run-extended`, they fail instead.

// Helpers outside of a `#[test]` are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod load;
mod operation;
mod scenarios;
mod simulation;
mod start;
mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deftool::SubmitRequest;
use deftool::project::Trust;
use deftool_test_support::server::{Answer, Server, Texts, call, delta, finish};
use deftool_test_support::{can_use, step};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use support::ledger::{SLOW_SCRIPT, calling, kill, project, runs, spawn, wait_until};
use support::project::Project;

/// The status with which Restate answers that a workflow has not ended.
const NOT_READY: u16 = 470;

/// A worker that runs several requests at a time.
const WORKER: &str = "(defworker :name \"many\" :slots 8)";

/// The tools that a request of the tests with random crashes calls.
const TOOLS: [&str; 6] = ["look", "pay", "send", "pay", "look", "send"];

/// A client of Restate.
struct Client {
    http: reqwest::Client,
    runtime: Runtime,
}

/// One node of Restate, with a worker.
struct Engine {
    node: Child,
    /// Contains the data of the node.
    folder: tempfile::TempDir,
    /// The port of the node for other nodes.
    internal: u16,
    ingress: u16,
    admin: u16,
    /// The port of the worker.
    worker: u16,
    client: Client,
    /// One node runs at a time: it takes ports that were free a moment ago.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Engine {
    /// Starts the node. Returns `None` if it is not installed.
    fn start() -> Option<Self> {
        let command = start_script()?;
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let [ingress, admin, internal, worker] = free_ports();
        let client = Client::new();
        let node = spawn(node(command, folder.path(), [ingress, admin, internal]));
        let engine = Self { node, folder, internal, ingress, admin, worker, client, _alone: alone };
        engine.wait_until_ready();
        Some(engine)
    }

    /// Starts the node again.
    fn start_node(&mut self) {
        let ports = [self.ingress, self.admin, self.internal];
        self.node = spawn(node(start_script().unwrap(), self.folder.path(), ports));
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        wait_until("Restate is ready", || {
            let health = |port, path| self.send(port, path, None).is_some_and(|(status, _)| status == 200);
            health(self.admin, "health") && health(self.ingress, "restate/health")
        });
    }

    /// Starts a worker of `project`.
    fn serve(&self, project: &Project, server: &Server) -> Child {
        serve_at(self.worker, project, server)
    }

    /// Makes the worker known to Restate.
    fn register(&self) -> Value {
        self.register_at(self.worker)
    }

    /// Makes the worker at a port known to Restate. Returns the id of the deployment.
    fn register_at(&self, port: u16) -> Value {
        let uri = json!({"uri": format!("http://127.0.0.1:{port}")});
        let (status, answer) = self.send(self.admin, "deployments", Some(&uri)).unwrap();
        assert!(status < 300, "{status}: {answer}");
        answer["id"].clone()
    }

    /// Calls a handler and returns its answer.
    fn call(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(self.ingress, path, Some(body)).unwrap()
    }

    /// Submits a request without waiting for its end.
    fn submit(&self, id: &str, body: &Value) {
        let (status, answer) = self.call(&format!("Request/{id}/run/send"), body);
        assert!(status < 300, "{status}: {answer}");
    }

    /// Waits for the end of a request, and returns its result.
    fn result(&self, id: &str) -> Value {
        let path = format!("restate/workflow/Request/{id}/attach");
        let (status, result) = self.send(self.ingress, &path, None).unwrap();
        assert_eq!(status, 200, "{result}");
        result
    }

    /// Waits for the end of a request, and returns its events.
    fn events(&self, id: &str) -> Vec<Value> {
        self.follow(id, |_| {})
    }

    /// Waits for the end of a request, and returns its events. `on_approval` receives each approval request.
    fn follow(&self, id: &str, on_approval: impl Fn(&Value)) -> Vec<Value> {
        let (started, mut cursor, mut events) = (Instant::now(), json!(0), Vec::new());
        while !cursor.is_null() {
            // The limit is only for a test that fails.
            assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "{id} does not end: {events:?}");
            let (status, mut page) = self.call(&format!("Request/{id}/events"), &cursor);
            assert_eq!(status, 200, "{page}");
            events.append(page["events"].as_array_mut().unwrap());
            page["approvals"].as_array().into_iter().flatten().for_each(&on_approval);
            cursor = page["next"].take();
        }
        events
    }

    /// Waits until a request asks for an approval. Returns its awakeable.
    fn asked(&self, id: &str) -> String {
        let mut cursor = 0;
        loop {
            let (_, page) = self.call(&format!("Request/{id}/events"), &json!(cursor));
            if let Some(awakeable) = page["approvals"][0]["awakeable"].as_str() {
                return awakeable.to_owned();
            }
            cursor = page["next"].as_u64().unwrap();
        }
    }

    /// Answers a request for an approval.
    fn answer(&self, awakeable: &str, approval: &Value) {
        let (status, answer) = self.call(&format!("restate/awakeables/{awakeable}/resolve"), approval);
        assert!(status < 300, "{status}: {answer}");
    }

    /// Queries the state of the node. Returns the rows.
    fn query(&self, query: &str) -> Value {
        let (status, mut answer) = self.send(self.admin, "query", Some(&json!({ "query": query }))).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["rows"].take()
    }

    fn send(&self, port: u16, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        self.client.send(&format!("http://127.0.0.1:{port}/{path}"), body)
    }
}

impl Client {
    fn new() -> Self {
        Self { http: deftool_script::client_builder().build().unwrap(), runtime: Runtime::new().unwrap() }
    }

    /// Sends a body, or reads a page. Returns the status and the body of the response; `None`: there was none.
    fn send(&self, url: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        self.exchange(match body {
            // A handler without input.
            Some(Value::Null) => self.http.post(url),
            Some(body) => {
                self.http.post(url).header("content-type", "application/json").body(body.to_string())
            }
            None => self.http.get(url),
        })
    }

    fn exchange(&self, request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
        let request = request.header("accept", "application/json");
        self.runtime.block_on(async {
            let response = request.timeout(Duration::from_secs(60)).send().await.ok()?;
            let (status, text) = (response.status().as_u16(), response.text().await.ok()?);
            Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// Completes the command of a node with its folder and its ports: ingress, admin, internal.
fn node(mut command: Command, folder: &Path, ports: [u16; 3]) -> Command {
    let [ingress, admin, internal] = ports.map(|port| format!("127.0.0.1:{port}"));
    command
        .arg("n1")
        .arg(folder)
        .env("RESTATE_BIND_ADDRESS", internal)
        .env("RESTATE_INGRESS__BIND_ADDRESS", ingress)
        .env("RESTATE_ADMIN__BIND_ADDRESS", admin);
    command
}

/// Returns the command of a worker that listens at `address`.
fn serve_command(address: &str, project: &Project, server: &Server) -> Command {
    project.command(&["--listen", address, "--endpoint", &server.endpoint(), "--trust"])
}

fn serve_at(port: u16, project: &Project, server: &Server) -> Child {
    let address = format!("127.0.0.1:{port}");
    start_worker(serve_command(&address, project, server), &address)
}

/// Starts a worker and waits until it listens.
fn start_worker(command: Command, address: &str) -> Child {
    let child = spawn(command);
    wait_until("the worker listens", || std::net::TcpStream::connect(address).is_ok());
    child
}

/// Returns the command that starts a node; `None`: the server is not installed.
fn start_script() -> Option<Command> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = program(&root.join("tests/restate"));
    can_use("Restate server (220 MB)", found.is_some(), "DEFTOOL_RESTATE", "tests/restate/install");
    let program = found?;
    let mut command = Command::new(root.join("examples/restate/start"));
    command
        .env("RESTATE_SERVER", program)
        .env("RESTATE_DEFAULT_NUM_PARTITIONS", "4")
        .env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MiB");
    Some(command)
}

/// Returns the installed server.
fn program(folder: &Path) -> Option<PathBuf> {
    let packages = std::fs::read_dir(folder.join("node_modules/@restatedev")).ok()?;
    packages.flatten().map(|package| package.path().join("bin/restate-server")).find(|path| path.exists())
}

/// Returns free ports.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Returns the tools of a conversation in order, and then ends it. A repeated request gets the same reply.
fn in_turn(tools: &'static [&'static str]) -> Server {
    Server::answering(move |_, received| {
        let messages = received.body["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        match tools.get(results) {
            Some(tool) => Answer::chunks(&[delta("One more. "), call(0, tool, "{}"), finish("tool_calls")]),
            None => Answer::stream().delta("The ").wait_ms(30).delta("end.").done(),
        }
    })
}

/// Removes times and ids, which differ between two runs.
fn without_times(mut events: Vec<Value>) -> Vec<Value> {
    const TIMES: [&str; 8] = [
        "submitted_at_ms",
        "emitted_at_ms",
        "first_token_ms",
        "elapsed_ms",
        "delay_ms",
        "request_id",
        "id",
        "tool_call_id",
    ];
    fn remove(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|key, _| !TIMES.contains(&key.as_str()));
                // The first of the lines that were sent is the time.
                if let Some(Value::String(lines)) = members.get_mut("lines") {
                    *lines = lines.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned());
                }
                members.values_mut().for_each(remove);
            }
            Value::Array(items) => items.iter_mut().for_each(remove),
            _ => {}
        }
    }
    events.iter_mut().for_each(remove);
    events
}

/// Merges consecutive deltas of text and reasoning, whose number depends on reads.
fn merged(events: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for event in events {
        let is_delta = event["type"] == "text" || event["type"] == "reasoning";
        if let Some(last) = merged.last_mut().filter(|last| is_delta && last["type"] == event["type"]) {
            last["text"] =
                json!(format!("{}{}", last["text"].as_str().unwrap(), event["text"].as_str().unwrap()));
        } else {
            merged.push(event);
        }
    }
    merged
}

/// Runs a request in this process. Returns its events.
async fn run_in_process(project: &Project, server: &Server, prompt: &str) -> Vec<Value> {
    let worker = deftool::open(project.path("")).endpoint(server.endpoint()).trust(Trust::Everything);
    let worker = worker.start().await.unwrap();
    let mut reply = worker.stream(SubmitRequest::prompt(prompt)).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reply.next().await {
        events.push(serde_json::to_value(&*event).unwrap());
    }
    events
}

#[test]
fn a_request_has_the_same_events_as_in_process() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    project.write("log/go", "");
    project.write("specs/exit.eld", "(defexit :name \"done\" :description \"Done.\")");
    let server = || {
        Server::script([
            calling("pay"),
            Answer::chunks(&[delta("Done."), call(0, "done", "{}"), finish("tool_calls")]),
        ])
    };
    let alone = server();
    let expected = engine.client.runtime.block_on(run_in_process(&project, &alone, "hello"));

    let shared = server();
    let worker = engine.serve(&project, &shared);
    engine.register();
    let (status, result) = engine.call("Request/r1/submit", &json!({"prompt": "hello"}));
    assert_eq!(status, 200, "{result}");
    assert_eq!(result["outcome"]["state"], "completed", "{result}");
    let events = engine.events("r1");
    assert_eq!(merged(without_times(events)), merged(without_times(expected)));
    let roles = |server: &Server| {
        let messages = server.posts()[1].body["messages"].as_array().unwrap().clone();
        messages.into_iter().map(|message| message["role"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(roles(&alone), roles(&shared));

    // The same id is one request.
    let repeated = engine.call("Request/r1/submit", &json!({"prompt": "hello"}));
    assert_eq!(repeated, (200, result.clone()));
    let (status, error) = engine.call("Request/r1/submit", &json!({"prompt": "other"}));
    assert_eq!((status, &error["message"]), (409, &json!("a different submission has this id")));
    let (status, _) = engine.call("Request/r1/run", &json!({"prompt": "hello"}));
    assert_eq!((status, shared.posts().len()), (409, 2));
    assert_eq!(engine.result("r1"), result);
    let (_, signal) = engine.call("Request/r1/signal", &json!("done"));
    assert_eq!(signal["tool_name"], "done");
    let (_, signal) = engine.call("Request/r1/signal", &json!("other"));
    assert_eq!(signal, Value::Null);
    let (_, page) = engine.call("Request/r1/events", &json!(999));
    assert_eq!(page, json!({"events": [], "next": null}));
    let (status, error) = engine.call("Request/r2/run", &json!({"prompt": "hello", "worker": "nobody"}));
    assert!(status == 404 && error["message"].as_str().unwrap().contains("nobody"), "{status}: {error}");
    let (status, error) = engine.call("Request/r3/run", &json!({"prompt": "hello", "tools": ["nothing"]}));
    assert_eq!((status, &error["message"]), (400, &json!("unknown tool `nothing`")));
    // Nobody waits for the events of a request that never began.
    assert_eq!(engine.events("r3"), Vec::<Value>::new());
    kill(worker);
}

#[test]
fn an_interrupted_call_follows_the_effect_of_its_tool() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let server = Server::answering(|_, received| {
        let messages = received.body["messages"].as_array().unwrap();
        if messages.iter().any(|message| message["role"] == "tool") {
            return Answer::text("Done.");
        }
        calling(&received.texts("user").pop().unwrap())
    });
    project.write("specs/worker.eld", WORKER);
    let worker = engine.serve(&project, &server);
    engine.register();
    for tool in ["look", "send", "pay"] {
        engine.submit(tool, &json!({"prompt": tool}));
    }
    wait_until("the tools run", || runs(&project).len() == 3);
    kill(worker);
    project.write("log/go", "");
    let worker = engine.serve(&project, &server);
    for (tool, expected) in [("look", 2), ("send", 2), ("pay", 1)] {
        let result = engine.result(tool);
        assert_eq!(result["outcome"]["text"], "Let me see. Done.", "{result}");
        let own: Vec<_> = runs(&project).into_iter().filter(|(name, _)| name == tool).collect();
        assert_eq!(own.len(), expected, "{tool}");
        assert!(own.iter().all(|run| *run == own[0]), "{own:?}");
        assert_eq!(result["messages"].to_string().contains("interrupted"), tool == "pay", "{result}");
    }
    kill(worker);
}

#[test]
fn approvals_and_cancellations_survive_the_worker() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    project.write(
        "specs/ask.eld",
        "(deftool :name \"ask\" :description \"Ask.\" :confirm t :allow (:write [\"log/\"]))",
    );
    project.write("scripts/ask.lua", "return function() fs.append('log/runs', 'ask 1\\n') return 'yes' end");
    let server = in_turn(&["ask"]);
    let worker = engine.serve(&project, &server);
    engine.register();
    for id in ["allowed", "canceled"] {
        engine.submit(id, &json!({"prompt": "hello"}));
    }
    let (allowed, _) = (engine.asked("allowed"), engine.asked("canceled"));
    kill(worker);
    let (status, answer) = engine.call("Request/canceled/cancel/send", &Value::Null);
    assert!(status < 300, "{status}: {answer}");
    let worker = engine.serve(&project, &server);
    engine.answer(&allowed, &json!({"answer": "allowed"}));
    assert_eq!(engine.result("allowed")["outcome"]["text"], "One more. The end.");
    assert_eq!(engine.result("canceled")["outcome"]["state"], "canceled");
    assert_eq!(runs(&project).len(), 1);
    kill(worker);
}

#[test]
fn a_canceled_request_has_all_events() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let slow =
        (0..200).fold(Answer::stream(), |answer, number| answer.delta(&format!("{number} ")).wait_ms(30));
    let server = Server::script([slow.done()]);
    let worker = engine.serve(&project, &server);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    // The third page contains text.
    let (_, page) = engine.call("Request/r1/events", &json!(2));
    assert_eq!(page["events"][0]["type"], "text", "{page}");
    let (status, answer) = engine.call("Request/r1/cancel", &Value::Null);
    assert!(status < 300, "{status}: {answer}");
    let result = engine.result("r1");
    assert_eq!(result["outcome"]["state"], "canceled", "{result}");
    let events = merged(engine.events("r1"));
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["submitted", "turn_started", "text", "finished"]);
    assert_eq!(events[2]["text"], result["outcome"]["text"]);
    kill(worker);
}

#[test]
fn a_conversation_continues() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let server = Server::script([Answer::text("First."), Answer::text("Second.")]);
    let worker = engine.serve(&project, &server);
    engine.register();
    for (prompt, expected) in [("one", "First."), ("two", "Second.")] {
        let (status, result) = engine.call("Conversation/c1/send", &json!({"prompt": prompt}));
        assert_eq!((status, &result["outcome"]["text"]), (200, &json!(expected)), "{result}");
    }
    let (_, messages) = engine.call("Conversation/c1/messages", &Value::Null);
    let contents: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["one", "First.", "two", "Second."]);
    kill(worker);
}

/// Kills the worker at random times while requests run. The scripts count the side effects.
#[test]
fn nothing_is_lost_or_repeated_in_random_crashes() {
    let Some(engine) = Engine::start() else { return };
    let seed = std::env::var("DEFTOOL_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let requests = std::env::var("DEFTOOL_CHAOS_REQUESTS").ok().and_then(|count| count.parse().ok());
    let requests: usize = requests.unwrap_or(50 / step(5));
    let mut random = fastrand::Rng::with_seed(seed);
    let project = project();
    project.write("specs/worker.eld", WORKER);
    for tool in ["look", "send", "pay"] {
        project.write(&format!("scripts/{tool}.lua"), SLOW_SCRIPT);
    }
    let server = in_turn(&TOOLS);
    let mut worker = engine.serve(&project, &server);
    engine.register();
    let ids: Vec<String> = (0..requests).map(|number| format!("chaos-{number}")).collect();
    for id in &ids {
        engine.submit(id, &json!({"prompt": "hello"}));
    }
    let is_over = |id: &String| {
        let path = format!("restate/workflow/Request/{id}/output");
        engine.send(engine.ingress, &path, None).is_some_and(|(status, _)| status != NOT_READY)
    };
    let mut kills = 0;
    while !ids.iter().all(is_over) {
        // Long enough for some progress.
        std::thread::sleep(Duration::from_millis(random.u64(100..700)));
        kill(worker);
        kills += 1;
        worker = engine.serve(&project, &server);
    }
    for id in &ids {
        check_result(seed, &engine.result(id));
    }
    println!("seed {seed}: {kills} kills, {requests} requests, {}", Counts::of(&project, seed));
    kill(worker);
}

/// Checks the result of a request with the tools of [`TOOLS`].
fn check_result(seed: u64, result: &Value) {
    let expected = format!("{}The end.", "One more. ".repeat(TOOLS.len()));
    assert_eq!(result["outcome"]["state"], "completed", "seed {seed}: {result}");
    assert_eq!(result["outcome"]["text"], expected, "seed {seed}: {result}");
}

/// The numbers of calls and repeated calls in the ledger of the scripts.
struct Counts {
    calls: usize,
    repeated_pure: usize,
    repeated_keyed: usize,
}

impl Counts {
    /// Counts the calls. A `once` call must not be repeated.
    fn of(project: &Project, seed: u64) -> Self {
        let mut keys = runs(project);
        keys.sort_unstable();
        let again: Vec<&str> =
            keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].0.as_str()).collect();
        assert!(!again.contains(&"pay"), "seed {seed}: a `once` call was repeated");
        let repeated = |tool: &str| again.iter().filter(|name| **name == tool).count();
        Self { calls: keys.len(), repeated_pure: repeated("look"), repeated_keyed: repeated("send") }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, repeated_pure, repeated_keyed } = self;
        write!(
            f,
            "{calls} calls, 0 lost, 0 repeated `once` calls, {repeated_pure} repeated `pure` calls, {repeated_keyed} \
             `keyed` calls repeated with their key"
        )
    }
}
