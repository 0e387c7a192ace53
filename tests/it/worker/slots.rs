//! Slots and results.

use std::sync::atomic::Ordering;
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Event, FailReason, FinalState, RequestState};
use deftool_test_support::server::{Act, Answer, Server, call, delta, event};
use deftool_worker::{NotReady, ResultError, SubmitError, SubmitRequest, Worker, WorkerState};
use serde_json::json;

use super::harness::*;
use super::scripted::{Piece, Reply, Scripted};

fn prompt() -> SubmitRequest {
    SubmitRequest::prompt("hello")
}

#[tokio::test]
async fn a_request_without_a_free_slot_is_rejected_immediately() {
    let server = Server::script([Answer::silent()]);
    let mut config = config();
    config.slots = 2;
    let worker = worker(&server, config);
    let first = worker.submit(prompt()).unwrap();
    let second = worker.submit(prompt()).unwrap();
    assert_ne!(first, second);
    assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
    assert_eq!(worker.in_flight(), 2);
    worker.cancel(&first);
    finish(&worker, &first).await;
    worker.submit(prompt()).unwrap();
}

#[tokio::test]
async fn a_queue_is_served_in_order_and_bounded() {
    let server = Server::script([
        Answer::stream().delta("first").then(Act::Silence),
        Answer::text("second"),
        Answer::text("third"),
    ]);
    let mut config = config();
    config.queue = 3;
    let worker = worker(&server, config);
    let ids: Vec<_> = (0..4).map(|_| worker.submit(prompt()).unwrap()).collect();
    assert_eq!((worker.in_flight(), worker.queued()), (1, 3));
    assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
    wait_for_text(&worker, &ids[0], 5).await;
    // A waiting request can be canceled; it never reaches the server.
    worker.cancel(&ids[2]);
    let given_up = finish(&worker, &ids[2]).await;
    assert_eq!(given_up.outcome.state, FinalState::Canceled);
    assert_eq!((worker.in_flight(), worker.queued()), (1, 2), "only its queue position is free");
    worker.cancel(&ids[0]);
    assert_eq!(finish(&worker, &ids[1]).await.outcome.text, "second");
    assert_eq!(finish(&worker, &ids[3]).await.outcome.text, "third");
    assert_eq!((worker.in_flight(), worker.queued()), (0, 0));
}

#[tokio::test]
async fn a_request_that_ended_in_the_queue_can_be_replayed() {
    let server = Server::script([Answer::stream().delta("first").then(Act::Silence)]);
    let mut config = config();
    config.queue = 1;
    let worker = worker(&server, config.clone());
    worker.submit(prompt()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let submitted: super::replay::When = |event| matches!(event, Event::Submitted { .. });
    let ended = super::replay::record(&worker, &path, Some(submitted)).await;
    assert_eq!(ended.events.len(), 2, "submitted and finished, no turn: {:?}", ended.events);
    let again = super::replay::replay(&path, config, echo()).await;
    assert_eq!(again.events, ended.events);
}

#[tokio::test(start_paused = true)]
async fn the_time_in_the_queue_counts_for_the_total_limit() {
    let mut config = with_timers(|timers| timers.total = Some(Duration::from_secs(5)));
    config.queue = 1;
    let replies = [Reply::with([Piece::Wait(Duration::from_secs(60))])];
    let worker = Worker::start(config, echo(), Scripted::new(replies));
    let began = tokio::time::Instant::now();
    worker.submit(prompt()).unwrap();
    let id = worker.submit(prompt()).unwrap();
    let outcome = worker.wait(&id).await.unwrap();
    assert_eq!(outcome.kind.as_deref(), Some("total_timeout"));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

/// Runs many times on several threads, because an event that is published too early is observed only sometimes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_slot_is_free_when_the_end_is_published() {
    let replies = (0..400).map(|round| match round % 2 {
        0 => Reply::with([Piece::Bytes(String::from("data: [DONE]\n\n"))]),
        _ => Reply::with([Piece::Bytes(event(&json!({"error": "no"})))]),
    });
    // Every empty stream causes a probe, which the error answers.
    let worker = Worker::start(config(), echo(), Scripted::new(replies));
    for round in 0..200 {
        let id = worker.submit(prompt()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        if round % 3 == 2 {
            worker.cancel(&id);
        }
        let mut events = worker.events(&id, 0).unwrap();
        while !matches!(&*events.next().await.unwrap(), Event::Finished(_)) {}
        assert_eq!(worker.in_flight(), 0, "round {round}");
    }
}

#[tokio::test]
async fn results_are_kept_until_they_are_taken_or_too_many() {
    let server = Server::answering(|index, _| Answer::text(&format!("answer {index}")));
    let mut config = config();
    config.keep_results = 2;
    let worker = worker(&server, config);
    assert_eq!(worker.result("req_unknown"), Err(ResultError::Unknown));
    assert!(!worker.cancel("req_unknown"));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = worker.submit(prompt()).unwrap();
        assert_eq!(worker.result(&id), Err(ResultError::NotReady));
        assert_eq!(worker.take_result(&id), Err(ResultError::NotReady));
        finish(&worker, &id).await;
        ids.push(id);
    }
    assert_eq!(worker.result(&ids[0]), Err(ResultError::Unknown), "the oldest was dropped");
    assert_eq!(worker.result(&ids[1]).unwrap().text, "answer 1");
    assert_eq!(worker.result(&ids[1]).unwrap().text, "answer 1", "a result can be read again");
    assert_eq!(worker.take_result(&ids[1]).unwrap().text, "answer 1");
    assert_eq!(worker.result(&ids[1]), Err(ResultError::Unknown), "a taken result is removed");
    assert!(worker.request_status(&ids[1]).is_none());
    assert_eq!(worker.request_status(&ids[2]).unwrap().state, RequestState::Completed);
}

#[tokio::test]
async fn events_can_be_read_from_any_offset_during_and_after_the_request() {
    let server = Server::script([Answer::stream().delta("one").wait_ms(30).delta("two").done().end()]);
    let worker = worker(&server, config());
    let id = worker.submit(prompt()).unwrap();
    let offsets = 0..8;
    let readers: Vec<_> = offsets
        .clone()
        .map(|offset| {
            let mut stream = worker.events(&id, offset).unwrap();
            tokio::spawn(async move {
                let mut events = Vec::new();
                while let Some(event) = stream.next().await {
                    events.push((*event).clone());
                }
                events
            })
        })
        .collect();
    let whole = finish(&worker, &id).await.events;
    for (offset, reader) in offsets.zip(readers) {
        assert_eq!(reader.await.unwrap(), whole.get(offset..).unwrap_or_default(), "from {offset}");
    }
}

/// The last event may be published between two checks of a reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_reader_misses_the_last_event() {
    let reply = || Reply::with([Piece::Bytes(event(&delta("x")) + "data: [DONE]\n\n")]);
    let worker = Worker::start(config(), echo(), Scripted::new((0..300).map(|_| reply())));
    for _ in 0..300 {
        let id = worker.submit(prompt()).unwrap();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let mut stream = worker.events(&id, 0).unwrap();
                tokio::spawn(async move {
                    let mut last = None;
                    while let Some(event) = stream.next().await {
                        last = Some(event);
                    }
                    last
                })
            })
            .collect();
        for reader in readers {
            let last = reader.await.unwrap().unwrap();
            assert!(matches!(&*last, Event::Finished(_)), "{last:?}");
        }
    }
}

#[tokio::test]
async fn a_cancel_in_the_stream_disconnects_immediately_and_keeps_the_text() {
    for api in Api::ALL {
        let server = Server::script([Answer::begun(api, &[delta("so far")]).then(Act::Silence)]);
        let worker = worker(&server, over(api));
        let id = worker.submit(prompt()).unwrap();
        wait_for_text(&worker, &id, 6).await;
        assert!(worker.cancel(&id));
        let ended = finish(&worker, &id).await;
        let (reason, _, _, text) = ended.failed();
        assert_eq!((reason, text), (FailReason::Canceled, "so far"));
        assert_eq!(ended.outcome.state, FinalState::Canceled);
        assert_eq!(worker.in_flight(), 0);
        // The server is silent and the worker lives, so only the cancel can disconnect.
        tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
    }
}

#[tokio::test]
async fn a_cancel_before_the_headers_and_between_attempts_ends_the_request() {
    let server = Server::script([Answer::error(503, &[("retry-after", "30")], "loading"), Answer::silent()]);
    let worker = worker(&server, config());
    let id = worker.submit(prompt()).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    while !matches!(&*events.next().await.unwrap(), Event::Retry { delay_ms: 30_000, .. }) {}
    worker.cancel(&id);
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Canceled);

    let id = worker.submit(prompt()).unwrap();
    let server = tokio::task::spawn_blocking(move || {
        server.wait_for_posts(2);
        server
    });
    let server = server.await.unwrap();
    worker.cancel(&id);
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Canceled);
    tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
}

#[tokio::test]
async fn a_cancel_while_a_tool_runs_drops_the_tools_future() {
    let server = Server::script([Answer::calls(&[("look", "{}")])]);
    let (toolbox, dropped) = endless();
    let worker = Worker::start(config(), toolbox, http(&server.endpoint(), None));
    let id = worker.submit(prompt()).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    while !matches!(&*events.next().await.unwrap(), Event::ToolStarted { .. }) {}
    let status = worker.request_status(&id).unwrap();
    assert_eq!((status.state, status.running_tool.as_deref()), (RequestState::ToolRunning, Some("look")));
    worker.cancel(&id);
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Canceled);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_first_end_wins() {
    let server = Server::script([Answer::text("whole")]);
    let worker = worker(&server, config());
    let id = worker.submit(prompt()).unwrap();
    let ended = finish(&worker, &id).await;
    worker.cancel(&id);
    worker.stop();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(worker.result(&id).unwrap(), ended.outcome);
    assert_eq!(finish(&worker, &id).await.events, ended.events);
}

#[tokio::test]
async fn a_stop_cancels_requests_keeps_results_and_rejects_new_requests() {
    let server = Server::script([Answer::text("kept"), Answer::silent()]);
    let mut config = config();
    config.slots = 2;
    let worker = worker(&server, config);
    assert_eq!(worker.state(), WorkerState::Ready);
    let kept = worker.submit(prompt()).unwrap();
    finish(&worker, &kept).await;
    let running = worker.submit(prompt()).unwrap();
    worker.stop();
    assert_eq!(finish(&worker, &running).await.outcome.state, FinalState::Canceled);
    assert_eq!(worker.state(), WorkerState::Stopped);
    let refused = worker.submit(prompt());
    assert!(matches!(
        refused,
        Err(SubmitError::WorkerNotReady(NotReady { state: WorkerState::Stopped, .. }))
    ));
    assert_eq!(worker.in_flight(), 0);
    assert_eq!(worker.result(&kept).unwrap().text, "kept");
}

/// A panic in deftool or in an embedding program fails the request, but the text is kept and the slot is freed.
#[tokio::test]
async fn a_driver_that_panics_keeps_the_text_and_frees_the_slot() {
    let chunks = [
        delta("so far"),
        call(0, "done", "{}"),
        call(1, "look", "{}"),
        deftool_test_support::server::finish("stop"),
    ];
    let first = chunks.iter().map(event).collect::<String>() + "data: [DONE]\n\n";
    let second = Piece::Bytes(event(&delta(" and on")));
    let replies = [Reply::with([Piece::Bytes(first)]), Reply::with([second, Piece::Panic])];
    let worker = Worker::start(config(), echo(), Scripted::new(replies));
    let ended = ask(&worker).await;
    let (reason, kind, detail, text) = ended.failed();
    assert_eq!((reason, kind, text), (FailReason::UnknownError, "internal", "so far and on"));
    assert!(detail.ends_with("this is a bug in deftool: it panicked: a bug of the transport"), "{detail}");
    assert_eq!((ended.outcome.signals.len(), ended.outcome.tool_iterations), (1, 1));
    assert_eq!(worker.in_flight(), 0);
}
