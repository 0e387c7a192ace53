//! What an observer of a worker receives.

use std::sync::{Arc, Mutex};

use deftool_chat::request::{Event, FinalState};
use deftool_record::Session;
use deftool_test_support::server::{Answer, Server, call, delta, finish, usage};
use deftool_worker::{Observation, Observer, RequestObserver, SubmitRequest};
use serde_json::json;

use super::harness::*;

/// Writes each observation as a line.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Observer for Log {
    fn begin(&self, request: &Session) -> Box<dyn RequestObserver> {
        assert!(request.trace.request.is_some());
        Box::new(self.clone())
    }
}

impl RequestObserver for Log {
    fn observe(&mut self, _: u64, observation: Observation<'_>) {
        let line = match observation {
            Observation::Event(Event::Finished(outcome)) => format!("finished {:?}", outcome.state),
            Observation::Event(event) => json!(event)["type"].as_str().unwrap().to_owned(),
            Observation::Sent { span, attempt, request } => {
                assert!(span.is_some());
                format!("sent: attempt {attempt}, {} messages", request.messages.len())
            }
            Observation::Rejected { status } => format!("rejected {status:?}"),
            Observation::Chunk => String::from("chunk"),
            Observation::Replied { reply, id } => format!("replied {id:?} {:?}", reply.usage.is_some()),
            Observation::Calling { span, call } => {
                assert!(span.is_some());
                format!("calling {}", call.name)
            }
            Observation::Suspended => String::from("suspended"),
            other => panic!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn an_observer_receives_events_exchanges_and_calls_in_order() {
    let server = Server::script([
        Answer::error(503, &[("retry-after-ms", "1")], "busy"),
        Answer::chunks(&[
            json!({"id": "r1", "choices": []}),
            call(0, "look", "{}"),
            finish("tool_calls"),
            usage(3, 4),
        ]),
        Answer::chunks(&[delta("fine"), finish("stop")]),
    ]);
    let log = Log::default();
    let mut config = config();
    config.observer = Some(Arc::new(log.clone()));
    let worker = worker(&server, config);
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    worker.wait(&id).await.unwrap();
    let mut seen = log.0.lock().unwrap().clone();
    // The parts of a reply may arrive together.
    seen.dedup_by(|line, before| line == "chunk" && before == "chunk");
    assert_eq!(
        seen,
        [
            "submitted",
            "turn_started",
            "sent: attempt 1, 2 messages",
            "rejected Some(503)",
            "retry",
            "sent: attempt 2, 2 messages",
            "chunk",
            "replied Some(\"r1\") true",
            "tool_call",
            "tool_started",
            "calling look",
            "tool_finished",
            "budget",
            "turn_started",
            "sent: attempt 1, 4 messages",
            "chunk",
            "text",
            "replied None false",
            "finished Completed",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_observer_of_a_suspended_request_receives_no_end() {
    let server = Server::script([Answer::silent()]);
    let log = Log::default();
    let mut config = config();
    config.observer = Some(Arc::new(log.clone()));
    let worker = worker(&server, config);
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    server.wait_for_posts(1);
    assert!(worker.suspend(&id) && !worker.suspend("unknown"));
    assert_eq!(worker.wait(&id).await.unwrap().state, FinalState::Canceled);
    let mut seen = log.0.lock().unwrap().clone();
    seen.dedup();
    assert_eq!(seen, ["submitted", "turn_started", "sent: attempt 1, 2 messages", "suspended"]);
    assert_eq!(worker.in_flight(), 0);
}
