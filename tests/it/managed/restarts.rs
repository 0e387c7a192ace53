//! When a managed server is restarted, and manual restarts.

use std::time::Duration;

use deftool_chat::request::FailReason;
use deftool_test_support::server::{Answer, Server};
use deftool_worker::{ServerOptions, SubmitRequest, Worker, WorkerState};
use rustix::process::Signal;

use super::fake::{options, parent, signal, wait_until_gone};
use super::{reach, ready, say, start, stop};
use crate::worker::harness::*;

/// Starts a worker with a short token timeout, and a server with `drain` as the time limit of a busy slot after a
/// stall.
async fn stalling(mut options: ServerOptions, drain: Duration) -> Worker {
    options.limits.drain = drain;
    let config = with_timers(|timers| timers.stall = Duration::from_millis(150));
    let worker = Worker::start_managed(config, echo(), options);
    worker.ready().await.unwrap();
    worker
}

/// Returns the host and port of an endpoint.
fn address_of(endpoint: &str) -> String {
    endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

#[tokio::test]
async fn a_failed_start_reports_the_last_answer_and_is_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let mut failing = options("models=500");
    failing.limits.start = Duration::from_secs(4);
    let mut leaking = options("models=500 leak=HF_TOKEN");
    leaking.env.push((String::from("HF_TOKEN"), String::from("hf_very_secret")));
    leaking.limits.start = Duration::from_secs(4);
    let rows = [
        (options(&format!("count={} exit=1", count.display())), "exited with code 1 before it was ready"),
        (
            ServerOptions { key_variable: String::from("MY_KEY"), ..options("models=403") },
            "returned HTTP 403: set a valid API key in MY_KEY",
        ),
        (failing, "/v1/models returned HTTP 500 (no))"),
        (leaking, "/v1/models returned HTTP 500 ([redacted]))"),
    ];
    let checks = rows.map(|(options, expected)| async move {
        let worker = start(options);
        let reason = worker.ready().await.unwrap_err().reason.unwrap();
        assert!(reason.contains(expected), "{expected}: {reason}");
        stop(worker).await;
    });
    futures_util::future::join_all(checks).await;
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "start\n", "the start is not retried");
}

/// Another process at the port may answer like the server.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_answer_of_an_older_process_at_the_port_is_ignored() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let command = ["sleep", "100"].map(String::from).to_vec();
    let mut options = ServerOptions { command, port: Some(address.port()), ..options("") };
    options.limits.start = Duration::from_secs(2);
    let worker = start(options);
    reach(&worker, |status| status.pid.is_some()).await;
    let _other =
        Server::answering_at(&address.to_string(), |_, _| Answer::whole(200, &[], r#"{"data": []}"#));
    let reason = worker.ready().await.unwrap_err().reason.unwrap();
    let expected = format!("(port {} is used by process {})", address.port(), std::process::id());
    assert!(reason.contains(&expected), "{reason}");
    stop(worker).await;
}

#[tokio::test]
async fn a_manual_restart_resets_the_restart_limit() {
    let mut options = options("");
    options.limits.max_restarts = 1;
    let worker = ready(options).await;
    assert_eq!(say(&worker, "die").await.failed().0, FailReason::ServerDied);
    worker.ready().await.unwrap();
    worker.restart();
    worker.ready().await.unwrap();
    assert_eq!(say(&worker, "die").await.failed().0, FailReason::ServerDied);
    worker.ready().await.unwrap();
    assert_eq!(worker.status().restarts, 3);
    stop(worker).await;
}

/// Like the first start: a server that fails before it is ready is not restarted.
#[tokio::test]
async fn a_failed_manual_restart_is_reported_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let worker = ready(options(&format!("count={} fails-from=2", count.display()))).await;
    worker.restart();
    let reason = worker.ready().await.unwrap_err().reason.unwrap();
    assert!(reason.contains("code 4 before it was ready"), "{reason}");
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Failed, 1));
    stop(worker).await;
}

/// A busy machine reports the exit of a server late. Until then, checks for the loss query of the broken stream find no
/// server; they are more frequent than regular checks, and do not count as missed probes.
#[tokio::test]
async fn checks_for_a_broken_stream_are_not_missed_probes() {
    let mut options = options("");
    options.limits.misses = 6;
    let worker = ready(options).await;
    let id = worker.submit(SubmitRequest::prompt("stall")).unwrap();
    wait_for_text(&worker, &id, 6).await;
    let status = worker.status();
    let (pid, guard) = (status.pid.unwrap(), parent(status.pid.unwrap()));
    signal(guard, Signal::STOP);
    signal(pid, Signal::KILL);
    let address = address_of(&status.endpoint.unwrap());
    // In place of the server: closes the connection of each check.
    let listener = loop {
        match tokio::net::TcpListener::bind(&address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let mut ended = std::pin::pin!(finish(&worker, &id));
    for _ in 0..7 {
        tokio::select! {
            accepted = listener.accept() => drop(accepted.unwrap()),
            ended = &mut ended => panic!("{:?}", ended.outcome),
        }
    }
    signal(guard, Signal::CONT);
    let ended = ended.await;
    let (reason, _, detail, text) = ended.failed();
    assert_eq!((reason, text), (FailReason::ServerDied, "so far"), "{detail}");
    stop(worker.clone()).await;
}

/// The exit of the server is not known yet: the connection is refused, and the request waits for the restart.
#[tokio::test]
async fn a_request_that_is_sent_just_after_the_server_died_waits_for_the_restart() {
    let mut options = options("");
    options.limits.misses = 1000;
    let worker = ready(options).await;
    let status = worker.status();
    let (pid, guard) = (status.pid.unwrap(), parent(status.pid.unwrap()));
    signal(guard, Signal::STOP);
    signal(pid, Signal::KILL);
    let address = address_of(&status.endpoint.unwrap());
    while std::net::TcpStream::connect(&address).is_ok() {}
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    // Longer than the delays of all retries.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    signal(guard, Signal::CONT);
    assert_eq!(finish(&worker, &id).await.text(), "hi");
    assert_eq!(worker.status().restarts, 1);
    stop(worker).await;
}

#[tokio::test]
async fn only_consecutive_failed_probes_count() {
    let mut options = options("moody");
    options.limits.probe_interval = Duration::from_millis(20);
    let worker = ready(options).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Ready, 0));
    stop(worker).await;
}

/// CPU activity excuses missed probes only while a request is open.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_busy_server_without_requests_that_fails_probes_is_restarted() {
    let mut options = options("");
    options.limits.probe_interval = Duration::from_millis(300);
    let worker = ready(options).await;
    assert_eq!(say(&worker, "spin").await.text(), "spinning");
    reach(&worker, |status| status.restarts == 1).await;
    worker.ready().await.unwrap();
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    stop(worker).await;
}

/// With two open streams, activity cannot be attributed to one of them.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn activity_does_not_extend_the_limits_of_two_streams() {
    let mut config = with_timers(|timers| {
        timers.first_token = Some(Duration::from_millis(500));
    });
    config.slots = 2;
    let worker = Worker::start_managed(config, echo(), options(""));
    worker.ready().await.unwrap();
    let reading = worker.submit(SubmitRequest::prompt("read 3000")).unwrap();
    // The other stream is still open when this stream times out.
    tokio::time::sleep(Duration::from_millis(250)).await;
    let mute = worker.submit(SubmitRequest::prompt("mute")).unwrap();
    assert_eq!(finish(&worker, &reading).await.failed().0, FailReason::StallTimeout);
    worker.cancel(&mute);
    finish(&worker, &mute).await;
    stop(worker).await;
}

#[tokio::test]
async fn each_stall_has_its_own_time_limit_for_the_slot() {
    let folder = tempfile::tempdir().unwrap();
    let slots = folder.path().join("slots");
    std::fs::write(&slots, "idle").unwrap();
    let mut options = options(&format!("slots={}", slots.display()));
    options.limits.probe_interval = Duration::from_millis(50);
    let worker = stalling(options, Duration::from_secs(2)).await;
    assert_eq!(say(&worker, "stall").await.failed().0, FailReason::StallTimeout);
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    std::fs::write(&slots, "busy").unwrap();
    assert_eq!(say(&worker, "stall").await.failed().0, FailReason::StallTimeout);
    tokio::time::sleep(Duration::from_millis(300)).await;
    std::fs::write(&slots, "idle").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Ready, 0));
    stop(worker).await;
}

#[tokio::test]
async fn further_stalls_do_not_extend_the_time_limit_of_a_busy_slot() {
    let worker = stalling(options("slots=busy"), Duration::from_millis(700)).await;
    for round in 0.. {
        assert!(round < 20, "the server is never restarted");
        // The restart may already be complete.
        if worker.state() != WorkerState::Ready || worker.status().restarts > 0 {
            break;
        }
        say(&worker, "stall").await;
        // No stream is open while the slot is checked.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    reach(&worker, |status| status.restarts > 0).await;
    stop(worker).await;
}

#[tokio::test]
async fn a_slot_that_stays_busy_after_a_headers_timeout_is_freed_by_a_restart() {
    let mut options = options("slots=busy");
    options.limits.drain = Duration::from_millis(300);
    let config = with_timers(|timers| timers.headers = Some(Duration::from_millis(300)));
    let worker = Worker::start_managed(config, echo(), options);
    worker.ready().await.unwrap();
    assert_eq!(say(&worker, "hold").await.failed().0, FailReason::HeadersTimeout);
    reach(&worker, |status| status.restarts == 1).await;
    stop(worker).await;
}

#[tokio::test]
async fn a_stop_takes_effect_immediately() {
    let worker = ready(options("")).await;
    worker.stop();
    assert_eq!(worker.state(), WorkerState::Stopped);
    assert!(worker.submit(SubmitRequest::prompt("hello")).is_err());
    worker.stopped().await;
}

/// A stopped process handles signals other than SIGKILL only after SIGCONT.
#[tokio::test]
async fn a_stopped_server_ends_within_its_grace_period() {
    let mut options = options("");
    options.limits.grace = Duration::from_secs(3600);
    let worker = ready(options).await;
    signal(worker.status().pid.unwrap(), Signal::STOP);
    stop(worker).await;
}

/// The worker continues the guard.
#[tokio::test]
async fn a_stopped_guard_ends_its_server() {
    let mut options = options("family");
    options.limits.grace = Duration::from_millis(100);
    let worker = ready(options).await;
    let logged = |worker: &Worker, word: &str| -> Option<u32> {
        let logs = worker.recent_logs(usize::MAX);
        logs.iter().find_map(|line| line.strip_prefix(word)?.split(' ').next()?.parse().ok())
    };
    reach(&worker, |_| logged(&worker, "child ").and(logged(&worker, "stray ")).is_some()).await;
    let (child, stray) = (logged(&worker, "child ").unwrap(), logged(&worker, "stray ").unwrap());
    let pid = worker.status().pid.unwrap();
    let guard = parent(pid);
    signal(guard, Signal::STOP);
    stop(worker).await;
    wait_until_gone(&[pid, child, stray, guard]);
}
