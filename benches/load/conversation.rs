//! A conversation of many turns: the CPU time of the worker process for the whole of it.
//!
//! The bytes that are sent grow with the square of the number of turns, everything else must grow linearly. For
//! comparison, reqwest sends bodies of the same sizes, and the bodies are copied once in memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{FinalState, RunConfig};
use deftool_worker::{HttpTransport, SubmitRequest, Worker, WorkerConfig};

use crate::meter::Cpu;
use crate::server::Server;
use crate::tools::toolbox;

const TURNS: [usize; 3] = [500, 1_000, 2_000];

pub(crate) fn measure() {
    for turns in TURNS {
        let server = Server::start_as("conversation-server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let before = Cpu::now();
        let outcome = runtime.block_on(run(&server.endpoint, turns));
        let (user, system) = before.each(1);
        assert_eq!(outcome, FinalState::Completed);
        let sizes = server.sizes(turns);
        let bytes: usize = sizes.iter().sum();
        let before = Cpu::now();
        runtime.block_on(send(&server.endpoint, &sizes));
        let (bare_user, bare_system) = before.each(1);
        let before = Cpu::now();
        copy(&sizes);
        let (copy_user, copy_system) = before.each(1);
        println!(
            "conversation {turns:>5} turns, {:>6.1} MB: worker {:>7.1} ms user {:>7.1} ms system, reqwest {:>7.1} ms user \
             {:>7.1} ms system, memcpy {:>6.1} ms",
            bytes as f64 / 1e6,
            user / 1e3,
            system / 1e3,
            bare_user / 1e3,
            bare_system / 1e3,
            (copy_user + copy_system) / 1e3,
        );
    }
}

/// Runs one request with `turns` turns.
async fn run(endpoint: &str, turns: usize) -> FinalState {
    let run = RunConfig { model: String::from("stub"), tool_budget: turns as u32, ..RunConfig::default() };
    let config = WorkerConfig { run, ..WorkerConfig::default() };
    let transport = HttpTransport::new(endpoint, None, Duration::from_secs(3)).unwrap();
    let worker = Worker::start(config, toolbox(), Arc::new(transport));
    let id = worker.submit(SubmitRequest::prompt(turns.to_string())).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    while events.next().await.is_some() {}
    worker.result(&id).unwrap().state
}

/// Sends bodies of these sizes with reqwest.
async fn send(endpoint: &str, sizes: &[usize]) {
    let client =
        deftool_script::client_builder().no_proxy().tls_certs_only(std::iter::empty()).build().unwrap();
    let body = bytes::Bytes::from(vec![b' '; sizes.iter().copied().max().unwrap_or_default()]);
    for size in sizes {
        let request = client.post(format!("{endpoint}/chat/completions")).body(body.slice(..*size));
        let mut response = request.send().await.unwrap();
        while response.chunk().await.unwrap().is_some() {}
    }
}

/// Copies bodies of these sizes.
fn copy(sizes: &[usize]) {
    let source = vec![1_u8; sizes.iter().copied().max().unwrap_or_default()];
    for size in sizes {
        std::hint::black_box(source[..*size].to_vec());
    }
}

/// The `main` of the server process. It does not parse the bodies: every answer is a call, until the body contains as
/// many results as its prompt requests.
pub(crate) fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("READY http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            std::thread::spawn(move || answer(connection));
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
}

fn answer(connection: TcpStream) {
    connection.set_nodelay(true).unwrap();
    let mut writer = connection.try_clone().unwrap();
    let mut reader = BufReader::with_capacity(1 << 16, connection);
    let mut body = Vec::new();
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body).unwrap();
        println!("size {length}");
        // Some clients open a connection for each request, so the body itself has to show how far the request is.
        let text = str::from_utf8(&body).unwrap();
        let number = text.matches("\"tool_call_id\"").count() + 1;
        // The prompt is the number of turns. The worker sends lines before it.
        let prompt = text.split("\"role\":\"user\",\"content\":\"").nth(1);
        let turns = prompt.and_then(|rest| rest.split('"').next()?.rsplit("\\n").next()?.parse().ok());
        let turns = turns.unwrap_or(usize::MAX);
        let delta = if number < turns {
            format!(
                r#"{{"tool_calls":[{{"index":0,"id":"call{number:05}","function":{{"name":"get_weather","arguments":"{{\"location\":\"Paris {number}\"}}"}}}}]}}"#
            )
        } else {
            String::from(r#"{"content":"Done."}"#)
        };
        let reason = if number < turns { "tool_calls" } else { "stop" };
        let events = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n\
             data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        writer
            .write_all(format!("{head}content-length: {}\r\n\r\n{events}", events.len()).as_bytes())
            .unwrap();
    }
}
