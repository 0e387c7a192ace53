//! A real llama.cpp server with a real model as a managed server, started by `tests/real/serve.py`. Tests requests when
//! it is killed, stopped, slow, or never starts.
//!
//! Prints a table with one line per case. Skipped if the real server is not installed, like the tests of `real.rs`.
//! `DEFTOOL_PREFILL=6000` sets the number of prompt tokens that one thread processes, which takes minutes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_chat::request::{BiosTemplate, FailReason};
use deftool_lang::schema::ToolSet;
use deftool_test_support::can_use;
use deftool_worker::{ServerOptions, SubmitRequest, Toolbox, Worker, WorkerConfig, WorkerState};
use rustix::process::Signal;
use serde_json::json;

use super::fake::{family, parent, runs, signal};
use super::{config, echo, reach};
use crate::worker::harness::Ended;

const STORY: &str = "Tell me a long story about a ship and its crew.";

fn options(more: &[&str]) -> Option<ServerOptions> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let is_there = folder.join(".venv/installed").exists();
    if !can_use("real server (140 MB)", is_there, "DEFTOOL_REAL", "tests/real/install") {
        return None;
    }
    let python = folder.join(".venv/bin/python");
    let serve = folder.join("serve.py");
    let words = [python.to_str()?, serve.to_str()?, "--forever", "--port", "{port}", "--slots", "1"];
    let mut options = super::options("");
    options.env.clear();
    options.command = words.iter().chain(more).map(|word| (*word).to_owned()).collect();
    options.limits.probe_interval = Duration::from_millis(300);
    options.limits.probe = Duration::from_secs(1);
    // A stall of 2 s must be reported before the probes fail.
    options.limits.misses = 8;
    options.limits.drain = Duration::from_millis(500);
    // The server exits after it has processed its prompt.
    options.limits.grace = Duration::from_secs(1);
    Some(options)
}

fn limits(seconds: u64) -> WorkerConfig {
    let mut config = config();
    for (name, value) in [("temperature", 0), ("seed", 1), ("max_tokens", 400)] {
        config.run.params.insert(String::from(name), json!(value));
    }
    // Every prompt token takes one thread 10 ms.
    config.bios = Arc::new(BiosTemplate { text: String::from("You tell stories.") });
    let limit = Duration::from_secs(seconds);
    config.timers.headers = Some(limit);
    config.timers.stall = limit;
    config.timers.first_token = Some(limit);
    config
}

fn no_tools() -> Arc<Toolbox> {
    Arc::new(Toolbox { tools: ToolSet::default(), ..(*echo()).clone() })
}

/// Returns a prompt of about `tokens` tokens.
fn long_prompt(tokens: usize) -> String {
    let words = ["ship ", "sea ", "wind ", "crew ", "storm ", "night ", "star ", "rope "];
    let text: String = (0..tokens).map(|at| words[at * at % words.len()]).collect();
    format!("{text}\n{STORY}")
}

struct Table {
    text: String,
    begun: Instant,
    /// All observed processes of the servers.
    seen: Vec<u32>,
}

impl Table {
    fn new() -> Self {
        let text = String::from(
            "| case | worker | request | reason | kind | s | text kept | restarts | orphans | the worker says |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        Self { text, ..Self::part() }
    }

    /// Creates a table without a header.
    fn part() -> Self {
        Self { text: String::new(), begun: Instant::now(), seen: Vec::new() }
    }

    fn begin(&mut self, worker: &Worker) {
        self.begun = Instant::now();
        self.see(worker);
    }

    fn see(&mut self, worker: &Worker) {
        if let Some(pid) = worker.status().pid {
            self.seen.extend(family(parent(pid)));
        }
    }

    fn line(&mut self, case: &str, worker: &Worker, ended: Option<&Ended>) {
        let status = worker.status();
        let present = status.pid.map(|pid| family(parent(pid))).unwrap_or_default();
        let orphans = self.seen.iter().filter(|id| runs(**id) && !present.contains(id)).count();
        let (state, reason, kind, kept) = match ended {
            Some(ended) => {
                let outcome = &ended.outcome;
                let reason = outcome.fail_reason.map_or("", FailReason::as_str);
                let kept = format!("{} characters", outcome.text.len());
                (json!(outcome.state), reason, outcome.kind.clone().unwrap_or_default(), kept)
            }
            None => (json!("–"), "", String::new(), String::from("–")),
        };
        let state = state.as_str().unwrap().to_owned();
        let seconds = self.begun.elapsed().as_secs_f64();
        let kind = if kind.is_empty() { "–" } else { &kind };
        let reason = if reason.is_empty() { "–" } else { reason };
        let message = status.reason.as_deref().unwrap_or("–").replace(env!("CARGO_MANIFEST_DIR"), "");
        // Every message contains the command.
        let message =
            message.rsplit_once('`').map_or(message.as_str(), |(_, message)| message).replace('\n', " ");
        let message: String = message.trim_start_matches([':', ' ']).chars().take(150).collect();
        writeln!(
            self.text,
            "| {case} | {} | {state} | {reason} | {kind} | {seconds:.1} | {kept} | {} | {orphans} | {message} |",
            status.state, status.restarts
        )
        .unwrap();
        assert_eq!(orphans, 0, "{case}: {:?}", self.seen);
    }
}

impl Table {
    /// Writes to stderr directly: the test harness captures the output of the macros.
    fn print(&self) {
        let _ = writeln!(std::io::stderr(), "{}", self.text);
    }
}

async fn stream_some(worker: &Worker) -> String {
    for _ in 0..5 {
        // The slot of a request that was canceled during its prompt drains until the server shows it as idle.
        worker.drained().await;
        let id = worker.submit(SubmitRequest::prompt(STORY)).unwrap();
        let mut events = worker.events(&id, 0).unwrap();
        while worker.request_status(&id).unwrap().text_chars < 30 {
            if events.next().await.is_none() {
                break;
            }
        }
        if worker.result(&id).is_err() {
            return id;
        }
    }
    panic!("the machine is too busy for a story");
}

/// Waits for the end of a request without a time limit.
async fn over(worker: &Worker, id: &str) -> Ended {
    Ended { outcome: worker.wait(id).await.unwrap(), events: Vec::new() }
}

fn failed(ended: &Ended) -> (FailReason, &str) {
    let (reason, kind, ..) = ended.failed();
    (reason, kind)
}

/// Runs the cases concurrently with separate servers: most of the time is spent waiting for time limits.
#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_the_real_server() {
    // With one thread each, so that the servers do not slow each other down.
    let Some(plain) = options(&["--threads", "1"]) else { return };
    let tables = tokio::join!(
        restarts(&plain),
        stops_after_the_first_token(&plain),
        stops_before_the_first_token(&plain),
        never_starts(&plain)
    );
    let (mut table, others) = (tables.0, [tables.1, tables.2, tables.3]);
    for other in others {
        table.text.push_str(&other.text);
    }
    table.print();
}

async fn start(table: &mut Table, plain: &ServerOptions) -> Worker {
    let worker = Worker::start_managed(limits(2), no_tools(), plain.clone());
    worker.ready().await.unwrap();
    table.see(&worker);
    worker
}

async fn restarts(plain: &ServerOptions) -> Table {
    let mut table = Table::new();
    let worker = start(&mut table, plain).await;
    table.line("start", &worker, None);

    // Retry on a machine that is too busy for the limits.
    for tries in 1.. {
        worker.drained().await;
        table.begin(&worker);
        let id = worker.submit(SubmitRequest::prompt("Say hello.")).unwrap();
        let ended = over(&worker, &id).await;
        if ended.outcome.fail_reason.is_none() || tries == 5 {
            table.line("a request", &worker, Some(&ended));
            assert!(!ended.text().is_empty());
            break;
        }
    }

    let id = stream_some(&worker).await;
    table.begin(&worker);
    signal(worker.status().pid.unwrap(), Signal::KILL);
    let ended = over(&worker, &id).await;
    worker.ready().await.unwrap();
    table.line("SIGKILL in the stream, ready again", &worker, Some(&ended));
    assert_eq!(failed(&ended).0, FailReason::ServerDied);
    assert!(ended.failed().2.contains("signal 9 (SIGKILL)") && ended.outcome.text.len() >= 30, "{ended:?}");

    let id = stream_some(&worker).await;
    table.begin(&worker);
    worker.restart();
    worker.cancel(&id);
    let ended = over(&worker, &id).await;
    worker.ready().await.unwrap();
    table.line("restart by hand, and a cancel with it", &worker, Some(&ended));
    assert_eq!(failed(&ended).0, FailReason::WorkerRestarted);

    table.begin(&worker);
    signal(parent(worker.status().pid.unwrap()), Signal::KILL);
    reach(&worker, |status| status.state != WorkerState::Ready).await;
    worker.ready().await.unwrap();
    table.line("SIGKILL of the guard, ready again", &worker, None);

    // Four more restarts after the one for the guard reach the limit.
    table.begin(&worker);
    for _ in 0..5 {
        let pid = worker.status().pid.unwrap();
        table.see(&worker);
        signal(pid, Signal::KILL);
        reach(&worker, |status| status.pid != Some(pid)).await;
        let _ = worker.ready().await;
    }
    assert_eq!(worker.state(), WorkerState::Failed, "{:?}", worker.status());
    table.line("a crash loop: no automatic restart", &worker, None);
    assert!(worker.status().reason.unwrap().contains("after 5 restarts within 10 min"));
    table.begin(&worker);
    worker.restart();
    worker.ready().await.unwrap();
    table.line("… a restart by hand, ready again", &worker, None);
    table.begin(&worker);
    end(&worker).await;
    table.line("stop", &worker, None);
    table
}

async fn stops_after_the_first_token(plain: &ServerOptions) -> Table {
    let mut table = Table::part();
    let worker = start(&mut table, plain).await;
    let id = stream_some(&worker).await;
    table.begin(&worker);
    signal(worker.status().pid.unwrap(), Signal::STOP);
    let ended = over(&worker, &id).await;
    table.line("SIGSTOP after the first token", &worker, Some(&ended));
    assert_eq!(failed(&ended).0, FailReason::StallTimeout);
    assert!(ended.outcome.text.len() >= 30, "{ended:?}");
    is_restarted(&mut table, &worker).await;
    table
}

async fn stops_before_the_first_token(plain: &ServerOptions) -> Table {
    let mut table = Table::part();
    let worker = start(&mut table, plain).await;
    table.begin(&worker);
    let id = worker.submit(SubmitRequest::prompt(long_prompt(2500))).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(worker.status().pid.unwrap(), Signal::STOP);
    let ended = over(&worker, &id).await;
    table.line("SIGSTOP before the first token", &worker, Some(&ended));
    assert!(matches!(failed(&ended).0, FailReason::StallTimeout | FailReason::HeadersTimeout), "{ended:?}");
    assert_eq!(ended.outcome.text, "");
    is_restarted(&mut table, &worker).await;
    table
}

/// Waits for the restart: the slot of the stalled request stays busy because the server is stopped.
async fn is_restarted(table: &mut Table, worker: &Worker) {
    reach(worker, |status| status.state == WorkerState::Running).await;
    worker.ready().await.unwrap();
    table.line("… its slot stays busy, ready again", worker, None);
    assert_eq!(worker.status().restarts, 1);
    end(worker).await;
}

async fn end(worker: &Worker) {
    worker.stop();
    worker.stopped().await;
}

/// A prompt that takes one thread much longer than the limits for a silent server.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_prompt_is_not_limited_by_much_shorter_timeouts() {
    const LIMIT: u64 = 1;
    let Some(slow) = options(&["--threads", "1", "--context", "8192"]) else { return };
    let wanted = std::env::var("DEFTOOL_PREFILL").map(|tokens| tokens.parse::<usize>().unwrap());
    let mut tokens = wanted.clone().unwrap_or(400);
    let mut table = Table::new();
    let mut config = limits(LIMIT);
    config.run.params.insert(String::from("max_tokens"), json!(8));
    // The small model would end its reply immediately after such a long prompt.
    config.run.params.insert(String::from("ignore_eos"), json!(true));
    config.timers.stall = Duration::from_secs(20);
    let worker = Worker::start_managed(config, no_tools(), slow);
    worker.ready().await.unwrap();
    loop {
        table.begin(&worker);
        let id = worker.submit(SubmitRequest::prompt(long_prompt(tokens))).unwrap();
        let ended = over(&worker, &id).await;
        let took = table.begun.elapsed();
        let case = format!("{tokens} tokens read by one thread, limits of {LIMIT} s");
        table.line(&case, &worker, Some(&ended));
        assert!(!ended.text().is_empty());
        assert!(ended.outcome.usage.as_ref().unwrap().prompt_tokens >= tokens as u64);
        // A faster machine needs a longer prompt.
        if wanted.is_ok() || took >= Duration::from_secs(2 * LIMIT) {
            break;
        }
        tokens *= 2;
        assert!(tokens < 7000, "this machine is too fast for the limits");
    }
    table.print();
    end(&worker).await;
}

async fn never_starts(plain: &ServerOptions) -> Table {
    let mut table = Table::part();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = Some(held.local_addr().unwrap().port());
    let with = |command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        ServerOptions { command, ..plain.clone() }
    };
    let mut broken = plain.clone();
    broken.command.extend(["--template", "no-such-template.jinja"].map(String::from));
    let cases = [
        ("port taken", ServerOptions { port: taken, ..plain.clone() }, "is already in use by"),
        ("no such program", with(&["no-such-program", "{port}"]), "cannot be started: no such file"),
        ("not executable", with(&[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]), "permission denied"),
        ("exits at once, code 0", with(&["true"]), "exited with code 0 before it was ready"),
        ("prints and exits", broken, "no-such-template.jinja"),
    ];
    for (case, options, expected) in cases {
        table.begun = Instant::now();
        let worker = Worker::start_managed(limits(3), no_tools(), options);
        let reason = worker.ready().await.unwrap_err().reason.unwrap();
        assert!(reason.contains(expected), "{case}: {reason}");
        table.line(case, &worker, None);
    }
    table
}
