//! All timers, with a paused clock and a fake transport; some with a real socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deftool_chat::request::{Event, FailReason};
use deftool_lang::spec::Timers;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};
use deftool_test_support::server::{Act, Answer, Server, delta, event, finish};
use deftool_worker::{SubmitRequest, Worker};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::harness::*;
use super::scripted::{Piece, Reply, Scripted};

fn text(text: &str) -> Piece {
    Piece::Bytes(event(&delta(text)))
}

fn comment() -> Piece {
    Piece::Bytes(String::from(": ping\n\n"))
}

fn progress(processed: u64) -> Piece {
    let chunk = json!({"choices": [], "prompt_progress": {"processed": processed, "total": 100}});
    Piece::Bytes(event(&chunk))
}

fn wait(seconds: u64) -> Piece {
    Piece::Wait(Duration::from_secs(seconds))
}

fn last() -> Piece {
    Piece::Bytes(event(&finish("stop")) + "data: [DONE]\n\n")
}

/// Runs a request with this reply. Returns the failure kind or `completed`, the seconds it took, and the text.
async fn play(pieces: impl IntoIterator<Item = Piece>) -> (String, u64, String) {
    let worker = Worker::start(config(), echo(), Scripted::new([Reply::with(pieces)]));
    let started = Instant::now();
    let ended = ask_for_hours(&worker).await;
    let kind = ended.outcome.kind.clone().unwrap_or_else(|| String::from("completed"));
    if let Some(detail) = &ended.outcome.detail {
        assert!(detail.contains("http://scripted/v1"), "{detail}");
    }
    assert_eq!(worker.in_flight(), 0);
    (kind, started.elapsed().as_secs(), ended.outcome.text.clone())
}

fn ends(kind: &str, seconds: u64, text: &str) -> (String, u64, String) {
    (kind.to_owned(), seconds, text.to_owned())
}

#[test]
fn the_defaults_match_the_documentation() {
    let seconds = Duration::from_secs;
    let Timers { connect, headers, first_token, stall, tool, total } = Timers::default();
    assert_eq!((connect, headers, first_token, total), (seconds(3), None, None, None));
    assert_eq!((stall, tool), (seconds(300), seconds(30)));
}

/// The time includes the response headers, which some servers send at once and others with the first token.
#[tokio::test(start_paused = true)]
async fn only_first_token_limits_the_time_until_the_first_token() {
    let head = |after| Reply { after: Some(Duration::from_secs(after)), ..Reply::with([Piece::Silence]) };
    for (url, limit) in [
        ("http://scripted/v1", 600),
        ("https://api.example.com/v1", 600),
        ("http://127.0.0.1:8080/v1", 1800),
        ("http://localhost/v1", 1800),
    ] {
        for (headers, first_token, reply, kind, (seconds, key)) in [
            (None, None, Reply::silent(), "headers_timeout", (limit, ":first-token")),
            (None, None, head(0), "first_token_timeout", (limit, ":first-token")),
            (None, None, head(500), "first_token_timeout", (limit, ":first-token")),
            (None, Some(20), Reply::silent(), "headers_timeout", (20, ":first-token")),
            (Some(30), None, Reply::silent(), "headers_timeout", (30, ":headers")),
            (Some(30), None, head(20), "first_token_timeout", (limit, ":first-token")),
            (Some(3000), Some(20), Reply::silent(), "headers_timeout", (20, ":first-token")),
        ] {
            let config = with_timers(|timers| {
                timers.headers = headers.map(Duration::from_secs);
                timers.first_token = first_token.map(Duration::from_secs);
            });
            let worker = Worker::start(config, echo(), Scripted::at(url, [reply]));
            let started = Instant::now();
            let ended = ask_for_hours(&worker).await;
            let (_, found, detail, _) = ended.failed();
            assert_eq!((found, started.elapsed().as_secs()), (kind, seconds), "{url}: {detail}");
            let end = format!("within {seconds} s (the worker's {key})");
            assert!(detail.starts_with(url) && detail.ends_with(&end), "{detail}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_head_and_a_late_first_token_are_accepted() {
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    let reply = Reply { after: Some(minutes(9)), ..Reply::with([text("late"), last()]) };
    let worker = Worker::start(config(), echo(), Scripted::new([reply]));
    assert_eq!(ask_for_hours(&worker).await.text(), "late");
    assert_eq!(play([wait(590), text("late"), last()]).await, ends("completed", 590, "late"));
}

#[tokio::test(start_paused = true)]
async fn any_byte_after_the_first_token_resets_the_stall_timer() {
    assert_eq!(play([text("a"), Piece::Silence]).await, ends("stall_timeout", 300, "a"));
    let pieces = [text("a"), wait(299), comment(), wait(299), text("b"), Piece::Silence];
    assert_eq!(play(pieces).await, ends("stall_timeout", 898, "ab"));
}

/// Arguments that are held back until they are complete.
#[tokio::test(start_paused = true)]
async fn a_call_may_arrive_after_minutes_without_a_byte() {
    let called = || {
        let call = deftool_test_support::server::call(0, "done", r#"{"n":1}"#);
        [wait(240), Piece::Bytes(event(&call)), last()]
    };
    assert_eq!(play([text("so far")].into_iter().chain(called())).await, ends("completed", 240, "so far"));
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "I write."}}]});
    let begun = [Piece::Bytes(event(&reasoning))];
    assert_eq!(play(begun.into_iter().chain(called())).await, ends("completed", 240, ""));
}

#[tokio::test(start_paused = true)]
async fn comments_do_not_extend_the_first_token_and_later_extend_a_reply_by_30_minutes() {
    let comments = |count| std::iter::repeat_n([wait(30), comment()], count).flatten();
    assert_eq!(play(comments(200)).await, ends("first_token_timeout", 600, ""));
    let late = comments(19).chain([text("at last"), last()]);
    assert_eq!(play(late).await, ends("completed", 570, "at last"));
    let begun = || [text("so far")].into_iter();
    assert_eq!(play(begun().chain(comments(200))).await, ends("stall_timeout", 1800, "so far"));
    let late = begun().chain(comments(59)).chain([text(", the end"), last()]);
    assert_eq!(play(late).await, ends("completed", 1770, "so far, the end"));
}

#[tokio::test(start_paused = true)]
async fn prompt_progress_extends_the_first_token_and_counts_as_an_event_afterwards() {
    let slow = || (0..40).flat_map(|number| [wait(100), progress(number)]);
    let long = slow().chain([text("at last"), last()]);
    assert_eq!(play(long).await, ends("completed", 4000, "at last"));
    let begun = [text("so far")].into_iter().chain(slow()).chain([Piece::Silence]);
    assert_eq!(play(begun).await, ends("stall_timeout", 4300, "so far"));
}

#[tokio::test(start_paused = true)]
async fn calls_and_reasoning_are_tokens() {
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm "}}]});
    let arguments = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}}]});
    for token in [reasoning, arguments] {
        let tokens = (0..20).flat_map(|_| [wait(100), Piece::Bytes(event(&token))]);
        let (kind, seconds, _) = play(tokens.chain([Piece::Silence])).await;
        assert!(seconds >= 2000, "{token}: {kind} after {seconds} s");
    }
}

/// A stream that is always ready must not starve the deadlines or other tasks.
#[tokio::test]
async fn a_flood_of_comments_does_not_prevent_stall_detection_or_cancel() {
    let flood = Scripted::new([Reply::with([Piece::Flood])]);
    let config = with_timers(|timers| timers.first_token = Some(Duration::from_millis(150)));
    let ended = ask(&Worker::start(config, echo(), flood)).await;
    assert_eq!(ended.failed().1, "first_token_timeout");

    let flood = Scripted::new([Reply::with([text("so far"), Piece::Flood])]);
    let worker = Worker::start(super::harness::config(), echo(), flood);
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    wait_for_text(&worker, &id, 6).await;
    worker.cancel(&id);
    let ended = super::harness::finish(&worker, &id).await;
    assert_eq!(ended.failed().0, FailReason::Canceled);
}

#[tokio::test(start_paused = true)]
async fn an_open_connection_after_the_finish_reason_does_not_delay_the_end() {
    let finished = || [text("whole"), Piece::Bytes(event(&finish("stop")))];
    let (kind, seconds, text) = play(finished().into_iter().chain([Piece::Silence])).await;
    assert_eq!((kind.as_str(), text.as_str()), ("completed", "whole"));
    assert!(seconds <= 10, "{seconds}");
    let comments = std::iter::repeat_n([wait(3), comment()], 100).flatten();
    let (kind, seconds, _) = play(finished().into_iter().chain(comments)).await;
    assert_eq!(kind, "completed");
    assert!(seconds <= 10, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn tool_limit_is_per_call_and_overridden_by_the_tool() {
    for (tool, limit) in [("look", Duration::from_secs(30)), ("slow", Duration::from_millis(50))] {
        let called = Reply::with([
            text("so far"),
            Piece::Bytes(event(&deftool_test_support::server::call(0, tool, "{}"))),
            last(),
        ]);
        let (toolbox, dropped) = endless();
        let worker = Worker::start(config(), toolbox, Scripted::new([called]));
        let started = Instant::now();
        let ended = ask_for_hours(&worker).await;
        let (reason, kind, detail, text) = ended.failed();
        assert_eq!((reason, kind, text), (FailReason::ToolExecutionError, "timeout", "so far"));
        assert_eq!(detail, format!("{tool}: no result within {} s", limit.as_secs_f64()));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        // A runner has one second to stop the call itself.
        assert!(
            (limit..limit + Duration::from_secs(2)).contains(&started.elapsed()),
            "{:?}",
            started.elapsed()
        );
    }
}

/// A runner that stops its call reports the location. A tool may have a longer limit than the worker.
#[tokio::test(start_paused = true)]
async fn tool_runners_have_extra_time_and_tools_can_set_their_limit() {
    let called = |tool: &str| {
        Reply::with([Piece::Bytes(event(&deftool_test_support::server::call(0, tool, "{}"))), last()])
    };
    for (tool, millis, end) in [
        ("look", 10, Ok("seen")),
        ("look", 500, Err("look: stopped in line 3")),
        ("look", 5_000, Err("look: no result within 0.02 s")),
        // Its own limit is 50 ms.
        ("slow", 40, Ok("seen")),
    ] {
        let runner = FakeTools(move |_: ToolCall, context: CallContext| async move {
            let took = Duration::from_millis(millis);
            sleep(took).await;
            let stopped = ToolError::new(ToolErrorKind::Timeout, "stopped in line 3");
            if took < context.timeout.unwrap() { Ok(Value::Null) } else { Err(stopped) }
        });
        let replies = [called(tool), Reply::with([text("seen"), last()])];
        let config = with_timers(|timers| timers.tool = Duration::from_millis(20));
        let ended = ask(&Worker::start(config, toolbox(runner), Scripted::new(replies))).await;
        match end {
            Ok(text) => assert_eq!(ended.text(), text, "{tool} {millis}"),
            Err(detail) => assert_eq!(ended.failed().2, detail, "{tool} {millis}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn total_limits_the_request_in_every_phase() {
    let config = || with_timers(|timers| timers.total = Some(Duration::from_secs(10)));
    let slow_tool = || {
        toolbox(FakeTools(|_: ToolCall, _| async {
            sleep(Duration::from_secs(7)).await;
            Ok(Value::Null)
        }))
    };
    let called = || {
        Reply::with([
            text("so far"),
            Piece::Bytes(event(&deftool_test_support::server::call(0, "look", "{}"))),
            last(),
        ])
    };
    let cases = [
        ("before the head", vec![Reply::silent()], ""),
        ("in the stream", vec![Reply::with([text("so far"), Piece::Silence])], "so far"),
        (
            "in a stream of comments",
            vec![Reply::with(
                [text("so far")].into_iter().chain(std::iter::repeat_n([wait(1), comment()], 20).flatten()),
            )],
            "so far",
        ),
        ("in a tool", vec![called(), called()], "so farso far"),
    ];
    for (name, replies, expected) in cases {
        let worker = Worker::start(config(), slow_tool(), Scripted::new(replies));
        let started = Instant::now();
        let ended = ask_for_hours(&worker).await;
        let (reason, kind, detail, text) = ended.failed();
        assert_eq!((reason, kind), (FailReason::UnknownError, "total_timeout"), "{name}");
        assert_eq!(detail, "the request took longer than 10 s (the worker's :total)", "{name}");
        assert_eq!(text, expected, "{name}");
        assert_eq!(started.elapsed().as_secs(), 10, "{name}");
    }
}

#[tokio::test]
async fn stall_disconnects_a_real_socket() {
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let worker = worker(&server, with_timers(|timers| timers.stall = Duration::from_millis(100)));
    let ended = ask(&worker).await;
    let (reason, kind, detail, text) = ended.failed();
    assert_eq!((reason, kind, text), (FailReason::StallTimeout, "stall_timeout", "so far"));
    assert!(detail.ends_with("no byte for 0.1 s (the worker's :stall)"), "{detail}");
    tokio::task::spawn_blocking(move || server.wait_for_disconnect()).await.unwrap();
}

/// TCP keep-alive finds a lost connection long before `:first-token` does.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernel_probes_the_connection_of_a_silent_server() {
    let server = Server::script([Answer::stream().then(Act::Silence)]);
    let worker = worker(&server, config());
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    let port: u16 = server.endpoint().rsplit_once(':').unwrap().1.trim_end_matches("/v1").parse().unwrap();
    // The remote address, the state (01: established) and the timer (02: keep-alive).
    let is_probed = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2].ends_with(&format!(":{port:04X}")) && columns[3] == "01" && columns[5].starts_with("02:")
    };
    while !std::fs::read_to_string("/proc/net/tcp").unwrap().lines().skip(1).any(is_probed) {
        sleep(Duration::from_millis(10)).await;
    }
    worker.cancel(&id);
}

/// The kernel accepts connections up to the backlog by itself. The next one never completes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connect_limit_applies_if_no_process_accepts() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    let limit = Duration::from_millis(200);
    while let Ok(connected) = tokio::time::timeout(limit, tokio::net::TcpStream::connect(address)).await {
        held.push(connected.unwrap());
        assert!(held.len() < 100, "the backlog is unlimited");
    }
    let endpoint = format!("http://{address}/v1");
    let transport = deftool_worker::HttpTransport::new(&endpoint, None, limit).unwrap();
    let worker = Worker::start(config(), echo(), Arc::new(transport));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    // The kernel alone gives up after two minutes, `finish` after 30 s.
    let ended = super::harness::finish(&worker, &id).await;
    let (reason, kind, detail, _) = ended.failed();
    assert_eq!((reason, kind), (FailReason::ConnectFailed, "connect_failed"));
    assert!(detail.contains(&endpoint) && detail.contains("check the address"), "{detail}");
    assert!(!ended.events.iter().any(|event| matches!(event, Event::Retry { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_complete_exit_call_is_a_signal_for_any_end_of_the_reply() {
    let came = || {
        let call = deftool_test_support::server::call(0, "done", r#"{"n":1}"#);
        [text("so far\n"), Piece::Bytes(event(&call))]
    };
    let signals = |ended: &Ended| {
        let signals = ended.outcome.signals.iter();
        signals.map(|signal| (signal.tool_name.clone(), signal.arguments.clone())).collect::<Vec<_>>()
    };
    let recorded = [(String::from("done"), json!({"n": 1}))];
    let loops = Piece::Bytes(event(&delta(&"the same line, again and again\n".repeat(40))));
    for (last, total, kind) in [
        (Piece::Silence, None, "stall_timeout"),
        (Piece::Silence, Some(Duration::from_secs(5)), "total_timeout"),
        (Piece::Broken, None, "stream_incomplete"),
        (loops, None, ""),
    ] {
        let config = with_timers(|timers| timers.total = total);
        let scripted = Scripted::new([Reply::with(came().into_iter().chain([last, Piece::Silence]))]);
        let ended = ask_for_hours(&Worker::start(config, echo(), scripted)).await;
        assert_eq!(ended.outcome.kind.as_deref().unwrap_or_default(), kind);
        assert_eq!(signals(&ended), recorded, "{kind}");
        assert!(ended.outcome.text.starts_with("so far\n"));
    }
    let scripted = Scripted::new([Reply::with(came().into_iter().chain([Piece::Silence]))]);
    let worker = Worker::start(config(), echo(), scripted);
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    wait_for_text(&worker, &id, 7).await;
    sleep(Duration::from_secs(1)).await;
    worker.cancel(&id);
    let ended = finish_within(&worker, &id, Duration::from_secs(5)).await;
    assert_eq!((ended.failed().0, signals(&ended).as_slice()), (FailReason::Canceled, &recorded[..]));
}

#[tokio::test(start_paused = true)]
async fn events_after_done_are_ignored_for_any_chunks() {
    let late = event(&deftool_test_support::server::call(0, "look", "{}")) + &event(&delta(" late"));
    let last = event(&finish("stop")) + "data: [DONE]\n\n";
    for pieces in [
        vec![Piece::Bytes(format!("{}{last}{late}", event(&delta("whole"))))],
        vec![text("whole"), Piece::Bytes(last.clone()), Piece::Bytes(late.clone())],
        vec![text("whole"), Piece::Bytes(last), wait(1), Piece::Bytes(late)],
    ] {
        let pieces = pieces.into_iter().chain([Piece::End]);
        assert_eq!(play(pieces).await, ends("completed", 0, "whole"));
    }
}
