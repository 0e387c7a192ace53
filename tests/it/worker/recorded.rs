//! Recordings of concurrent calls, approvals, reloads, several requests and times; redaction of secrets; and invalid
//! recordings.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::request::{Approval, Event};
use deftool_lang::schema::{Confirmation, ToolEntry, ToolKind, ToolSet};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};
use deftool_record::{Recorder, Recording, Redaction, ReplayOptions, Secrets};
use deftool_test_support::server::{Act, Answer, Server, Texts, call, delta, finish};
use deftool_worker::{
    Approvals, ReplayTransport, SubmitError, SubmitRequest, ToolSource, Toolbox, Worker, WorkerConfig,
};
use serde_json::{Value, json};

use super::harness::*;
use super::replay::{record, replay};

/// Returns the tools `look` and `ask`; `ask` requires approval.
fn with_approval(runner: impl deftool_lang::tool::ToolRunner + 'static) -> Arc<Toolbox> {
    let entry = |name: &str, confirm| {
        let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}});
        let function = json!({"name": name, "description": name, "parameters": parameters});
        let definition = json!({"type": "function", "function": function});
        let mut entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap();
        entry.confirm = confirm;
        Arc::new(entry)
    };
    let tools = ToolSet::new([entry("look", Confirmation::Never), entry("ask", Confirmation::Always)]);
    Arc::new(Toolbox { generation: 1, tools, runner: Arc::new(runner) })
}

/// Returns a runner that returns the argument `at` after the delay `wait(at)`.
fn timed(
    wait: fn(&str) -> u64,
) -> FakeTools<
    impl Fn(ToolCall, CallContext) -> futures_util::future::BoxFuture<'static, Result<Value, ToolError>>,
> {
    FakeTools(move |call: ToolCall, _: CallContext| -> futures_util::future::BoxFuture<'static, _> {
        let at = call.arguments.get("at").and_then(Value::as_str).unwrap_or_default().to_owned();
        let wait = wait(&at);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if at == "bad" {
                Err(ToolError::new(ToolErrorKind::Script, "no luck"))
            } else {
                Ok(json!({ "was": at }))
            }
        })
    })
}

fn calls(calls: &[(&str, &str)]) -> Answer {
    let mut chunks = vec![delta("so far ")];
    for (index, (name, at)) in calls.iter().enumerate() {
        chunks.push(call(index, name, &json!({ "at": at }).to_string()));
    }
    chunks.push(finish("tool_calls"));
    Answer::chunks(&chunks)
}

fn lines(ended: &Ended) -> Vec<String> {
    ended.events.iter().map(|event| json!(event).to_string()).collect()
}

fn parallel() -> WorkerConfig {
    let mut config = config();
    config.run.parallel = true;
    config
}

/// Replays a file with options. Returns the requests and the differences.
pub(super) async fn play(
    path: &Path,
    config: WorkerConfig,
    tools: Arc<dyn ToolSource>,
    options: ReplayOptions,
) -> (Vec<Ended>, Vec<String>) {
    let transport = Arc::new(ReplayTransport::with(Recording::read(path).unwrap(), options));
    let worker = Worker::replay(config, tools, Arc::clone(&transport));
    let mut ended = Vec::new();
    for _ in 0..transport.requests() {
        let id = worker.submit(SubmitRequest::default()).unwrap();
        ended.push(finish_within(&worker, &id, Duration::from_secs(24 * 3600)).await);
    }
    assert_eq!(worker.submit(SubmitRequest::default()), Err(SubmitError::NoSlotAvailable));
    (ended, transport.differences().iter().map(ToString::to_string).collect())
}

fn no_tool() -> Arc<Toolbox> {
    with_approval(FakeTools(|call: ToolCall, _: CallContext| async move {
        Err(ToolError::new(ToolErrorKind::Internal, format!("{} ran", call.name)))
    }))
}

fn recorded_tools() -> ReplayOptions {
    ReplayOptions { recorded_tools: true, ..ReplayOptions::default() }
}

#[tokio::test]
async fn concurrent_calls_are_answered_in_the_recorded_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let three = [("look", "a"), ("look", "b"), ("look", "c")];
    let server = Server::script([calls(&three), Answer::text("fine")]);
    // Recorded in the order c, a, b; the replay runs them in the order b, c, a.
    let slow = timed(|at| match at {
        "a" => 60,
        "b" => 120,
        _ => 10,
    });
    let other = timed(|at| match at {
        "a" => 90,
        "b" => 1,
        _ => 40,
    });
    let worker = Worker::start(parallel(), with_approval(slow), http(&server.endpoint(), None));
    let recorded = record(&worker, &path, None).await;
    let order: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolFinished { result, .. } => Some(result.clone().unwrap()["was"].clone()),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["c", "a", "b"]);
    let again = replay(&path, parallel(), with_approval(other)).await;
    assert_eq!(lines(&again), lines(&recorded));
    let (again, differences) = play(&path, parallel(), no_tool(), recorded_tools()).await;
    assert_eq!((lines(&again[0]), differences), (lines(&recorded), vec![]));
}

#[tokio::test]
async fn failures_and_cancels_among_concurrent_calls_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    // `bad` fails first, but a failure of `a` would have precedence, so `a` is awaited.
    let three = [("look", "a"), ("look", "bad"), ("look", "c")];
    let wait = |at: &str| match at {
        "a" => 80,
        "bad" => 10,
        _ => 300,
    };
    let server = Server::script([calls(&three)]);
    let worker = Worker::start(parallel(), with_approval(timed(wait)), http(&server.endpoint(), None));
    let recorded = record(&worker, &path, None).await;
    assert_eq!(recorded.failed().1, "script");
    for options in [ReplayOptions::default(), recorded_tools()] {
        let (again, differences) = play(&path, parallel(), with_approval(timed(|_| 1)), options).await;
        assert_eq!((lines(&again[0]), differences), (lines(&recorded), vec![]));
    }
    // Canceled after one of three answers: the replay does not run the others.
    let server = Server::script([calls(&[("look", "a"), ("look", "b"), ("look", "c")])]);
    let wait = |at: &str| if at == "b" { 10 } else { 60_000 };
    let worker = Worker::start(parallel(), with_approval(timed(wait)), http(&server.endpoint(), None));
    let recorded = record(&worker, &path, Some(|event| matches!(event, Event::ToolFinished { .. }))).await;
    let (again, differences) =
        play(&path, parallel(), with_approval(timed(wait)), ReplayOptions::default()).await;
    assert_eq!((lines(&again[0]), differences), (lines(&recorded), vec![]));
}

#[tokio::test]
async fn recorded_approvals_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([
        calls(&[("ask", "1"), ("look", "2"), ("ask", "3")]),
        calls(&[("ask", "4")]),
        Answer::text("never"),
    ]);
    let worker = Worker::start(parallel(), with_approval(timed(|_| 5)), http(&server.endpoint(), None));
    let recorder = Arc::new(Recorder::create(&path, Redaction::default()).unwrap());
    let request = SubmitRequest { recorder: Some(recorder.clone()), ..SubmitRequest::prompt("hello") };
    let id = worker.submit(request).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    let mut asked = 0;
    while let Some(event) = events.next().await {
        let Event::Approval { id: call, answer: None, .. } = &*event else { continue };
        asked += 1;
        tokio::time::sleep(Duration::from_millis(12)).await;
        match asked {
            1 => assert!(worker.approve(&id, call, Approval::Allowed)),
            2 => assert!(worker.approve(&id, call, Approval::Refused { reason: String::from("too late") })),
            _ => assert!(worker.cancel(&id)),
        }
    }
    let recorded = super::harness::finish(&worker, &id).await;
    recorder.close().unwrap();
    assert_eq!(asked, 3);
    // The replay does not ask for approval, whatever the worker's settings are.
    for approvals in [Approvals::Ask, Approvals::Allow, Approvals::Refuse] {
        let config = WorkerConfig { approvals, ..parallel() };
        let (again, differences) =
            play(&path, config, with_approval(timed(|_| 1)), ReplayOptions::default()).await;
        assert_eq!((lines(&again[0]), differences), (lines(&recorded), vec![]));
    }
    // A tool that did not require approval when it was recorded is refused and reported; the replay does not hang.
    let text = std::fs::read_to_string(&path).unwrap().replace("\"name\":\"look\"", "\"name\":\"other\"");
    let text: String =
        text.lines().filter(|line| !line.contains("\"approval\"")).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&path, text).unwrap();
    let options = ReplayOptions { lenient: true, ..ReplayOptions::default() };
    let (_, differences) = play(&path, parallel(), with_approval(timed(|_| 1)), options).await;
    assert!(
        differences.iter().any(|line| line.contains("a call of ask: requires an approval now")),
        "{differences:?}"
    );
}

/// A tool source that reloads during a call.
struct Reloading {
    before: Arc<Toolbox>,
    after: Arc<Toolbox>,
    is_reloaded: Arc<AtomicBool>,
}

impl Reloading {
    fn new() -> Arc<Self> {
        let is_reloaded = Arc::new(AtomicBool::new(false));
        let reload = Arc::clone(&is_reloaded);
        let runner = FakeTools(move |_: ToolCall, _: CallContext| {
            reload.store(true, Ordering::SeqCst);
            async { Ok(Value::Null) }
        });
        let before = with_approval(runner);
        Arc::new(Self { before, after: after_reload(), is_reloaded })
    }
}

/// Returns the tools with changed descriptions.
fn after_reload() -> Arc<Toolbox> {
    let before = with_approval(FakeTools(|_: ToolCall, _: CallContext| async { Ok(Value::Null) }));
    let entries = before.tools.iter().map(|entry| {
        let mut definition = entry.definition.clone();
        definition["function"]["description"] = json!("after the reload");
        Arc::new(ToolEntry::new(ToolKind::Normal, definition, None).unwrap())
    });
    Arc::new(Toolbox { generation: 2, tools: ToolSet::new(entries), runner: Arc::clone(&before.runner) })
}

impl ToolSource for Reloading {
    fn current(&self) -> Toolbox {
        let is_reloaded = self.is_reloaded.load(Ordering::SeqCst);
        if is_reloaded { (*self.after).clone() } else { (*self.before).clone() }
    }

    fn changes_since(&self, generation: u64) -> String {
        format!("since {generation}: changed look")
    }
}

#[tokio::test]
async fn a_reload_is_replayed_and_only_the_last_tools_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([calls(&[("look", "1")]), calls(&[("look", "2")]), Answer::text("fine")]);
    let worker = Worker::start(config(), Reloading::new(), http(&server.endpoint(), None));
    let recorded = record(&worker, &path, None).await;
    assert!(recorded.names().contains(&String::from("reloaded")), "{:?}", recorded.names());
    assert_eq!(lines(&replay(&path, config(), Reloading::new()).await), lines(&recorded));
    // The current tools match those at the end of the recording. The first turn had different tools.
    let (again, differences) = play(&path, config(), after_reload(), recorded_tools()).await;
    assert_eq!(differences, Vec::<String>::new());
    assert_eq!(again[0].names(), recorded.names());
    assert_eq!(again[0].outcome, recorded.outcome);
    // A difference from the tools at the end is reported.
    let (_, differences) = play(&path, config(), no_tool(), recorded_tools()).await;
    assert!(differences.iter().any(|line| line.contains("turn 2: tools[")), "{differences:?}");
}

#[tokio::test]
async fn requests_of_one_file_are_replayed_in_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::answering_all(|_, received| {
        let prompt = received.texts("user").concat();
        Answer::stream().delta(&prompt).wait_ms(30).delta(" answered").chunk(&finish("stop")).done().end()
    });
    let config = WorkerConfig { slots: 3, ..config() };
    let worker = Worker::start(config.clone(), echo(), http(&server.endpoint(), None));
    let recorder = Arc::new(Recorder::create(&path, Redaction::default()).unwrap());
    // Concurrently: their lines are interleaved.
    let ids: Vec<String> = ["one", "two", "three"]
        .iter()
        .map(|prompt| {
            worker
                .submit(SubmitRequest { recorder: Some(recorder.clone()), ..SubmitRequest::prompt(*prompt) })
                .unwrap()
        })
        .collect();
    let mut recorded = Vec::new();
    for id in &ids {
        recorded.push(lines(&super::harness::finish(&worker, id).await));
    }
    recorder.close().unwrap();
    let (again, differences) = play(&path, config, echo(), ReplayOptions::default()).await;
    assert_eq!(again.iter().map(lines).collect::<Vec<_>>(), recorded);
    assert_eq!(differences, Vec::<String>::new());
    let requests = Recording::read(&path).unwrap();
    assert!(requests.requests().iter().all(|request| request.is_whole() && request.exchanges() == 1));
}

#[tokio::test]
async fn changed_tool_results_and_outcomes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([calls(&[("look", "a"), ("look", "b")]), Answer::text("fine")]);
    let worker = Worker::start(config(), with_approval(timed(|_| 1)), http(&server.endpoint(), None));
    record(&worker, &path, None).await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let second_fails = with_approval(FakeTools(move |_: ToolCall, _: CallContext| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number == 0 {
                Ok(json!({"was": "x"}))
            } else {
                Err(ToolError::new(ToolErrorKind::Script, "no luck"))
            }
        }
    }));
    let (again, differences) = play(&path, config(), second_fails, ReplayOptions::default()).await;
    assert_eq!(again[0].failed().1, "script");
    for expected in [
        "call 1 of look: result.was: recorded \"a\", now \"x\"",
        "call 2 of look: result: recorded {\"was\":\"b\"}, now absent",
        "requests: recorded 2 chat requests, now 1: turn 2, attempt 1 was not sent",
        "outcome: recorded completed, now failed (look: no luck)",
    ] {
        assert!(differences.iter().any(|line| line == expected), "{expected}: {differences:#?}");
    }
}

/// Returns a recording of five minutes, with a slow model and a slow tool.
pub(super) fn slow_recording() -> String {
    let body = |content: &str| json!({"model": "m", "messages": [{"role": "user", "content": content}], "stream": true});
    let frame = |value: Value| format!("data: {value}\n\n");
    let session = json!({"record": "session", "version": 3, "request_id": "req_1", "job_name": "", "worker": "default",
        "conversation": [{"role": "user", "content": "hello"}], "url": "http://x/v1/chat/completions", "model": "m",
        "server": {"dialect": "openai"}, "parallel_tool_calls": true, "submitted_at_ms": 1, "zone": "UTC",
        "local_time": "2026-01-01 00:00", "id_seed": 7, "engine": "0.1.0"});
    let mut at = 0;
    let mut lines = vec![session];
    let mut add = |seconds: u64, mut line: Value| {
        at += seconds * 1000;
        line["at_ms"] = json!(at);
        lines.push(line);
    };
    let mut called = call(0, "look", "{}");
    called["choices"][0]["delta"]["tool_calls"][0]["id"] = json!("abc123XYZ");
    add(0, json!({"record": "request", "turn": 1, "attempt": 1, "body": body("x")}));
    add(5, json!({"record": "response", "status": 200}));
    add(100, json!({"record": "data", "text": frame(delta("slow "))}));
    add(
        100,
        json!({"record": "data", "text": frame(called) + &frame(finish("tool_calls")) + "data: [DONE]\n\n"}),
    );
    add(0, json!({"record": "end"}));
    let event = |mut event: Value| {
        (event["id"], event["name"]) = (json!("abc123XYZ"), json!("look"));
        json!({"record": "event", "event": event})
    };
    add(0, event(json!({"type": "tool_call", "arguments": {}})));
    add(0, event(json!({"type": "tool_started"})));
    add(95, event(json!({"type": "tool_finished", "ok": true, "result": null, "elapsed_ms": 95_000})));
    add(0, json!({"record": "request", "turn": 2, "attempt": 1, "body": body("y")}));
    add(10, json!({"record": "response", "status": 200}));
    add(
        0,
        json!({"record": "data", "text": frame(delta("fine")) + &frame(finish("stop")) + "data: [DONE]\n\n"}),
    );
    add(0, json!({"record": "end"}));
    lines.iter().flat_map(|line| [line.to_string(), String::from("\n")]).collect()
}

/// The author of a recording is not its user, so its approvals do not allow calls to run.
#[tokio::test]
async fn an_approval_in_a_recording_runs_no_tool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([calls(&[("ask", "1"), ("look", "2")]), Answer::text("done")]);
    let config = |approvals| WorkerConfig { approvals, ..parallel() };
    let worker =
        Worker::start(config(Approvals::Allow), with_approval(timed(|_| 1)), http(&server.endpoint(), None));
    let recorded = record(&worker, &path, None).await;
    let forged = std::fs::read_to_string(&path).unwrap().replace("tool_finished", "tool_lost");
    let lost = folder.path().join("lost.jsonl");
    let kept = forged.lines().filter(|line| !line.contains("tool_lost")).flat_map(|line| [line, "\n"]);
    std::fs::write(&lost, kept.collect::<String>()).unwrap();
    for (approvals, ran) in [
        (Approvals::Ask, vec!["look"]),
        (Approvals::Refuse, vec!["look"]),
        (Approvals::Allow, vec!["ask", "look"]),
    ] {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let tools = || {
            let seen = Arc::clone(&seen);
            with_approval(FakeTools(move |call: ToolCall, _: CallContext| {
                seen.lock().unwrap().push(call.name.clone());
                async move { Ok(json!({"was": call.arguments["at"]})) }
            }))
        };
        let (again, differences) = play(&path, config(approvals), tools(), ReplayOptions::default()).await;
        assert_eq!((lines(&again[0]), differences), (lines(&recorded), vec![]));
        let mut names = std::mem::take(&mut *seen.lock().unwrap());
        names.sort();
        assert_eq!(names, ran, "{approvals:?}");
        // Without a recorded result, the call fails.
        let options = ReplayOptions { lenient: true, ..ReplayOptions::default() };
        let (_, differences) = play(&lost, config(approvals), tools(), options).await;
        assert_eq!(seen.lock().unwrap().contains(&String::from("ask")), approvals == Approvals::Allow);
        assert_eq!(differences.is_empty(), approvals == Approvals::Allow, "{differences:?}");
    }
}

#[tokio::test]
async fn user_secrets_are_not_recorded_and_the_replay_has_no_differences() {
    const SECRET: &str = "hunter2-and-more";
    const PIN: &str = "pin-4711";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    // One token per delta, like real models.
    let deltas: Vec<Value> =
        ["I ", "saw hunt", "er2-", "and-m", "ore and p", "in-47", "11."].map(delta).into();
    let arguments = json!({"at": SECRET}).to_string();
    let (first, second) = arguments.split_at(12);
    let more = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": second}}]}}]});
    let server = Server::script([
        Answer::chunks(&[delta("so far"), call(0, "look", first), more, finish("tool_calls")]).byte_by_byte(),
        Answer::chunks(&[deltas, vec![finish("stop")]].concat()),
    ]);
    let leaking = || {
        with_approval(FakeTools(|_: ToolCall, _: CallContext| async {
            Ok(json!({"password": SECRET, SECRET: [format!("Authorization: Bearer {SECRET}")]}))
        }))
    };
    let secrets = || {
        let mut secrets = Secrets::default();
        secrets.add_value(SECRET);
        secrets.add_pattern(r"\bpin-\d+").unwrap();
        secrets
    };
    let worker = Worker::start(config(), leaking(), http(&server.endpoint(), None));
    let recorder = Arc::new(Recorder::create(&path, Redaction::new(None, secrets())).unwrap());
    let prompt = format!("My password is {SECRET}, base64 aHVudGVyMi1hbmQtbW9yZQ==, {PIN}");
    let request = SubmitRequest {
        recorder: Some(recorder.clone()),
        system_prompt: Some(format!("Log in with {SECRET}, {PIN}.")),
        params: serde_json::Map::from_iter([(String::from("user"), json!({"token": SECRET}))]),
        ..SubmitRequest::prompt(prompt)
    };
    let id = worker.submit(request).unwrap();
    let recorded = super::harness::finish(&worker, &id).await;
    recorder.close().unwrap();
    assert_eq!(recorded.text(), format!("so farI saw {SECRET} and {PIN}."), "the outcome is not redacted");
    let text = std::fs::read_to_string(&path).unwrap();
    for part in [SECRET, "hunt", "er2-", PIN, "in-47", "aHVudGVyMi1hbmQtbW9yZ"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    // With and without the secrets: a redacted text equals any text.
    for secrets in [secrets(), Secrets::default()] {
        let options = ReplayOptions { secrets, ..ReplayOptions::default() };
        let (again, differences) = play(&path, config(), leaking(), options).await;
        assert_eq!(differences, Vec::<String>::new());
        assert_eq!(again[0].text(), "so farI saw [redacted-1] and [redacted-2].");
        // The number of text deltas may be smaller.
        let (mut before, mut after) = (recorded.names(), again[0].names());
        before.dedup();
        after.dedup();
        assert_eq!(before, after);
    }
    // Differences are redacted, too.
    let other = with_approval(FakeTools(|_: ToolCall, _: CallContext| async {
        Ok(json!({"now": format!("it is {SECRET}")}))
    }));
    let options = ReplayOptions { secrets: secrets(), lenient: true, ..ReplayOptions::default() };
    let (_, differences) = play(&path, config(), other, options).await;
    let text = differences.join("\n");
    assert!(text.contains("[redacted-") && !text.contains(SECRET), "{text}");
}

/// Creates a recording with all kinds of lines.
async fn rich_recording(path: &Path) -> Arc<Toolbox> {
    let server = Server::script([
        Answer::error(503, &[("retry-after-ms", "1")], "loading"),
        calls(&[("ask", "1"), ("look", "bad"), ("look", "3")]),
        Answer::stream().delta("cut").then(Act::Reset),
    ]);
    let tools = with_approval(timed(|_| 1));
    let mut config = parallel();
    config.approvals = Approvals::Allow;
    config.run.on_tool_error = deftool_lang::spec::OnFailure::Report;
    let worker = Worker::start(config, tools.clone(), http(&server.endpoint(), None));
    record(&worker, path, None).await;
    tools
}

#[tokio::test]
async fn the_replay_of_invalid_recordings_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let tools = rich_recording(&path).await;
    let good = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let bad = folder.path().join("bad.jsonl");
    let tried = Mutex::new(0);
    for round in 0..250 {
        let mut text = damaged(&lines, &mut random);
        if round % 5 == 0 {
            // Random bytes.
            let mut bytes = text.into_bytes();
            for _ in 0..3 {
                let at = random.usize(0..bytes.len());
                bytes[at] = random.u8(..);
            }
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        std::fs::write(&bad, &text).unwrap();
        let Ok(recording) = Recording::read(&bad) else { continue };
        *tried.lock().unwrap() += 1;
        let calls = recording.calls();
        assert!(calls.len() < 1000);
        let options = ReplayOptions {
            lenient: random.bool(),
            recorded_tools: random.bool(),
            ..ReplayOptions::default()
        };
        let playing = play(&bad, parallel(), tools.clone(), options);
        let ended = tokio::time::timeout(Duration::from_secs(60), playing).await;
        assert!(ended.is_ok(), "seed {seed}, round {round}:\n{text}");
    }
    assert!(*tried.lock().unwrap() > 50, "most are rejected: seed {seed}");
    // Too deep and too long.
    for (name, line) in [
        (
            "deep",
            format!(
                "{{\"record\":\"request\",\"turn\":1,\"attempt\":1,\"at_ms\":0,\"body\":{}}}",
                "[".repeat(100_000)
            ),
        ),
        ("long", format!("{{\"record\":\"data\",\"at_ms\":1,\"text\":\"{}", "x".repeat(5_000_000))),
        ("negative", String::from("{\"record\":\"response\",\"at_ms\":-1,\"status\":200}")),
        ("huge numbers", String::from("{\"record\":\"response\",\"at_ms\":1e400,\"status\":99999}")),
    ] {
        std::fs::write(&bad, format!("{}\n{line}\n", lines[0])).unwrap();
        let error = Recording::read(&bad).unwrap_err().to_string();
        assert!(
            error.contains("bad.jsonl:2: not a line of a recording") && error.len() < 1000,
            "{name}: {error}"
        );
    }
}

/// Drops, duplicates, swaps and changes lines.
fn damaged(lines: &[&str], random: &mut fastrand::Rng) -> String {
    let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    for _ in 0..random.usize(1..5) {
        let at = random.usize(0..lines.len());
        let other = random.usize(0..lines.len());
        match random.u8(0..7) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = lines[at].replace("\"at_ms\":", "\"at_ms\":99999999999999999"),
            4 => lines[at] = lines[at].replace("\"name\":\"look\"", "\"name\":\"ask\""),
            5 => lines[at] = lines[at].replacen("{\"", "{\"request\":2,\"", 1),
            _ => lines[at] = lines[at].replace("\"version\":3", "\"version\":1"),
        }
    }
    lines.join("\n") + "\n"
}
