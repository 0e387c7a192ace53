//! Managed servers through the library: a fake server in a real process, with a real guard.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod chaos;
pub(crate) mod fake;
#[cfg(target_os = "linux")]
mod real;
mod restarts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_chat::request::FailReason;
use deftool_lang::tool::ToolCall;
use deftool_test_support::server::{Answer, Server};
use deftool_worker::{NotReady, ServerOptions, SubmitError, SubmitRequest, Worker, WorkerState};
use rustix::process::Signal;
use serde_json::json;

use crate::worker::harness::*;
use fake::{family, options, parent, runs, signal, wait_until_gone};

fn start(options: ServerOptions) -> Worker {
    Worker::start_managed(config(), echo(), options)
}

async fn ready(options: ServerOptions) -> Worker {
    let worker = start(options);
    worker.ready().await.unwrap();
    worker
}

async fn say(worker: &Worker, prompt: &str) -> Ended {
    finish(worker, &worker.submit(SubmitRequest::prompt(prompt)).unwrap()).await
}

/// Waits until the status meets a condition.
async fn reach(worker: &Worker, mut met: impl FnMut(&deftool_worker::WorkerStatus) -> bool) {
    let begun = Instant::now();
    while !met(&worker.status()) {
        assert!(begun.elapsed() < deftool_test_support::HANG_LIMIT, "{:#?}", worker.status());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn stop(worker: Worker) {
    worker.stop();
    worker.stopped().await;
}

#[tokio::test]
async fn a_server_is_started_used_and_ended() {
    let worker = start(options("load=300 say=hello_log"));
    assert_eq!(worker.state(), WorkerState::Running);
    let refused = worker.submit(SubmitRequest::prompt("hello")).unwrap_err();
    let SubmitError::WorkerNotReady(NotReady { state: WorkerState::Running, reason: Some(reason) }) =
        &refused
    else {
        panic!("{refused}");
    };
    assert!(reason.contains("is starting"), "{reason}");
    worker.ready().await.unwrap();
    let status = worker.status();
    assert_eq!((status.state, status.restarts, status.reason), (WorkerState::Ready, 0, None));
    assert!(status.recent_logs.contains(&String::from("hello log")), "{:?}", status.recent_logs);
    let pid = status.pid.unwrap();
    assert!(runs(pid) && status.endpoint.unwrap().starts_with("http://127.0.0.1:"));
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    let guard = parent(pid);
    stop(worker.clone()).await;
    assert_eq!((worker.state(), worker.status().pid), (WorkerState::Stopped, None));
    assert!(!runs(pid) && !runs(guard));
    assert!(worker.ready().await.unwrap_err().to_string().contains("stopped"));
}

#[tokio::test]
async fn a_failed_start_is_reported_with_command_status_and_output() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain.txt");
    std::fs::write(&file, "no program").unwrap();
    let named = |command: &str| ServerOptions { command: vec![command.to_owned()], ..options("") };
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().port();
    let mut slow = options("deaf say=still_loading");
    slow.limits.start = Duration::from_millis(600);
    slow.limits.probe = Duration::from_millis(200);
    let rows = [
        (
            named("no-such-program-here"),
            "cannot be started: no such file or directory; is the program installed, in PATH and executable?",
        ),
        (
            named("no-such-program-here --port {port}"),
            "cannot be started: no such file or directory; `:command` is a single string that contains spaces, so it \
             is used as the program name; write each argument as a separate string, as in [\"program\" \"--port\" \"{port}\"]",
        ),
        (named(file.to_str().unwrap()), "cannot be started: permission denied"),
        (named(folder.path().to_str().unwrap()), "cannot be started: permission denied"),
        (
            options("exit=1"),
            "exited with code 1 before it was ready; run the command manually; last lines of its output:",
        ),
        (
            options("say=no_model exit=3"),
            "exited with code 3 before it was ready; run the command manually; last lines of its output:",
        ),
        (options("exit=0"), "exited with code 0 before it was ready"),
        (
            named("true"),
            "exited with code 0 before it was ready and wrote no output; run the command manually",
        ),
        (options("models=401"), "returned HTTP 401: set a valid API key in OPENAI_API_KEY"),
        (slow, "was not ready within 0.6 s ("),
        (ServerOptions { cwd: folder.path().join("gone"), ..options("") }, "working directory `"),
        (
            ServerOptions { key: Some(String::from("two words")), ..options("") },
            "the API key contains a space or another character that is not allowed in HTTP headers",
        ),
        (ServerOptions { port: Some(taken), ..options("") }, &format!("port {taken} is already in use by ")),
    ];
    for (options, expected) in rows {
        let command = options.command[0].clone();
        let worker = start(options);
        let NotReady { state, reason } = worker.ready().await.unwrap_err();
        let reason = reason.unwrap();
        assert_eq!(state, WorkerState::Failed, "{reason}");
        assert!(reason.contains(expected), "{expected}: {reason}");
        assert!(reason.contains(&format!("the server `{command}")), "{reason}");
        assert_eq!((worker.state(), worker.status().pid), (WorkerState::Failed, None));
        assert!(!reason.contains("?;"), "{reason}");
        if expected.contains("code 3") {
            assert!(reason.contains("\n  no model"), "{reason}");
        }
        let refused = worker.submit(SubmitRequest::prompt("hello")).unwrap_err().to_string();
        assert!(refused.contains("the worker is failed, not ready: the server"), "{refused}");
        stop(worker).await;
    }
}

#[tokio::test]
async fn a_server_exit_fails_the_stream_and_the_next_request_uses_a_new_server() {
    let worker = ready(options("")).await;
    let first = worker.status().pid;
    for (prompt, expected_text, status, lines) in [
        ("die-early", "", "was terminated by signal 9 (SIGKILL)", None),
        ("die", "so far", "was terminated by signal 9 (SIGKILL)", None),
        ("exit 42", "so far", "exited with code 42", Some("\n  out of memory")),
        ("call-and-die", "so far and on", "was terminated by signal 9 (SIGKILL)", None),
    ] {
        let ended = say(&worker, prompt).await;
        let (reason, _, detail, text) = ended.failed();
        assert_eq!((reason, text), (FailReason::ServerDied, expected_text), "{detail}");
        assert!(detail.contains(status) && detail.contains(lines.unwrap_or_default()), "{detail}");
        worker.ready().await.unwrap();
        assert_eq!(say(&worker, "hello").await.text(), "hi");
    }
    let status = worker.status();
    assert_eq!(status.restarts, 4);
    assert_ne!(status.pid, first);
    stop(worker).await;
}

#[tokio::test]
async fn a_request_that_runs_a_tool_continues_after_a_restart() {
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
    for by_hand in [false, true] {
        let worker = Worker::start_managed(config(), Arc::clone(&tools) as _, options("load=200"));
        worker.ready().await.unwrap();
        let id = worker.submit(SubmitRequest::prompt("look")).unwrap();
        called.notified().await;
        if by_hand {
            worker.restart();
        } else {
            signal(worker.status().pid.unwrap(), Signal::KILL);
        }
        reach(&worker, |status| status.state == WorkerState::Running).await;
        // The next turn begins while the server loads.
        go_on.notify_one();
        assert_eq!(finish(&worker, &id).await.text(), "so far seen", "{by_hand}");
        assert_eq!(worker.status().restarts, 1);
        stop(worker).await;
    }
}

#[tokio::test]
async fn a_manual_restart_fails_the_stream_even_if_it_is_canceled() {
    let worker = ready(options("")).await;
    let before = worker.status().pid.unwrap();
    let id = worker.submit(SubmitRequest::prompt("stall")).unwrap();
    wait_for_text(&worker, &id, 6).await;
    worker.restart();
    worker.cancel(&id);
    assert_eq!(worker.state(), WorkerState::Running);
    let ended = finish(&worker, &id).await;
    let (reason, _, detail, text) = ended.failed();
    assert_eq!((reason, text), (FailReason::WorkerRestarted, "so far"), "{detail}");
    assert_eq!(ended.outcome.state, deftool_chat::request::FinalState::Failed);
    worker.ready().await.unwrap();
    assert!(!runs(before));
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    stop(worker).await;
}

#[tokio::test]
async fn a_server_that_fails_repeatedly_is_not_restarted_until_a_manual_restart() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let worker = ready(options(&format!("count={} fails-from=2", count.display()))).await;
    let ended = say(&worker, "die").await;
    assert_eq!(ended.failed().0, FailReason::ServerDied);
    let reason = worker.ready().await.unwrap_err().reason.unwrap();
    assert!(reason.contains("giving up after 5 restarts within 10 min"), "{reason}");
    assert!(reason.contains("code 4") && reason.contains("\n  no model on start 6"), "{reason}");
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Failed, 5));
    std::fs::remove_file(&count).unwrap();
    worker.restart();
    worker.ready().await.unwrap_or_else(|not_ready| panic!("{not_ready}\n{:#?}", worker.status()));
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    stop(worker).await;
}

#[tokio::test]
async fn after_a_stall_the_server_is_restarted_only_if_its_slot_stays_busy() {
    for (slots, restarts) in [("slots=idle", 0), ("slots=busy", 1), ("", 0)] {
        let mut options = options(slots);
        options.limits.drain = Duration::from_millis(300);
        options.limits.probe_interval = Duration::from_millis(100);
        let mut config = with_timers(|timers| timers.stall = Duration::from_millis(200));
        config.slots = 2;
        let worker = Worker::start_managed(config, echo(), options);
        worker.ready().await.unwrap();
        let ended = say(&worker, "stall").await;
        let (reason, kind, _, text) = ended.failed();
        assert_eq!((reason, kind, text), (FailReason::StallTimeout, "stall_timeout", "so far"));
        if restarts > 0 {
            reach(&worker, |status| status.restarts == 1).await;
            worker.ready().await.unwrap();
        } else {
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        assert_eq!(worker.status().restarts, restarts, "{slots}");
        assert_eq!(say(&worker, "hello").await.text(), "hi");
        stop(worker).await;
    }
}

#[tokio::test]
async fn a_server_that_fails_probes_is_restarted_and_its_streams_fail() {
    let mut options = options("");
    options.limits.probe_interval = Duration::from_millis(100);
    options.limits.probe = Duration::from_millis(200);
    let worker = ready(options).await;
    let id = worker.submit(SubmitRequest::prompt("stall")).unwrap();
    wait_for_text(&worker, &id, 6).await;
    let pid = worker.status().pid.unwrap();
    signal(pid, Signal::STOP);
    let ended = finish(&worker, &id).await;
    let (reason, _, detail, text) = ended.failed();
    assert_eq!((reason, text), (FailReason::WorkerRestarted, "so far"));
    assert!(detail.contains("did not answer 3 consecutive probes and is restarted"), "{detail}");
    worker.ready().await.unwrap();
    assert!(!runs(pid));
    stop(worker).await;
}

/// A process in state T never answers. A process that only waits is not restarted.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_stopped_while_loading_is_restarted_and_a_sleeping_one_is_not() {
    for behaviour in ["load=3000", "load=3000 family"] {
        let mut options = options(behaviour);
        options.limits.probe = Duration::from_millis(200);
        let worker = start(options);
        reach(&worker, |status| status.pid.is_some()).await;
        let pid = worker.status().pid.unwrap();
        let group = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process_group(group, Signal::STOP).unwrap();
        let mut reasons = Vec::new();
        reach(&worker, |status| {
            reasons.extend(status.reason.clone());
            status.restarts == 1
        })
        .await;
        let expected = "was stopped by a signal (process state T)";
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{reasons:?}");
        worker.ready().await.unwrap();
        assert!(!runs(pid));
        assert_eq!(say(&worker, "hello").await.text(), "hi");
        stop(worker).await;
    }
    let mut options = options("load=1500");
    options.limits.probe = Duration::from_millis(100);
    let worker = ready(options).await;
    assert_eq!(worker.status().restarts, 0);
    stop(worker).await;
}

/// A server with one thread does not answer probes while it processes a prompt. CPU activity counts as progress; a
/// process that only exists does not.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn cpu_activity_counts_as_progress_before_the_first_token() {
    let mut options = options("");
    options.limits.probe_interval = Duration::from_millis(100);
    options.limits.probe = Duration::from_millis(200);
    let config = with_timers(|timers| {
        timers.first_token = Some(Duration::from_secs(2));
    });
    let worker = Worker::start_managed(config, echo(), options);
    worker.ready().await.unwrap();
    assert_eq!(say(&worker, "read 3000").await.text(), "read");
    let ended = say(&worker, "sleep 60000").await;
    let (reason, kind, _, text) = ended.failed();
    assert_eq!((reason, kind, text), (FailReason::StallTimeout, "first_token_timeout", ""));
    assert_eq!(worker.status().restarts, 0);
    stop(worker).await;
}

#[tokio::test]
async fn no_process_remains_after_forks_ignored_sigterm_or_a_lost_guard() {
    // Only a stubborn server needs the whole grace period.
    for (behaviour, grace_ms) in [("family", 3_600_000), ("stubborn family", 300)] {
        let mut options = options(behaviour);
        options.limits.grace = Duration::from_millis(grace_ms);
        let worker = ready(options).await;
        let pid = worker.status().pid.unwrap();
        reach(&worker, |status| status.recent_logs.iter().any(|line| line.starts_with("stray "))).await;
        let family = family(parent(pid));
        assert!(family.len() >= 5, "guard, server and its children: {family:?}");
        stop(worker).await;
        assert!(!family.iter().any(|id| runs(*id)), "{behaviour}: {family:?}");
    }
    let worker = ready(options("family")).await;
    let pid = worker.status().pid.unwrap();
    let guard = parent(pid);
    signal(guard, Signal::KILL);
    reach(&worker, |status| status.restarts == 1).await;
    wait_until_gone(&[guard, pid]);
    worker.ready().await.unwrap();
    stop(worker).await;
}

#[test]
fn no_process_remains_when_the_worker_or_its_runtime_is_dropped() {
    for drops_runtime in [false, true] {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let worker = runtime.block_on(ready(options("")));
        let pid = worker.status().pid.unwrap();
        let ids = [pid, parent(pid)];
        if drops_runtime {
            drop(runtime);
            wait_until_gone(&ids);
        } else {
            drop(worker);
            wait_until_gone(&ids);
        }
    }
}

#[tokio::test]
async fn output_is_bounded_and_secrets_are_redacted() {
    let mut options = options("flood say=the_key_is_sk-very-secret");
    options.key = Some(String::from("sk-very-secret"));
    let worker = ready(options).await;
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    let logs = worker.recent_logs(usize::MAX);
    assert!(logs.contains(&String::from("the key is [redacted]")), "{logs:?}");
    assert!(logs.iter().map(String::len).sum::<usize>() < 1 << 20);
    stop(worker).await;
}

#[tokio::test]
async fn a_plain_endpoint_is_ready_unless_it_rejects_the_probe() {
    for (status, expected) in
        [(200, true), (404, true), (302, true), (401, false), (403, false), (500, false), (503, false)]
    {
        let server = Server::pages(move |_| Answer::error(status, &[], "the server's words"));
        let worker = worker(&server, config());
        // Ready until it is probed.
        assert_eq!(worker.state(), WorkerState::Ready);
        let ready = worker.ready().await;
        assert_eq!(ready.is_ok(), expected, "{status}: {ready:?}");
        let state = if expected { WorkerState::Ready } else { WorkerState::Failed };
        assert_eq!(worker.state(), state);
        if let Err(error) = ready {
            let message = error.to_string();
            assert!(
                message.contains(&format!("/v1/models returned HTTP {status} the server's words")),
                "{message}"
            );
            assert!(matches!(
                worker.submit(SubmitRequest::prompt("hello")),
                Err(SubmitError::WorkerNotReady(_))
            ));
        }
    }
    let nobody = deftool_test_support::server::ClosedPort::reserve();
    let worker = Worker::start(config(), echo(), http(&nobody.endpoint(), None));
    assert!(worker.ready().await.unwrap_err().to_string().contains("nothing is listening"));
}
