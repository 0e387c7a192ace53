//! Requests that the worker ends, and approvals, through the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Approval, Event, FailReason, FailureKind, FinalState};
use deftool_lang::schema::{Arguments, Confirmation, ToolEntry, ToolKind, ToolSet};
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_test_support::server::{Act, Answer, Server, Texts, call, usage};
use deftool_worker::{Approvals, SubmitRequest, ToolSource, Toolbox, Worker, WorkerConfig};
use serde_json::json;

use super::harness::*;

#[tokio::test]
async fn a_restart_fails_open_streams_and_does_not_affect_running_tools() {
    let streaming = Answer::stream().delta("so far").then(Act::Silence);
    let server = Server::script([Answer::calls(&[("look", "{}")]), streaming, Answer::text("after")]);
    let (started, tool) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (notify, wait) = (Arc::clone(&started), Arc::clone(&tool));
    let tools = toolbox(FakeTools(move |_: ToolCall, _| {
        let (notify, wait) = (Arc::clone(&notify), Arc::clone(&wait));
        async move {
            notify.notify_one();
            wait.notified().await;
            Ok(json!(1))
        }
    }));
    let config = WorkerConfig { slots: 2, ..config() };
    let worker = Worker::start(config, tools, http(&server.endpoint(), None));
    let with_tool = worker.submit(SubmitRequest::prompt("one")).unwrap();
    started.notified().await;
    let in_stream = worker.submit(SubmitRequest::prompt("two")).unwrap();
    wait_for_text(&worker, &in_stream, 6).await;
    worker.restart();
    // The first end wins; here it is the restart.
    worker.cancel(&in_stream);
    let ended = finish(&worker, &in_stream).await;
    assert_eq!(ended.outcome.state, FinalState::Failed);
    let (reason, _, _, text) = ended.failed();
    assert_eq!((reason, text), (FailReason::WorkerRestarted, "so far"));
    tool.notify_one();
    assert_eq!(finish(&worker, &with_tool).await.text(), "after");
    assert_eq!(worker.in_flight(), 0);
}

/// A restart fails requests that wait for headers or have an open stream, and no others.
#[tokio::test]
async fn a_restart_fails_only_requests_that_use_the_server() {
    let server = Server::answering(|_, request| match request.texts("user")[0].as_str() {
        "headers" => Answer::silent(),
        "stream" => Answer::stream().delta("so far").then(Act::Silence),
        "busy" => Answer::error(429, &[("retry-after", "60")], "busy"),
        _ if request.texts("tool").is_empty() => Answer::calls(&[("look", "{}")]),
        _ => Answer::text("after"),
    });
    let go_on = Arc::new(tokio::sync::Notify::new());
    let wait = Arc::clone(&go_on);
    let tools = toolbox(FakeTools(move |_: ToolCall, _| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(json!(1))
        }
    }));
    let worker = Worker::start(WorkerConfig { slots: 4, ..config() }, tools, http(&server.endpoint(), None));
    let submit = |prompt: &str| worker.submit(SubmitRequest::prompt(prompt)).unwrap();
    let [headers, stream, busy, tool] = ["headers", "stream", "busy", "tool"].map(submit);
    let reaches = async |id: &str, kind: &str| {
        let mut events = worker.events(id, 0).unwrap();
        while json!(&*events.next().await.unwrap())["type"] != kind {}
    };
    reaches(&stream, "text").await;
    reaches(&busy, "retry").await;
    reaches(&tool, "tool_started").await;
    server.wait_for_posts(4);
    worker.restart();
    for (id, text) in [(&headers, ""), (&stream, "so far")] {
        let ended = finish(&worker, id).await;
        assert_eq!(ended.outcome.state, FinalState::Failed);
        let (reason, _, _, kept) = ended.failed();
        assert_eq!((reason, kept), (FailReason::WorkerRestarted, text));
    }
    go_on.notify_one();
    assert_eq!(finish(&worker, &tool).await.text(), "after");
    // A cancel after the restart ends the request as canceled.
    worker.cancel(&busy);
    assert_eq!(finish(&worker, &busy).await.outcome.state, FinalState::Canceled);
}

/// Dropping a call stops it. After the end is published, a caller may use the files of the call.
#[tokio::test]
async fn siblings_of_a_failed_call_are_dropped_before_the_end_is_published() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            // Long enough for a reader to win the race if the end were published first.
            std::thread::sleep(Duration::from_millis(50));
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let (flag, begun) = (Arc::clone(&gone), Arc::new(tokio::sync::Notify::new()));
    let tools = toolbox(FakeTools(move |call: ToolCall, _| {
        let (gone, begun) = (Arc::clone(&flag), Arc::clone(&begun));
        async move {
            if call.arguments == Arguments::default() {
                begun.notified().await;
                return Err(ToolError::new(ToolErrorKind::Script, "no luck"));
            }
            let _gone = Gone(gone);
            begun.notify_one();
            std::future::pending().await
        }
    }));
    let calls = [("look", "{}"), ("look", r#"{"at": "b"}"#)];
    let server = Server::script([Answer::calls(&calls)]);
    let mut config = config();
    config.run.parallel = true;
    let worker = Worker::start(config, tools, http(&server.endpoint(), None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    // On a separate thread, so that the call and the reader can race.
    let reader = {
        let (worker, id, gone) = (worker.clone(), id.clone(), Arc::clone(&gone));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let outcome = runtime.block_on(worker.wait(&id)).unwrap();
            (outcome, gone.load(Ordering::SeqCst))
        })
    };
    let (outcome, was_gone) = tokio::task::spawn_blocking(|| reader.join().unwrap()).await.unwrap();
    assert_eq!(outcome.detail.as_deref(), Some("look: no luck"));
    assert!(was_gone, "the end was published before a sibling was dropped");
}

pub(super) fn asking() -> Arc<Toolbox> {
    let function = json!({"name": "ask", "description": "ask", "parameters": {"type": "object"}});
    let definition = json!({"type": "function", "function": function});
    let mut entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap();
    entry.confirm = Confirmation::Always;
    let runner = FakeTools(|_: ToolCall, _| async { Ok(json!("done")) });
    Arc::new(Toolbox { generation: 1, tools: ToolSet::new([Arc::new(entry)]), runner: Arc::new(runner) })
}

#[tokio::test]
async fn a_call_waits_for_its_approval_and_takes_the_first_answer() {
    for answer in [Approval::Allowed, Approval::Refused { reason: String::from("no") }] {
        let server = Server::script([Answer::calls(&[("ask", "{}")]), Answer::text("end")]);
        let worker = Worker::start(config(), asking(), http(&server.endpoint(), None));
        let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
        let mut events = worker.events(&id, 0).unwrap();
        let call = loop {
            if let Event::Approval { id, answer: None, .. } = &*events.next().await.unwrap() {
                break id.clone();
            }
        };
        assert!(!worker.approve(&id, "other", Approval::Allowed));
        assert!(worker.approve(&id, &call, answer.clone()));
        assert!(!worker.approve(&id, &call, Approval::Allowed), "answered once");
        let ended = finish(&worker, &id).await;
        assert_eq!(ended.text(), "end");
        let ran = ended.names().contains(&String::from("tool_started"));
        assert_eq!(ran, answer == Approval::Allowed);
    }
}

#[tokio::test]
async fn no_approval_is_requested_if_the_worker_has_a_fixed_answer() {
    for (approvals, runs) in [(Approvals::Allow, true), (Approvals::Refuse, false)] {
        let server = Server::script([Answer::calls(&[("ask", "{}")]), Answer::text("end")]);
        let config = WorkerConfig { approvals, ..config() };
        let worker = Worker::start(config, asking(), http(&server.endpoint(), None));
        let ended = ask(&worker).await;
        assert_eq!(ended.text(), "end");
        assert_eq!(ended.names().contains(&String::from("tool_started")), runs);
    }
}

#[tokio::test]
async fn a_request_that_waits_for_approval_can_be_canceled() {
    let server = Server::script([Answer::calls(&[("ask", "{}")])]);
    let worker = Worker::start(config(), asking(), http(&server.endpoint(), None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    while !matches!(&*events.next().await.unwrap(), Event::Approval { .. }) {}
    worker.cancel(&id);
    assert_eq!(finish(&worker, &id).await.outcome.state, FinalState::Canceled);
    let Event::ToolCall { id: call, .. } = &*worker.events(&id, 2).unwrap().next().await.unwrap() else {
        panic!("the third event is the call");
    };
    assert!(!worker.approve(&id, call, Approval::Allowed), "no approval is pending");
}

#[tokio::test]
async fn exit_calls_and_tokens_of_a_reply_whose_connection_breaks_are_kept() {
    let chunks = [call(0, "done", r#"{"at": "end"}"#), usage(3, 2)];
    let begun = chunks.iter().fold(Answer::stream().delta("so far"), Answer::chunk);
    let server = Server::script([begun.then(Act::Reset)]);
    let ended = ask(&worker(&server, config())).await;
    let (reason, kind, detail, text) = ended.failed();
    assert_eq!((reason, kind, text), (FailReason::UnknownError, "stream_incomplete", "so far"));
    assert!(detail.starts_with("the reply was cut off: "), "{detail}");
    let signals = &ended.outcome.signals;
    assert_eq!(signals.len(), 1, "{:?}", ended.outcome);
    assert_eq!((signals[0].tool_name.as_str(), &signals[0].arguments), ("done", &json!({"at": "end"})));
    assert_eq!(ended.outcome.usage.unwrap().prompt_tokens, 3);
}

/// The first event is `submitted`, which `ask` checks for each request.
#[tokio::test]
async fn a_panic_of_the_tool_source_fails_the_request_and_frees_its_slot() {
    struct Panics;
    impl ToolSource for Panics {
        fn current(&self) -> Toolbox {
            std::panic::resume_unwind(Box::new("a bug of the source"))
        }
    }
    let server = Server::script([Answer::text("never")]);
    let worker = Worker::start(config(), Arc::new(Panics), http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    assert_eq!(ended.names(), ["submitted", "finished"]);
    let (reason, kind, detail, _) = ended.failed();
    assert_eq!((reason, kind), (FailReason::UnknownError, "internal"));
    assert!(detail.ends_with("it panicked: a bug of the source"), "{detail}");
    assert_eq!(worker.in_flight(), 0);
}

#[tokio::test]
async fn parallel_calls_overlap() {
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let tools = toolbox(FakeTools(move |_: ToolCall, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            // Only two concurrent calls pass the barrier.
            barrier.wait().await;
            Ok(json!(1))
        }
    }));
    let calls = [("look", "{}"), ("look", r#"{"at": "b"}"#)];
    let server = Server::script([Answer::calls(&calls), Answer::text("end")]);
    let mut config = with_timers(|timers| timers.tool = Duration::from_secs(20));
    config.run.parallel = true;
    let worker = Worker::start(config, tools, http(&server.endpoint(), None));
    assert_eq!(ask(&worker).await.text(), "end");
}

/// docs/worker.md describes every kind of failure, and no other.
#[test]
fn every_kind_of_failure_is_described() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/worker.md")).unwrap();
    let (_, table) = page.split_once("| `kind` | meaning |\n|---|---|\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let names = table.lines().flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let mut described: Vec<&str> = names.collect();
    let mut kinds: Vec<&str> = FailureKind::ALL.iter().map(|kind| kind.as_str()).collect();
    described.sort_unstable();
    kinds.sort_unstable();
    assert_eq!(described, kinds);
}

#[tokio::test]
async fn a_reply_of_another_api_is_named() {
    for api in Api::ALL {
        for other in Api::ALL.into_iter().filter(|other| *other != api) {
            let server = Server::script([turn(other, "fine", &[])]);
            let ended = ask(&worker(&server, over(api))).await;
            let (_, kind, detail, _) = ended.failed();
            let advice = format!("set the worker's `:api` to `{}`", other.as_str());
            assert!(kind == "empty_stream" && detail.contains(&advice), "{api:?}: {other:?}: {detail}");
            assert_eq!(server.posts().len(), 1, "{api:?}: {other:?}");
        }
    }
}
