//! `deftool rpc` as a client sees it: CPU time of its process for each token of a thousand streams.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::meter::{allow_descriptors, now_us, spread};
use crate::server::{Server, TOKEN_PACE, stamps};
use crate::streams::{MEASUREMENT, RAMP, STREAMS};

pub(crate) fn measure() {
    // Inherited by the processes.
    allow_descriptors();
    let server = Server::start();
    let (client, mut output) = Client::start(&server, STREAMS);
    let process = client.process.id();
    let (tokens, begun) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counted, streams) = (Arc::clone(&tokens), Arc::clone(&begun));
    let input = Arc::clone(&client.input);
    let reader = std::thread::spawn(move || {
        let (mut latencies, mut line) = (Vec::new(), String::new());
        while next_line(&mut output, &mut line) {
            let mut is_token = false;
            for stamp in stamps(line.as_bytes()) {
                is_token = true;
                latencies.push(now_us() - stamp);
            }
            counted.fetch_add(usize::from(is_token), Ordering::Relaxed);
            // The response to `submit`.
            if !is_token && let Some(id) = request_id(&line) {
                let number = streams.fetch_add(1, Ordering::Relaxed);
                send(&input, STREAMS + number, "events", &json!({"request_id": id}));
            }
        }
        latencies
    });
    for number in 0..STREAMS {
        let prompt = format!("stream rpc-{number} 60");
        send(&client.input, number, "submit", &json!({"prompt": prompt}));
        sleep(RAMP / STREAMS as u32);
    }
    while begun.load(Ordering::Relaxed) < STREAMS {
        sleep(TOKEN_PACE);
    }
    sleep(Duration::from_secs(1));
    let now = || (cpu_us(process), tokens.load(Ordering::Relaxed), writes(process));
    let before = now();
    sleep(MEASUREMENT);
    let after = now();
    let count = after.1 - before.1;
    let each = |now: u64, then: u64| (now - then) as f64 / count as f64;
    let (cpu, written) = (each(after.0, before.0), each(after.2, before.2));
    println!(
        "streams rpc      CPU a token: {cpu:.2} µs, {written:.2} writes; {count} tokens in {MEASUREMENT:?}"
    );
    let mut process = client.process;
    process.kill().unwrap();
    process.wait().unwrap();
    let mut latencies = reader.join().unwrap();
    // The ramp is not measured.
    latencies.drain(..latencies.len() / 5);
    println!("streams rpc      latency of a token           {}", spread(latencies));
}

/// Reads the events of one reply to `prompt`.
pub(crate) fn read(server: &Server, prompt: &str) {
    let (mut client, mut output) = Client::start(server, 1);
    let mut line = String::new();
    send(&client.input, 1, "submit", &json!({"prompt": prompt}));
    assert!(next_line(&mut output, &mut line));
    let id = request_id(&line).unwrap();
    send(&client.input, 2, "events", &json!({"request_id": id}));
    while next_line(&mut output, &mut line) && !line.starts_with(r#"{"jsonrpc":"2.0","id":2,"#) {}
    drop(client.input);
    assert!(client.process.wait().unwrap().success());
}

/// A running `deftool rpc`.
struct Client {
    process: Child,
    input: Arc<ChildStdin>,
    _project: TempDir,
}

impl Client {
    fn start(server: &Server, slots: usize) -> (Self, BufReader<ChildStdout>) {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir(project.path().join("specs")).unwrap();
        let spec = format!("(defworker :name \"load\" :model \"stub\" :slots {slots})\n");
        fs::write(project.path().join("specs/load.eld"), spec).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
        command.args(["rpc", "--endpoint", &server.endpoint]).current_dir(project.path());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        (
            Self { process, input: Arc::new(input), _project: project },
            BufReader::with_capacity(1 << 16, output),
        )
    }
}

fn send(mut input: &ChildStdin, id: usize, method: &str, params: &Value) {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    input.write_all(format!("{message}\n").as_bytes()).unwrap();
}

fn next_line(output: &mut BufReader<ChildStdout>, line: &mut String) -> bool {
    line.clear();
    output.read_line(line).unwrap() > 0
}

/// Returns the result of `submit`.
fn request_id(response: &str) -> Option<String> {
    let response: Value = serde_json::from_str(response).ok()?;
    response["result"]["request_id"].as_str().map(str::to_owned)
}

/// CPU time of a process so far, in microseconds.
fn cpu_us(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The fields after the name of the program.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    ticks * 1_000_000 / rustix::param::clock_ticks_per_second()
}

/// Number of `write` calls of a process so far.
fn writes(process: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}
