//! A replay produces the recorded events without the server, for all kinds of sessions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Event, FailReason};
use deftool_lang::spec::OnFailure;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};
use deftool_record::{Recorder, Recording, Redaction};
use deftool_test_support::server::{Act, Answer, ClosedPort, Server, call, delta, event, finish, usage};
use deftool_worker::{
    ReplayTransport, SubmitError, SubmitRequest, ToolSource, Toolbox, Worker, WorkerConfig,
};
use serde_json::{Value, json};

use super::harness::*;

/// Selects the event at which the request is canceled.
pub(super) type When = fn(&Event) -> bool;

/// A session to record: the server's answers, the worker's configuration, and the cancel.
struct Session {
    name: &'static str,
    answers: Vec<Answer>,
    config: WorkerConfig,
    tools: Arc<Toolbox>,
    cancel: Option<When>,
    ends: &'static str,
}

fn session(name: &'static str, answers: impl IntoIterator<Item = Answer>, ends: &'static str) -> Session {
    // Only where the server is silent, a short limit is sure to end the request.
    let config = with_timers(|timers| match ends {
        "stall_timeout" => timers.stall = Duration::from_millis(300),
        "headers_timeout" => timers.headers = Some(Duration::from_millis(500)),
        _ => {}
    });
    Session { name, answers: answers.into_iter().collect(), config, tools: echo(), cancel: None, ends }
}

impl Session {
    fn canceled_when(mut self, when: When) -> Self {
        self.cancel = Some(when);
        self
    }

    fn tools(mut self, tools: Arc<Toolbox>) -> Self {
        self.tools = tools;
        self
    }

    fn config(mut self, change: impl FnOnce(&mut WorkerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Records and replays the session. Returns an error text if it fails.
    async fn play(self) -> Option<String> {
        let Self { name, answers, config, tools, cancel, ends } = self;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let recorded = {
            let nobody = ClosedPort::reserve();
            let server = (!answers.is_empty()).then(|| Server::script(answers));
            let endpoint = server.as_ref().map_or_else(|| nobody.endpoint(), Server::endpoint);
            let worker = Worker::start(config.clone(), tools.clone(), http(&endpoint, None));
            record(&worker, &path, cancel).await
        };
        // The server has stopped.
        let again = replay(&path, config, tools).await;
        let json = |events: &[Event]| events.iter().map(|event| json!(event).to_string()).collect::<Vec<_>>();
        let (recorded_lines, again_lines) = (json(&recorded.events), json(&again.events));
        let outcome = &recorded.outcome;
        let reason = outcome.fail_reason.map(FailReason::as_str);
        let end = outcome.kind.as_deref().or(reason).unwrap_or("completed");
        if end != ends {
            return Some(format!("{name}: ended with {end}: {outcome:?}"));
        }
        (recorded_lines != again_lines).then(|| {
            format!("{name}:\nrecorded\n{}\nreplayed\n{}", recorded_lines.join("\n"), again_lines.join("\n"))
        })
    }
}

pub(super) async fn record(worker: &Worker, path: &Path, cancel: Option<When>) -> Ended {
    let recorder = Arc::new(Recorder::create(path, Redaction::default()).unwrap());
    let request = SubmitRequest { recorder: Some(recorder.clone()), ..SubmitRequest::prompt("hello") };
    let id = worker.submit(request).unwrap();
    if let Some(when) = cancel {
        let mut events = worker.events(&id, 0).unwrap();
        while let Some(event) = events.next().await {
            if when(&event) {
                // Let some time pass, so that a wrong clock is detected.
                tokio::time::sleep(Duration::from_millis(15)).await;
                worker.cancel(&id);
                break;
            }
        }
    }
    let ended = super::harness::finish(worker, &id).await;
    recorder.close().unwrap();
    ended
}

pub(super) async fn replay(path: &Path, config: WorkerConfig, tools: Arc<dyn ToolSource>) -> Ended {
    let recording = Recording::read(path).unwrap();
    let worker = Worker::replay(config, tools, Arc::new(ReplayTransport::new(recording, false)));
    let id = worker.submit(SubmitRequest::default()).unwrap();
    super::harness::finish(&worker, &id).await
}

async fn play_all(sessions: Vec<Session>) {
    let played = futures_util::future::join_all(sessions.into_iter().map(Session::play)).await;
    let wrong: Vec<String> = played.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn a_session_over_each_api_can_be_replayed() {
    let so_far = [delta("so far")];
    let sessions = Api::ALL.into_iter().flat_map(|api| {
        let begun = || Answer::begun(api, &so_far);
        let sessions = vec![
            session(
                "tools",
                [turn(api, "Looking. ", &[("look", "{}"), ("done", "{}")]), turn(api, "Fine.", &[])],
                "completed",
            )
            .tools(slow_tools()),
            session("byte by byte", [turn(api, "naïve 😀", &[]).byte_by_byte()], "completed"),
            session(
                "retried",
                [Answer::error(429, &[("retry-after-ms", "30")], "slow"), turn(api, "fine", &[])],
                "completed",
            ),
            session(
                "open after the end",
                [Answer::begun(api, &[delta("hi"), finish("stop")]).done().then(Act::Silence)],
                "completed",
            ),
            session("no end", [begun().end()], "stream_incomplete"),
            session(
                "an error inside",
                [Answer::begun(api, &[json!({"error": {"message": "cuda"}})]).end()],
                "server_error",
            ),
            session(
                "an empty stream explained",
                [Answer::begun(api, &[]).end(), Answer::error(400, &[], "why")],
                "empty_stream",
            ),
            session("canceled", [begun().then(Act::Silence)], "canceled")
                .canceled_when(|event| matches!(event, Event::Text { .. })),
        ];
        sessions.into_iter().map(move |session| session.config(|config| config.api = api))
    });
    let paused = [Answer::reply(Api::Messages, &[delta("One. "), finish("pause_turn")])];
    let paused = paused.into_iter().chain([turn(Api::Messages, "Two.", &[])]);
    let paused = session("paused", paused, "completed").config(|config| config.api = Api::Messages);
    let empty = || turn(Api::ChatCompletions, "", &[]);
    let called = turn(Api::ChatCompletions, "", &[("look", "{}")]);
    let empty = session("empty", [empty(), called, empty(), empty()], "completed");
    play_all(sessions.chain([paused, empty]).collect()).await;
}

/// The API of the recording replaces that of the worker. Recordings without it use chat completions.
#[tokio::test]
async fn a_recording_is_replayed_over_its_api() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Server::script([turn(Api::Responses, "hi", &[])]);
    record(&worker(&server, over(Api::Responses)), &path, None).await;
    assert_eq!(replay(&path, config(), echo()).await.text(), "hi");

    let server = Server::script([Answer::text("hi")]);
    record(&worker(&server, config()), &path, None).await;
    let recording = std::fs::read_to_string(&path).unwrap();
    let older = recording.replacen(r#","api":"chat-completions""#, "", 1);
    assert_ne!(recording, older);
    std::fs::write(&path, older).unwrap();
    assert_eq!(replay(&path, over(Api::Responses), echo()).await.text(), "hi");
}

/// Returns a reply with a call and with delays between its chunks.
fn called() -> Answer {
    let chunks =
        [delta("so far"), call(0, "done", r#"{"at": "1"}"#), call(1, "look", "{}"), finish("tool_calls")];
    chunks
        .iter()
        .fold(Answer::stream(), |answer, chunk| answer.wait_ms(7).chunk(chunk))
        .done()
        .wait_ms(20)
        .end()
}

fn written() -> Answer {
    Answer::chunks(&[
        delta("so far\n<tool_"),
        delta("call>{\"name\": \"look\", \"arguments\": {}}</tool_call>"),
        finish("stop"),
    ])
}

fn called_slow() -> Answer {
    Answer::chunks(&[call(0, "slow", "{}"), finish("tool_calls")])
}

fn slow_tools() -> Arc<Toolbox> {
    toolbox(FakeTools(|_: ToolCall, _: CallContext| async {
        tokio::time::sleep(Duration::from_millis(23)).await;
        Ok(Value::Null)
    }))
}

fn long_tools() -> Arc<Toolbox> {
    toolbox(FakeTools(|_: ToolCall, _: CallContext| async { Ok(json!("one line\n".repeat(20_000))) }))
}

fn failing_tools() -> Arc<Toolbox> {
    toolbox(FakeTools(|_: ToolCall, _: CallContext| async {
        tokio::time::sleep(Duration::from_millis(11)).await;
        Err(ToolError::new(ToolErrorKind::Script, "no luck"))
    }))
}

#[tokio::test]
async fn a_session_with_turns_tools_and_signals_can_be_replayed() {
    let end = || Answer::chunks(&[delta("fine"), call(0, "done", "{}"), finish("stop"), usage(3, 4)]);
    play_all(vec![
        session("text", [Answer::text("hello")], "completed"),
        session("tools", [called(), called(), end()], "completed").tools(slow_tools()),
        session(
            "no [DONE]",
            [Answer::stream().delta("hi").chunk(&finish("stop")).wait_ms(10).end()],
            "completed",
        ),
        session("open after the end", [Answer::stream().delta("hi").done().then(Act::Silence)], "completed"),
        session("a long result", [called(), end()], "completed").tools(long_tools()),
        session("a failing tool", [called()], "script").tools(failing_tools()),
        session("a call written as text", [written(), end()], "completed").tools(slow_tools()),
        session("a reported failure", [called(), end()], "completed")
            .tools(failing_tools())
            .config(|config| config.run.on_tool_error = OnFailure::Report),
        session("a tool that is too slow", [called_slow()], "timeout").tools(endless().0),
        session("budget", [called()], "budget_exhausted").config(|config| config.run.tool_budget = 2),
        session(
            "one big piece",
            [Answer::stream().piece(event(&delta(&"a b c ".repeat(50_000)))).done().end()],
            "completed",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_session_with_retries_and_server_failures_can_be_replayed() {
    let begun = || Answer::stream().delta("so far");
    play_all(vec![
        session("refused", [], "connect_failed"),
        session("own waits", [Answer::error(503, &[], "loading"), Answer::text("fine")], "completed"),
        session(
            "asked waits",
            [Answer::error(429, &[("retry-after-ms", "30")], "slow"), called(), Answer::text("")],
            "completed",
        ),
        session("always busy", [Answer::error(503, &[("retry-after", "0")], "no")], "http_error"),
        session(
            "another variant",
            [Answer::error(400, &[], "stream_options?"), called(), Answer::text("fine")],
            "completed",
        ),
        session("404", [Answer::error(404, &[], "no")], "http_error"),
        session("redirect", [Answer::whole(307, &[("location", "http://other/v1")], "")], "http_error"),
        session(
            "an error's body that stalls",
            [Answer::head(500, &[]).piece("half").then(Act::Silence)],
            "http_error",
        ),
        session("HTML", [Answer::whole(200, &[], "<title>hi</title>")], "empty_stream"),
        session(
            "empty after a retry",
            [
                Answer::error(503, &[("retry-after", "0")], "no"),
                Answer::stream().end(),
                Answer::error(400, &[], "why"),
            ],
            "empty_stream",
        ),
        session(
            "an empty stream not explained",
            [Answer::stream().end(), Answer::default().then(Act::Close)],
            "empty_stream",
        ),
        session(
            "retries of a hosted API",
            [
                Answer::error(502, &[("retry-after-ms", "1")], "no"),
                Answer::default().then(Act::Close),
                Answer::text("fine"),
            ],
            "completed",
        ),
        session(
            "a retry that the server forbids",
            [Answer::error(503, &[("x-should-retry", "false")], "no")],
            "http_error",
        ),
        session(
            "an overload in the stream",
            [
                Answer::stream()
                    .chunk(&json!({"error": {"type": "overloaded_error", "message": "busy"}}))
                    .end(),
                Answer::text("fine"),
            ],
            "completed",
        ),
        session("closed before the head", [Answer::default().then(Act::Close)], "stream_incomplete"),
        session("cut arguments", [begun().chunk(&call(0, "look", "{\"a")).end()], "call_truncated"),
        session("an error inside", [begun().chunk(&json!({"error": "cuda"})).end()], "server_error"),
        session(
            "a loop",
            [begun().delta(&"\nagain and again and again and again".repeat(20)).then(Act::Silence)],
            "repeated_line_loop",
        ),
    ])
    .await;
}

#[tokio::test]
async fn the_replay_of_a_stopped_session_ends_at_the_same_point() {
    let begun = || Answer::stream().delta("so far");
    let in_tool: When = |event| matches!(event, Event::ToolStarted { .. });
    let in_wait: When = |event| matches!(event, Event::Retry { .. });
    let at_start: When = |event| matches!(event, Event::TurnStarted { .. });
    let total = |config: &mut WorkerConfig| config.timers.total = Some(Duration::from_millis(150));
    play_all(vec![
        session("no head", [Answer::silent()], "headers_timeout"),
        session("too long in the stream", [begun().then(Act::Silence)], "total_timeout").config(total),
        session("too long without a head", [Answer::silent()], "total_timeout").config(total),
        session("too long in a tool", [called()], "total_timeout").config(total).tools(endless().0),
        session(
            "too long between tries",
            [Answer::error(503, &[("retry-after", "9")], "no")],
            "total_timeout",
        )
        .config(total),
        session("canceled without a head", [Answer::silent()], "canceled").canceled_when(at_start),
        session("canceled between tries", [Answer::error(503, &[("retry-after", "9")], "no")], "canceled")
            .canceled_when(in_wait),
        session("canceled after a refused connection", [], "canceled").canceled_when(in_wait),
        session("too long after a refused connection", [], "total_timeout").config(total),
        session("canceled after a lost connection", [Answer::default().then(Act::Close)], "canceled")
            .canceled_when(in_wait),
        session(
            "canceled in an error's body",
            [Answer::head(400, &[]).piece("half").then(Act::Silence)],
            "canceled",
        )
        .canceled_when(at_start),
        session("canceled in a tool", [called()], "canceled").canceled_when(in_tool).tools(endless().0),
        session("canceled while asking why", [Answer::stream().end(), Answer::silent()], "canceled")
            .canceled_when(at_start),
        session("canceled in the second turn", [called(), begun().then(Act::Silence)], "canceled")
            .canceled_when(|event| matches!(event, Event::TurnStarted { turn: 2, .. }))
            .tools(slow_tools()),
    ])
    .await;
}

#[tokio::test]
async fn a_truncated_recording_can_be_read_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Server::script([called(), Answer::text("naïve 😀").byte_by_byte()]);
    let worker = worker(&server, config());
    let whole = record(&worker, &path, None).await;
    let bytes = std::fs::read(&path).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let step = (bytes.len() - first) / 60;
    for end in (first..=bytes.len()).step_by(step.max(1)) {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let ended = replay(&path, config(), echo()).await;
        assert!(whole.outcome.text.starts_with(&ended.outcome.text), "{end}: {:?}", ended.outcome);
    }
    // Also within a character.
    let umlaut = bytes.windows(2).position(|pair| pair == "ï".as_bytes());
    if let Some(at) = umlaut {
        std::fs::write(&path, &bytes[..=at]).unwrap();
        Recording::read(&path).unwrap();
    }
}

#[tokio::test]
async fn each_recorded_request_can_be_replayed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Server::script([Answer::text("hi")]);
    record(&worker(&server, config()), &path, None).await;
    let recording = Recording::read(&path).unwrap();
    let mut config = config();
    config.slots = 4;
    let worker = Worker::replay(config, echo(), Arc::new(ReplayTransport::new(recording, false)));
    let id = worker.submit(SubmitRequest::default()).unwrap();
    assert_eq!(worker.submit(SubmitRequest::default()), Err(SubmitError::NoSlotAvailable));
    assert_eq!(super::harness::finish(&worker, &id).await.text(), "hi");
    assert_eq!(worker.in_flight(), 0);
    assert_eq!(worker.submit(SubmitRequest::default()), Err(SubmitError::NoSlotAvailable));
}
