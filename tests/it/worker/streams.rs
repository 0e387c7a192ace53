//! Requests with their events, and waiting for the end of a request.

use std::time::Duration;

use deftool_chat::request::{Event, FinalState};
use deftool_test_support::server::{Act, Answer, Server, delta, event};
use deftool_worker::{ResultError, SubmitRequest, Worker};

use super::harness::*;
use super::scripted::{Piece, Reply, Scripted};

#[tokio::test]
async fn a_stream_returns_the_events_of_its_request() {
    let server = Server::script([Answer::calls(&[("look", "{}")]), Answer::text("after")]);
    let worker = worker(&server, config());
    let mut stream = worker.stream(SubmitRequest::prompt("hello")).unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(Event::clone(&event));
    }
    assert_eq!((stream.next().await, stream.outcome().unwrap().text.as_str()), (None, "after"));
    let ended = finish(&worker, stream.id()).await;
    assert_eq!((&ended.events, ended.outcome.text.as_str()), (&events, "after"));
    assert_eq!(worker.in_flight(), 0);
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_request_and_keeps_its_text() {
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let worker = worker(&server, config());
    let mut stream = worker.stream(SubmitRequest::prompt("hello")).unwrap();
    while !matches!(&*stream.next().await.unwrap(), Event::Text { .. }) {}
    let unread = worker.stream(SubmitRequest::prompt("hello"));
    assert!(unread.is_err(), "the only slot is in use");
    let id = stream.id().to_owned();
    drop(stream);
    let outcome = finish(&worker, &id).await.outcome;
    assert_eq!((outcome.state, outcome.text.as_str()), (FinalState::Canceled, "so far"));

    let unread = worker.stream(SubmitRequest::prompt("hello")).unwrap();
    let id = unread.id().to_owned();
    // Also outside the runtime.
    std::thread::spawn(|| drop(unread)).join().unwrap();
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Canceled);
    assert_eq!((server.posts().len(), worker.in_flight()), (1, 0));
}

/// The time limits apply to the server, not to the reader.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_receives_the_whole_reply() {
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
    let pieces = [
        Piece::Bytes(event(&delta("first, "))),
        Piece::Wait(second),
        Piece::Bytes(String::from(": keep-alive\n\n")),
        Piece::Wait(second),
        Piece::Bytes(event(&delta("last")) + "data: [DONE]\n\n"),
    ];
    let worker = Worker::start(config(), echo(), Scripted::new([Reply::with(pieces)]));
    let mut stream = worker.stream(SubmitRequest::prompt("hello")).unwrap();
    while stream.next().await.is_some() {
        tokio::time::sleep(hour).await;
    }
    let outcome = stream.outcome().unwrap();
    let ended = (outcome.state, outcome.text.as_str());
    assert_eq!(ended, (FinalState::Completed, "first, last"), "{outcome:?}");
}

/// A process that was stopped for an hour reads what arrived meanwhile. A server that was lost meanwhile still ends the
/// reply.
#[tokio::test(start_paused = true)]
async fn a_stopped_process_continues_to_read() {
    let second = Duration::from_secs(1);
    let first = Piece::Bytes(event(&delta("first, ")));
    let comment = Piece::Bytes(String::from(": keep-alive\n\n"));
    let meanwhile = [Piece::Wait(second), comment.clone(), comment];
    let last = Piece::Bytes(event(&delta("last")) + "data: [DONE]\n\n");
    let complete = Reply::with([first.clone()].into_iter().chain(meanwhile.clone()).chain([last]));
    let lost = Reply::with([first].into_iter().chain(meanwhile).chain([Piece::Silence]));
    let worker = Worker::start(config(), echo(), Scripted::new([complete, lost]));
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let mut stream = worker.stream(SubmitRequest::prompt("hello")).unwrap();
        while !matches!(&*stream.next().await.unwrap(), Event::Text { .. }) {}
        tokio::time::advance(3600 * second).await;
        while stream.next().await.is_some() {}
        let outcome = stream.outcome().unwrap();
        outcomes.push((outcome.state, outcome.text.clone()));
    }
    let expected =
        [(FinalState::Completed, String::from("first, last")), (FinalState::Failed, String::from("first, "))];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn an_outcome_is_returned_after_its_request_was_released() {
    let server = Server::script([Answer::text("one"), Answer::text("two")]);
    let mut config = config();
    config.keep_results = 0;
    let worker = worker(&server, config);
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    let end = worker.wait(&id);
    let mut events = worker.events(&id, 0).unwrap();
    while events.next().await.is_some() {}
    assert_eq!(worker.result(&id), Err(ResultError::Unknown));
    assert_eq!(end.await.unwrap().text, "one");
    assert_eq!(worker.ask("hello").await.unwrap().text, "two");
}
