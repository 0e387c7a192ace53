//! The cost of a tool call over MCP on stdin and stdout: `deftool mcp` beside an empty `rmcp` server and, if
//! `tests/mcp/install` installed them, servers of `FastMCP` and of the TypeScript SDK, through the same client. Run
//! with `cargo bench --bench mcp`.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use divan::Bencher;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const EMPTY_SERVER: &str = "empty-server";

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

/// A server and its client.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut session = Self { child, stdin, stdout };
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let start = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        session.ask(&format!("{start}\n"));
        session.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
        session
    }

    fn deftool() -> Self {
        let project = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart");
        Self::start(env!("CARGO_BIN_EXE_deftool"), &["mcp", "-C", project])
    }

    /// A server in Python or JavaScript, if its library is installed.
    fn of_library(installed: &str, program: &str, script: &str) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/");
        let program = if program.contains('/') { format!("{folder}{program}") } else { program.to_owned() };
        std::fs::exists(format!("{folder}{installed}/installed"))
            .unwrap()
            .then(|| Self::start(&program, &[&format!("{folder}{script}")]))
    }

    fn empty() -> Self {
        Self::start(std::env::current_exe().unwrap().to_str().unwrap(), &[EMPTY_SERVER])
    }

    /// Sends a request and returns its answer.
    fn ask(&mut self, request: &str) -> String {
        self.stdin.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"result\""), "{answer}");
        answer
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(bencher: Bencher, session: Session) {
    let params = json!({"name": "get_weather", "arguments": {"location": "Paris"}});
    call_with(bencher, session, &params, "Paris");
}

fn call_with(bencher: Bencher, mut session: Session, params: &Value, expected: &str) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = format!("{request}\n");
    assert!(session.ask(&request).contains(expected));
    bencher.bench_local(|| session.ask(&request));
}

#[divan::bench(sample_size = 20)]
fn call_to_an_empty_server(bencher: Bencher) {
    call(bencher, Session::empty());
}

#[divan::bench(sample_size = 20)]
fn call_to_deftool(bencher: Bencher) {
    call(bencher, Session::deftool());
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
