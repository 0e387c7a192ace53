//! When a managed server is restarted and when it is left alone, what a person's restart forgets, and what is told meanwhile.

use std::time::{Duration, Instant};

use deftool::request::FailReason;
use deftool::worker::{ServerOptions, SubmitRequest, Worker, WorkerState};
use rustix::process::Signal;

use super::fake::{options, parent, signal, wait_until_gone};
use super::{reach, ready, say, start, stop};
use crate::support::server::{Answer, Server};
use crate::worker::bench::*;

/// A server whose slot may stay busy for `drain` after a stall, and a worker whose streams stall soon.
async fn stalling(mut options: ServerOptions, drain: Duration) -> Worker {
    options.limits.drain = drain;
    let config = with_timers(|timers| timers.token_stall = Duration::from_millis(150));
    let worker = Worker::start_managed(config, echo(), options);
    worker.ready().await.unwrap();
    worker
}

#[tokio::test]
async fn why_it_does_not_start_is_what_it_answered_last_and_once_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let mut failing = options("models=500");
    failing.limits.start = Duration::from_secs(4);
    let mut leaking = options("models=500 leak=HF_TOKEN");
    leaking.env.push((String::from("HF_TOKEN"), String::from("hf_very_secret")));
    leaking.limits.start = Duration::from_secs(4);
    let rows = [
        (options(&format!("count={} exit=1", count.display())), "ended with exit code 1 before it was ready"),
        (options("models=403"), "answers 403: it wants an API key"),
        (failing, "/v1/models answers 500 (no))"),
        (leaking, "/v1/models answers 500 ([redacted]))"),
    ];
    let checks = rows.map(|(options, expected)| async move {
        let worker = start(options);
        let reason = worker.ready().await.unwrap_err().reason.unwrap();
        assert!(reason.contains(expected), "{expected}: {reason}");
        stop(worker).await;
    });
    futures_util::future::join_all(checks).await;
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "start\n", "it is not tried again");
}

/// Who has its port answers as well as it would.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_answer_of_a_process_that_was_there_before_is_not_the_servers() {
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
    let told = format!("(an answer of process {}, which has port {})", std::process::id(), address.port());
    assert!(reason.contains(&told), "{reason}");
    stop(worker).await;
}

#[tokio::test]
async fn a_restart_by_hand_forgets_the_losses_before_it() {
    let mut options = options("");
    options.limits.restarts.max_restarts = 1;
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

/// As the first start: what fails before it was ready would fail again.
#[tokio::test]
async fn a_restart_by_hand_that_fails_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let worker = ready(options(&format!("count={} fails-from=2", count.display()))).await;
    worker.restart();
    let reason = worker.ready().await.unwrap_err().reason.unwrap();
    assert!(reason.contains("exit code 4 before it was ready"), "{reason}");
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Failed, 1));
    stop(worker).await;
}

#[tokio::test]
async fn probes_that_fail_now_and_then_do_not_add_up() {
    let mut options = options("moody");
    options.limits.look = Duration::from_millis(20);
    let worker = ready(options).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((worker.state(), worker.status().restarts), (WorkerState::Ready, 0));
    stop(worker).await;
}

/// Work explains missed probes only while it can be for a request.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_computes_for_nobody_and_answers_no_probe_is_restarted() {
    let mut options = options("");
    options.limits.look = Duration::from_millis(300);
    let worker = ready(options).await;
    assert_eq!(say(&worker, "spin").await.text(), "spinning");
    reach(&worker, |status| status.restarts == 1).await;
    worker.ready().await.unwrap();
    assert_eq!(say(&worker, "hello").await.text(), "hi");
    stop(worker).await;
}

/// Whose work it is cannot be told where two streams are open.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn work_for_one_stream_excuses_no_silence_of_two() {
    let mut config = with_timers(|timers| {
        timers.stall = Duration::from_millis(500);
        timers.first_token = Duration::from_millis(500);
    });
    config.slots = 2;
    let worker = Worker::start_managed(config, echo(), options(""));
    worker.ready().await.unwrap();
    let reading = worker.submit(SubmitRequest::prompt("read 3000")).unwrap();
    // The other is still open when this one's time is over.
    tokio::time::sleep(Duration::from_millis(250)).await;
    let mute = worker.submit(SubmitRequest::prompt("mute")).unwrap();
    assert_eq!(finish(&worker, &reading).await.failed().0, FailReason::StallTimeout);
    worker.cancel(&mute);
    finish(&worker, &mute).await;
    stop(worker).await;
}

#[tokio::test]
async fn a_slot_that_was_idle_after_one_stall_has_all_its_time_after_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let slots = folder.path().join("slots");
    std::fs::write(&slots, "idle").unwrap();
    let mut options = options(&format!("slots={}", slots.display()));
    options.limits.look = Duration::from_millis(50);
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
async fn a_slot_that_stays_busy_is_not_excused_by_further_stalls() {
    let worker = stalling(options("slots=busy"), Duration::from_millis(700)).await;
    for round in 0.. {
        assert!(round < 20, "it is never restarted");
        // A restart may be over by now.
        if worker.state() != WorkerState::Ready || worker.status().restarts > 0 {
            break;
        }
        say(&worker, "stall").await;
        // No stream is open while the slot is looked at.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    reach(&worker, |status| status.restarts > 0).await;
    stop(worker).await;
}

#[tokio::test]
async fn a_slot_that_is_busy_with_a_request_that_got_no_headers_is_freed_by_a_restart() {
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
async fn a_stop_counts_from_the_moment_it_was_said() {
    let worker = ready(options("")).await;
    worker.stop();
    assert_eq!(worker.state(), WorkerState::Stopped);
    assert!(worker.submit(SubmitRequest::prompt("hello")).is_err());
    worker.gone().await;
}

/// A signal other than SIGKILL reaches a process that is stopped only when it goes on.
#[tokio::test]
async fn a_server_that_is_stopped_ends_in_its_grace() {
    let mut options = options("");
    options.limits.grace = Duration::from_secs(10);
    let worker = ready(options).await;
    signal(worker.status().pid.unwrap(), Signal::STOP);
    let begun = Instant::now();
    stop(worker).await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// Its group is ended for it; what left the group is beyond reach then.
#[tokio::test]
async fn nothing_is_left_of_the_group_of_a_server_whose_guard_is_stuck() {
    let mut options = options("family");
    options.limits.grace = Duration::from_millis(100);
    let worker = ready(options).await;
    let said = |worker: &Worker, word: &str| -> Option<u32> {
        let logs = worker.recent_logs(usize::MAX);
        logs.iter().find_map(|line| line.strip_prefix(word)?.split(' ').next()?.parse().ok())
    };
    reach(&worker, |_| said(&worker, "child ").and(said(&worker, "stray ")).is_some()).await;
    let (child, stray) = (said(&worker, "child ").unwrap(), said(&worker, "stray ").unwrap());
    let pid = worker.status().pid.unwrap();
    let guard = parent(pid);
    signal(guard, Signal::STOP);
    stop(worker).await;
    signal(stray, Signal::KILL);
    wait_until_gone(&[pid, child, guard]);
}
