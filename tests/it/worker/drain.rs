//! Draining slots: slots of a server that still process a canceled request are not used until they are idle, for a
//! limited time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::Capabilities;
use deftool_chat::Dialect;
use deftool_record::{Recorder, Recording, Redaction};
use deftool_test_support::server::{Act, Answer, Server, delta, event, finish as end};
use deftool_worker::{
    EndpointOptions, Evidence, Page, PageResponse, ReplayTransport, SubmitError, SubmitRequest, Transport,
    Worker, WorkerConfig, find_endpoint,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::harness::*;
use super::scripted::{Piece, Reply, Scripted};

fn llama(slots: usize) -> WorkerConfig {
    let mut config = config();
    config.server = Capabilities::of(Dialect::named("llama-cpp"));
    config.slots = slots;
    config
}

fn prompt() -> SubmitRequest {
    SubmitRequest::prompt("hello")
}

/// Returns the JSON of `/slots`.
fn slots(busy: &[bool]) -> Value {
    busy.iter().enumerate().map(|(id, busy)| json!({"id": id, "is_processing": busy})).collect()
}

fn text(text: &str) -> Piece {
    Piece::Bytes(event(&delta(text)))
}

fn whole() -> Reply {
    Reply::with([text("fine"), Piece::Bytes(event(&end("stop")) + "data: [DONE]\n\n"), Piece::End])
}

/// A progress event, before the first token.
fn progress() -> Piece {
    let chunk = json!({"choices": [], "prompt_progress": {"processed": 5, "total": 100}});
    Piece::Bytes(event(&chunk))
}

/// A server with slots that the test sets to busy or idle.
#[derive(Clone, Default)]
struct Slots {
    busy: Arc<Mutex<Vec<bool>>>,
    requests: Arc<AtomicUsize>,
}

impl Slots {
    fn set(&self, busy: &[bool]) {
        *self.busy.lock().unwrap() = busy.to_vec();
    }

    fn transport(&self, replies: impl IntoIterator<Item = Reply>) -> Arc<dyn Transport> {
        let own = self.clone();
        Scripted::with_pages(replies, move |page| {
            assert_eq!(page, Page::Slots);
            own.requests.fetch_add(1, Ordering::SeqCst);
            PageResponse::Received(200, slots(&own.busy.lock().unwrap()))
        })
    }
}

/// No head, no byte after the head, and only progress.
fn replies_without_a_token() -> [Reply; 3] {
    [Reply::silent(), Reply::with([Piece::Silence]), Reply::with([progress(), Piece::Silence])]
}

/// Submits a request, waits a second and cancels it. Returns its id.
async fn begin_and_cancel(worker: &Worker) -> String {
    let id = worker.submit(prompt()).unwrap();
    sleep(Duration::from_secs(1)).await;
    worker.cancel(&id);
    finish(worker, &id).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_a_request_canceled_during_the_prompt_drains_until_it_is_idle() {
    for given_up in replies_without_a_token() {
        let server = Slots::default();
        server.set(&[true]);
        let worker = Worker::start(llama(1), echo(), server.transport([given_up, whole()]));
        begin_and_cancel(&worker).await;
        assert_eq!((worker.in_flight(), worker.draining()), (0, 1));
        assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
        sleep(Duration::from_secs(25)).await;
        assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
        server.set(&[false]);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(worker.draining(), 0);
        assert_eq!(ask(&worker).await.text(), "fine");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_drains_for_at_most_a_minute() {
    let server = Slots::default();
    server.set(&[true]);
    let worker = Worker::start(llama(1), echo(), server.transport([Reply::silent(), whole()]));
    begin_and_cancel(&worker).await;
    let began = Instant::now();
    while worker.draining() > 0 {
        sleep(Duration::from_millis(100)).await;
    }
    assert!((59..=61).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(server.requests.load(Ordering::SeqCst) < 70, "at most about one request per second");
    assert_eq!(ask(&worker).await.text(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_a_server_without_slots_page_drains_for_five_seconds() {
    let missing = |_: Page| {
        PageResponse::Received(
            501,
            json!({"error": {"message": "This server does not support slots endpoint."}}),
        )
    };
    let odd = |_: Page| PageResponse::Received(200, json!("slots?"));
    let transports: [Arc<dyn Transport>; 3] = [
        Scripted::new([Reply::silent()]),
        Scripted::with_pages([Reply::silent()], missing),
        Scripted::with_pages([Reply::silent()], odd),
    ];
    for transport in transports {
        let worker = Worker::start(llama(1), echo(), transport);
        begin_and_cancel(&worker).await;
        assert_eq!(worker.draining(), 1);
        sleep(Duration::from_secs(4)).await;
        assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
        sleep(Duration::from_secs(2)).await;
        assert_eq!(worker.draining(), 0);
    }
    // The missing page was already detected.
    let mut config = llama(1);
    config.server.slots_page = Some(false);
    let no_request = |_: Page| panic!("the page is known to be missing");
    let worker = Worker::start(config, echo(), Scripted::with_pages([Reply::silent()], no_request));
    begin_and_cancel(&worker).await;
    assert_eq!(worker.draining(), 1);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(worker.draining(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_counts_as_busy() {
    let worker =
        Worker::start(llama(1), echo(), Scripted::with_pages([Reply::silent()], |_| PageResponse::NoAnswer));
    begin_and_cancel(&worker).await;
    sleep(Duration::from_secs(55)).await;
    assert_eq!(worker.draining(), 1);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(worker.draining(), 0);
}

/// However the request ends, the server may still process the prompt.
#[tokio::test(start_paused = true)]
async fn only_ends_before_the_first_token_drain() {
    let cut = || Reply::with([text("so far"), Piece::Silence]);
    let cases: Vec<(&str, Reply, Dialect, usize)> = vec![
        ("headers", Reply::silent(), Dialect::named("llama-cpp"), 1),
        ("stall", Reply::with([Piece::Silence]), Dialect::named("llama-cpp"), 1),
        ("first token", Reply::with([progress(), Piece::Silence]), Dialect::named("llama-cpp"), 1),
        ("after a token", cut(), Dialect::named("llama-cpp"), 0),
        ("whole", whole(), Dialect::named("llama-cpp"), 0),
        ("refused", Reply::error(400, "no"), Dialect::named("llama-cpp"), 0),
        ("ended by the server", Reply::with([progress(), Piece::End]), Dialect::named("llama-cpp"), 0),
        ("a server that aborts", Reply::silent(), Dialect::default(), 0),
        ("a server that aborts", Reply::with([Piece::Silence]), Dialect::named("vllm"), 0),
    ];
    for (name, reply, dialect, expected) in cases {
        let server = Slots::default();
        server.set(&[true]);
        let mut config = llama(1);
        config.server = Capabilities::of(dialect);
        config.timers.headers = Some(Duration::from_secs(10));
        config.timers.stall = Duration::from_secs(10);
        // The second reply answers the probe after the empty one.
        let worker = Worker::start(config, echo(), server.transport([reply, Reply::error(400, "no")]));
        ask_for_hours(&worker).await;
        assert_eq!((worker.in_flight(), worker.draining()), (0, expected), "{name}");
        // Draining always ends.
        sleep(Duration::from_secs(90)).await;
        assert_eq!(worker.draining(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_panic_during_the_prompt_drains_too() {
    let server = Slots::default();
    server.set(&[true]);
    let worker = Worker::start(llama(1), echo(), server.transport([Reply::with([progress(), Piece::Panic])]));
    assert_eq!(ask(&worker).await.failed().1, "internal");
    assert_eq!((worker.in_flight(), worker.draining()), (0, 1));
    server.set(&[false]);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(worker.draining(), 0);
}

#[tokio::test(start_paused = true)]
async fn draining_slots_are_released_one_by_one() {
    let server = Slots::default();
    server.set(&[true, true]);
    let replies = [Reply::silent(), Reply::silent(), Reply::silent()];
    let worker = Worker::start(llama(2), echo(), server.transport(replies));
    begin_and_cancel(&worker).await;
    begin_and_cancel(&worker).await;
    assert_eq!(worker.draining(), 2);
    server.set(&[true, false]);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(worker.draining(), 1);
    // The next request takes the idle slot, so the other slot still drains.
    let id = worker.submit(prompt()).unwrap();
    server.set(&[true, true]);
    sleep(Duration::from_secs(3)).await;
    assert_eq!((worker.in_flight(), worker.draining()), (1, 1));
    assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
    server.set(&[false, true]);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(worker.draining(), 0);
    worker.cancel(&id);
}

/// A server with spare slots accepts the next request immediately. With fewer slots than the worker, requests wait in
/// the server.
#[tokio::test(start_paused = true)]
async fn a_slot_drains_only_if_the_next_request_would_wait() {
    for (own, busy, draining) in [
        (1, &[true, false, false, false][..], 0),
        (1, &[true, true], 1),
        (2, &[true, true, false], 1),
        (2, &[true, false, false], 0),
        (4, &[false], 0),
        (4, &[true], 1),
    ] {
        let server = Slots::default();
        server.set(busy);
        let worker = Worker::start(llama(own), echo(), server.transport([Reply::silent()]));
        begin_and_cancel(&worker).await;
        sleep(Duration::from_secs(3)).await;
        assert_eq!(worker.draining(), draining, "{own} of {busy:?}");
    }
}

/// The next request would wait behind the running one and the canceled one.
#[tokio::test(start_paused = true)]
async fn a_slot_drains_while_a_request_uses_the_only_slot_of_the_server() {
    let server = Slots::default();
    server.set(&[true]);
    let worker = Worker::start(llama(3), echo(), server.transport([Reply::silent(), Reply::silent()]));
    worker.submit(prompt()).unwrap();
    begin_and_cancel(&worker).await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!((worker.in_flight(), worker.draining()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_worker_does_not_drain() {
    let server = Slots::default();
    server.set(&[true]);
    let worker = Worker::start(llama(1), echo(), server.transport([Reply::silent()]));
    let id = begin_and_cancel(&worker).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(worker.draining(), 1);
    worker.stop();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(worker.draining(), 0);
    assert!(worker.result(&id).is_ok());
}

/// `drained` returns, and the next request in the queue gets the slot.
#[tokio::test(start_paused = true)]
async fn a_released_slot_goes_to_the_next_request_in_the_queue() {
    let server = Slots::default();
    server.set(&[true]);
    let config = WorkerConfig { queue: 1, ..llama(1) };
    let worker = Worker::start(config, echo(), server.transport([Reply::silent(), whole()]));
    begin_and_cancel(&worker).await;
    let queued = worker.submit(prompt()).unwrap();
    let waiting = tokio::spawn({
        let worker = worker.clone();
        async move { worker.drained().await }
    });
    sleep(Duration::from_secs(5)).await;
    assert_eq!((worker.in_flight(), worker.queued(), worker.draining()), (0, 1, 1));
    assert!(!waiting.is_finished());
    server.set(&[false]);
    tokio::time::timeout(Duration::from_secs(2), waiting).await.expect("`drained` returns").unwrap();
    assert_eq!(finish(&worker, &queued).await.text(), "fine");
}

/// A request in the queue waits for the drain, also if it was there before the slot was returned.
#[tokio::test(start_paused = true)]
async fn a_waiting_request_does_not_get_a_slot_that_drains() {
    for given_up in replies_without_a_token() {
        let server = Slots::default();
        server.set(&[true]);
        let config = WorkerConfig { queue: 1, ..llama(1) };
        let worker = Worker::start(config, echo(), server.transport([given_up, whole()]));
        let first = worker.submit(prompt()).unwrap();
        let queued = worker.submit(prompt()).unwrap();
        sleep(Duration::from_secs(1)).await;
        worker.cancel(&first);
        finish(&worker, &first).await;
        assert_eq!((worker.in_flight(), worker.queued(), worker.draining()), (0, 1, 1));
        server.set(&[false]);
        assert_eq!(finish(&worker, &queued).await.text(), "fine");
    }
}

/// A replay has no server.
#[tokio::test(start_paused = true)]
async fn a_replay_does_not_drain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Slots::default();
    let worker =
        Worker::start(llama(1), echo(), server.transport([Reply::with([progress(), Piece::Silence])]));
    let recorder = Arc::new(Recorder::create(&path, Redaction::default()).unwrap());
    let request = SubmitRequest { recorder: Some(recorder.clone()), ..prompt() };
    let id = worker.submit(request).unwrap();
    sleep(Duration::from_secs(1)).await;
    worker.cancel(&id);
    finish(&worker, &id).await;
    recorder.close().unwrap();
    let recording = Recording::read(&path).unwrap();
    let replay = Worker::replay(llama(1), echo(), Arc::new(ReplayTransport::new(recording, false)));
    let id = replay.submit(SubmitRequest::default()).unwrap();
    finish(&replay, &id).await;
    assert_eq!((replay.in_flight(), replay.draining()), (0, 0));
}

/// Over a socket: the page is next to the API and is requested with the key.
#[tokio::test]
async fn the_slots_page_is_requested_with_the_key() {
    let busy = Arc::new(Mutex::new(true));
    let shown = Arc::clone(&busy);
    let server = Server::answering_all(move |_, request| match request.line.as_str() {
        "GET /slots" => {
            assert_eq!(request.header("authorization"), Some("Bearer sk-right"));
            Answer::whole(200, &[], &slots(&[*shown.lock().unwrap()]).to_string())
        }
        _ => Answer::stream().piece(": ping\n\n").then(Act::Silence),
    });
    let worker = Worker::start(llama(1), echo(), http(&server.endpoint(), Some("sk-right")));
    let id = worker.submit(prompt()).unwrap();
    let server = tokio::task::spawn_blocking(move || {
        server.wait_for_posts(1);
        server
    });
    let server = server.await.unwrap();
    worker.cancel(&id);
    finish(&worker, &id).await;
    assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
    *busy.lock().unwrap() = false;
    let waited = Instant::now();
    while worker.draining() > 0 {
        assert!(waited.elapsed() < deftool_test_support::HANG_LIMIT, "the idle slot is not detected");
        sleep(Duration::from_millis(10)).await;
    }
    worker.submit(prompt()).unwrap();
    drop(server);
}

/// The real server with one slot processes a canceled prompt to its end, and the worker waits for that.
#[tokio::test]
async fn a_slot_of_the_real_server_drains() {
    let server = tokio::task::spawn_blocking(|| crate::real::Server::start_with(&["--slots", "1"]));
    let Some(server) = server.await.unwrap() else { return };
    let options = EndpointOptions { endpoint: Some(server.endpoint.clone()), ..EndpointOptions::default() };
    let endpoint = find_endpoint(options).await.unwrap();
    assert_eq!(endpoint.found.evidence, Evidence::ServerHeader);
    assert_eq!(endpoint.found.server.slots_page, Some(true));
    let mut config = config().at(&endpoint);
    config.run.params = json!({"temperature": 0, "max_tokens": 4}).as_object().unwrap().clone();
    let worker = Worker::start(config, echo(), http(&endpoint.base, None));
    let long = (0..200).map(|number: u32| number.to_string()).collect::<Vec<_>>().join(" ");
    let id = worker.submit(SubmitRequest::prompt(long)).unwrap();
    // The server has started with the prompt and is far from done.
    sleep(Duration::from_millis(200)).await;
    worker.cancel(&id);
    let ended = finish(&worker, &id).await;
    assert_eq!((worker.in_flight(), worker.draining()), (0, 1), "{:?}", ended.outcome);
    assert_eq!(worker.submit(prompt()), Err(SubmitError::NoSlotAvailable));
    let waited = Instant::now();
    tokio::time::timeout(Duration::from_secs(90), worker.drained()).await.expect("draining ends");
    assert_eq!(worker.draining(), 0);
    let took = waited.elapsed();
    let id = worker.submit(prompt()).unwrap();
    let outcome = worker.wait(&id).await.unwrap();
    assert!(outcome.fail_reason.is_none(), "{outcome:?} after {took:?}");
}
