//! Faults at every phase of a request: for any end of a managed server, the open request reports the loss.
//!
//! `cargo test --test it -- managed::chaos --nocapture` prints the end of each request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{FailReason, FinalState};
use deftool_lang::tool::ToolCall;
use deftool_test_support::{is_full, step};
use deftool_worker::{SubmitRequest, Worker, WorkerState};
use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;

use super::fake::options;
use super::{reach, stop};
use crate::worker::harness::*;

/// A way to end a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Term,
    Stop,
    Restart,
}

/// The phase of the request when the server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The server received the request and sent nothing.
    Headers,
    /// The head was sent, and no token.
    FirstToken,
    /// Tokens are being sent.
    Stream,
    /// One token was sent, and nothing after it.
    Silence,
    /// A tool runs; the server is ended again while it loads.
    Tool,
}

/// Servers: a plain one, one with children, and two that close their connections on SIGTERM and exit later.
const SERVERS: [&str; 4] = ["", "family", "closes=600", "closes=3000 load=100"];
const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Term, Fault::Stop, Fault::Restart];
const PHASES: [Phase; 5] = [Phase::Headers, Phase::FirstToken, Phase::Stream, Phase::Silence, Phase::Tool];
/// Requests per server, fault and phase, except those that wait for missed probes.
const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_open_request_reports_the_loss_of_its_server() {
    let servers = SERVERS.into_iter().step_by(step(2));
    let rows = servers.map(|server| tokio::spawn(requests_of(server)));
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut total = 0;
    for row in join_all(rows).await {
        for (request, phase, end) in row.unwrap() {
            let expected: &[&str] = match phase {
                Phase::Tool => &["completed", "worker_restarted", "server_died"],
                _ => &["worker_restarted", "server_died"],
            };
            if !expected.contains(&end.split(' ').next().unwrap()) {
                wrong.push(format!("{request}: {end}"));
            }
            *ends.entry(end).or_default() += 1;
            total += 1;
        }
    }
    println!("{total} requests: {ends:#?}");
    assert!(total >= if is_full() { 100 } else { 20 }, "{total}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs all faults against one server. Returns the name, the phase and the end of each request.
async fn requests_of(server: &'static str) -> Vec<(String, Phase, String)> {
    let called = Arc::new(tokio::sync::Notify::new());
    let (begun, go_on) = (Arc::clone(&called), Arc::new(tokio::sync::Notify::new()));
    let answer = Arc::clone(&go_on);
    let tools = toolbox(FakeTools(move |_: ToolCall, _| {
        let (begun, answer) = (Arc::clone(&begun), Arc::clone(&answer));
        async move {
            begun.notify_one();
            answer.notified().await;
            Ok(json!({}))
        }
    }));
    let mut options = options(&format!("{server} log"));
    options.limits.probe_interval = Duration::from_millis(100);
    options.limits.probe = Duration::from_millis(500);
    options.limits.grace = Duration::from_millis(300);
    options.limits.max_restarts = usize::MAX;
    options.limits.max_restart_delay = Duration::from_millis(40);
    let worker = Worker::start_managed(config(), tools, options);
    let mut ends = Vec::new();
    for fault in FAULTS.into_iter().step_by(step(2)) {
        for phase in PHASES {
            let rounds = if fault == Fault::Stop || !is_full() { 1 } else { ROUNDS };
            for round in 0..rounds {
                worker.ready().await.unwrap();
                let id = begin(&worker, phase, &called).await;
                inject(&worker, fault);
                if phase == Phase::Tool {
                    // Again while the server loads.
                    let first = worker.status().restarts;
                    if fault != Fault::Stop {
                        reach(&worker, |status| status.state == WorkerState::Running).await;
                        reach(&worker, |status| {
                            status.restarts > first || status.state == WorkerState::Ready
                        })
                        .await;
                        inject(&worker, fault);
                    }
                    go_on.notify_one();
                }
                let ended = finish_within(&worker, &id, Duration::from_secs(60)).await;
                let end = match ended.outcome.state {
                    FinalState::Completed => String::from("completed"),
                    _ => {
                        let (reason, kind, detail, _) = ended.failed();
                        let is_named = matches!(reason, FailReason::ServerDied | FailReason::WorkerRestarted);
                        if is_named { reason.to_string() } else { format!("{reason} {kind} ({detail})") }
                    }
                };
                ends.push((format!("`{server}` {fault:?} {phase:?} {round}"), phase, end));
            }
        }
    }
    stop(worker).await;
    ends
}

/// Submits a request and waits until it reaches `phase` or ends.
async fn begin(worker: &Worker, phase: Phase, called: &tokio::sync::Notify) -> String {
    let asked = |worker: &Worker| {
        let logs = worker.recent_logs(usize::MAX);
        logs.iter().filter(|line| line.starts_with("asked ")).count()
    };
    let before = asked(worker);
    let prompt = match phase {
        Phase::Headers => "hold",
        Phase::FirstToken => "mute",
        Phase::Stream => "drip",
        Phase::Silence => "stall",
        Phase::Tool => "look",
    };
    let id = worker.submit(SubmitRequest::prompt(prompt)).unwrap();
    let reached = async {
        match phase {
            Phase::Headers | Phase::FirstToken => {
                while asked(worker) == before {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            Phase::Stream | Phase::Silence => wait_for_text(worker, &id, 6).await,
            Phase::Tool => called.notified().await,
        }
    };
    tokio::select! {
        () = reached => {}
        _ = worker.wait(&id) => {}
    }
    id
}

fn inject(worker: &Worker, fault: Fault) {
    let sent = match fault {
        Fault::Kill => Signal::KILL,
        Fault::Term => Signal::TERM,
        Fault::Stop => Signal::STOP,
        Fault::Restart => return worker.restart(),
    };
    // There may be no process during a restart.
    if let Some(id) = worker.status().pid {
        // The process may have exited.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_raw(id.cast_signed()).unwrap(), sent);
    }
}
