//! The cost of a tool call over MCP: `deftool mcp` beside an empty `rmcp` server and, if `tests/mcp/install` installed
//! them, servers of `FastMCP` and of the TypeScript SDK, through the same client. Run with `cargo bench --bench mcp`.
//! Also prints the CPU time of each server (Linux). `benches/peers` compares it over both transports.
//!
//! Goals: 50 µs CPU for a call on stdin and stdout, 20 µs if 64 are open; 0.5 ms for a call over HTTP.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]
// Figures are rounded.
#![allow(clippy::cast_precision_loss)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use divan::Bencher;
use divan::counter::ItemsCount;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const EMPTY_SERVER: &str = "empty-server";

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart");

/// Calls that are open at the same time.
const OPEN: usize = 64;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(EMPTY_SERVER) {
        return serve_nothing();
    }
    divan::main();
}

/// Answers every call with the same text.
struct Empty;

impl ServerHandler for Empty {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = r#"{"location":"Paris","temperature":21,"unit":"celsius"}"#;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn serve_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        Empty.serve((tokio::io::stdin(), tokio::io::stdout())).await.unwrap().waiting().await.unwrap();
    });
}

/// The process of a server. At its end, the CPU time of its calls is printed.
struct Server {
    child: Child,
    name: String,
    /// CPU time before the first call, in microseconds.
    cpu_before: Option<f64>,
    calls: usize,
}

impl Server {
    fn start(name: &str, command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self { child: child.spawn().unwrap(), name: name.to_owned(), cpu_before: None, calls: 0 }
    }

    /// Counts calls that are about to be sent.
    fn count(&mut self, calls: usize) {
        if self.cpu_before.is_none() {
            self.cpu_before = cpu_time(self.child.id());
        }
        self.calls += calls;
    }
}

/// Returns the CPU time of all threads of a process, in microseconds. `None` elsewhere than on Linux.
fn cpu_time(id: u32) -> Option<f64> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let times = threads.map(|thread| {
        let times = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap_or_default();
        times.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default()
    });
    Some(times.sum::<f64>() / 1000.0)
}

impl Drop for Server {
    fn drop(&mut self) {
        if let (Some(before), Some(after)) = (self.cpu_before, cpu_time(self.child.id())) {
            eprintln!("   {}: {:.1} µs CPU a call", self.name, (after - before) / self.calls as f64);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn initialize() -> Value {
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server and its client on stdin and stdout.
struct Session {
    server: Server,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(name: &str, program: &str, arguments: &[&str]) -> Self {
        let mut server = Server::start(name, Command::new(program).args(arguments));
        let stdin = server.child.stdin.take().unwrap();
        let stdout = BufReader::new(server.child.stdout.take().unwrap());
        let mut session = Self { server, stdin, stdout };
        session.ask(&format!("{}\n", initialize()));
        session.stdin.write_all(format!("{INITIALIZED}\n").as_bytes()).unwrap();
        session
    }

    fn deftool() -> Self {
        Self::start("deftool", env!("CARGO_BIN_EXE_deftool"), &["mcp", "-C", PROJECT])
    }

    /// A server in Python or JavaScript, if its library is installed.
    fn of_library(installed: &str, program: &str, script: &str) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/");
        let program = if program.contains('/') { format!("{folder}{program}") } else { program.to_owned() };
        std::fs::exists(format!("{folder}{installed}/installed"))
            .unwrap()
            .then(|| Self::start(script, &program, &[&format!("{folder}{script}")]))
    }

    fn empty() -> Self {
        Self::start("empty server", std::env::current_exe().unwrap().to_str().unwrap(), &[EMPTY_SERVER])
    }

    /// Sends a request and returns its answer.
    fn ask(&mut self, request: &str) -> String {
        self.stdin.write_all(request.as_bytes()).unwrap();
        self.next()
    }

    fn next(&mut self) -> String {
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"result\""), "{answer}");
        answer
    }
}

fn call(bencher: Bencher, session: Session) {
    call_with(bencher, session, &weather(), "Paris");
}

fn weather() -> Value {
    json!({"name": "get_weather", "arguments": {"location": "Paris"}})
}

fn call_with(bencher: Bencher, mut session: Session, params: &Value, expected: &str) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = format!("{request}\n");
    assert!(session.ask(&request).contains(expected));
    bencher.bench_local(|| {
        session.server.count(1);
        session.ask(&request)
    });
}

#[divan::bench(sample_size = 20)]
fn call_to_an_empty_server(bencher: Bencher) {
    call(bencher, Session::empty());
}

#[divan::bench(sample_size = 20)]
fn call_to_deftool(bencher: Bencher) {
    call(bencher, Session::deftool());
}

/// Keeps many calls open: after each result, another call is sent.
fn keep_open(bencher: Bencher, mut session: Session, params: &Value) {
    let mut id = 0;
    let mut send = |session: &mut Session| {
        id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        session.stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
    };
    (0..OPEN).for_each(|_| send(&mut session));
    bencher.counter(ItemsCount::new(OPEN)).bench_local(|| {
        session.server.count(OPEN);
        for _ in 0..OPEN {
            session.next();
            send(&mut session);
        }
    });
}

#[divan::bench(sample_size = 4)]
fn open_calls_to_an_empty_server(bencher: Bencher) {
    keep_open(bencher, Session::empty(), &weather());
}

#[divan::bench(sample_size = 4)]
fn open_calls_to_deftool(bencher: Bencher) {
    keep_open(bencher, Session::deftool(), &weather());
}

#[divan::bench(sample_size = 4)]
fn open_calls_to_the_typescript_sdk(bencher: Bencher) {
    let Some(session) = Session::of_library("node_modules", "node", "server.mjs") else { return };
    keep_open(bencher, session, &json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
}

/// A kept connection to `deftool mcp --port`.
struct Connection {
    stream: BufReader<TcpStream>,
    /// The header of the session.
    session: String,
    server: Server,
}

impl Connection {
    fn open() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
        let mut server =
            Server::start("deftool over HTTP", command.args(["mcp", "--port", "0", "-C", PROJECT]));
        let mut ready = String::new();
        BufReader::new(server.child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        let address = ready.trim().strip_prefix("READY http://").unwrap().strip_suffix("/mcp").unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut connection = Self { stream: BufReader::new(stream), session: String::new(), server };
        let (head, _) = connection.post(&initialize().to_string());
        let session = head.lines().find(|line| line.starts_with("mcp-session-id:")).unwrap();
        connection.session = format!("{session}\r\n");
        connection.post(INITIALIZED);
        connection
    }

    /// Sends a message and returns the head and the body of the reply.
    fn post(&mut self, message: &str) -> (String, String) {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{message}",
            self.session,
            message.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if let Some(length) = length {
            return (head.clone(), self.read(length.parse().unwrap()));
        }
        let mut body = String::new();
        loop {
            let mut length = String::new();
            self.stream.read_line(&mut length).unwrap();
            let length = usize::from_str_radix(length.trim(), 16).unwrap();
            body += self.read(length + 2).trim_end();
            if length == 0 {
                return (head, body);
            }
        }
    }

    fn read(&mut self, length: usize) -> String {
        let mut part = vec![0; length];
        self.stream.read_exact(&mut part).unwrap();
        String::from_utf8(part).unwrap()
    }
}

#[divan::bench(sample_size = 20)]
fn call_to_deftool_over_http(bencher: Bencher) {
    let mut connection = Connection::open();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": weather()}).to_string();
    assert!(connection.post(&request).1.contains("Paris"));
    bencher.bench_local(|| {
        connection.server.count(1);
        connection.post(&request)
    });
}

/// A call of the tool `add`.
fn call_library(bencher: Bencher, session: Option<Session>) {
    let Some(session) = session else { return };
    call_with(bencher, session, &json!({"name": "add", "arguments": {"a": 1, "b": 2}}), "3");
}

#[divan::bench(sample_size = 20)]
fn call_to_fastmcp(bencher: Bencher) {
    call_library(bencher, Session::of_library(".venv", ".venv/bin/python", "server.py"));
}

#[divan::bench(sample_size = 20)]
fn call_to_the_typescript_sdk(bencher: Bencher) {
    call_library(bencher, Session::of_library("node_modules", "node", "server.mjs"));
}

/// From the start of the process to the answer to `initialize`.
#[divan::bench(sample_count = 20)]
fn start_of_an_empty_server(bencher: Bencher) {
    bencher.bench_local(Session::empty);
}

#[divan::bench(sample_count = 20)]
fn start_of_deftool(bencher: Bencher) {
    bencher.bench_local(Session::deftool);
}
