//! `deftool run` and `deftool call`: the real binary in small projects.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod call;
mod endpoints;
#[cfg(unix)]
mod interrupts;
mod reload;
#[cfg(unix)]
mod streams;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use deftool_test_support::server::{Act, Answer, ClosedPort, Server, Texts, call, delta, finish, usage};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};
use crate::support::terminal::{Piped, Terminal};

fn run(project: &Project, server: &Server, arguments: &[&str]) -> Ended {
    let endpoint = server.endpoint();
    project.run(&[&["run", "hello", "--endpoint", &endpoint], arguments].concat())
}

/// Sends SIGINT, like Ctrl-C.
#[cfg(unix)]
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

/// Reads stdout until it contains `text`.
#[cfg(unix)]
fn read_until(child: &mut Child, text: &str) -> String {
    let out = child.stdout.as_mut().unwrap();
    let mut read = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&read).contains(text) {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "stdout ended: {}", String::from_utf8_lossy(&read));
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

#[test]
fn text_goes_to_stdout_and_everything_else_to_stderr() {
    let project = Project::new();
    let server = Server::script([
        Answer::chunks(&[
            delta("Let me see. "),
            call(0, "count", r#"{"text": "abc"}"#),
            finish("tool_calls"),
        ]),
        Answer::chunks(&[delta("Three.\n"), call(0, "done", r#"{"summary": "ok"}"#), finish("stop")]),
    ]);
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Let me see. Three.\n"));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines[0].starts_with("tool   count {\"text\":\"abc\"} → {\"length\":3} ("), "{lines:?}");
    assert_eq!(lines[1..], ["signal done {\"summary\":\"ok\"}"]);
    assert_eq!(server.posts()[0].body["model"], "scripted", "the server's first model");
}

#[test]
fn an_empty_reply_is_reported() {
    let project = Project::new();
    let done = call(0, "done", r#"{"summary": "ok"}"#);
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]});
    for (chunks, expected) in [
        (vec![finish("stop")], "note: the reply is empty: no text, no reasoning, no signal\n"),
        (vec![reasoning, finish("stop")], "note: the reply contains only reasoning; use --json to see it\n"),
        (vec![done, finish("stop")], "signal done {\"summary\":\"ok\"}\n"),
    ] {
        let ended = run(&project, &Server::script([Answer::chunks(&chunks)]), &[]);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", expected));
    }
}

#[test]
fn invalid_arguments_of_an_exit_call_are_marked() {
    let project = Project::new();
    for (arguments, shown, error) in [
        (r#"{"summary": 5}"#, r#"{"summary":5}"#, "done.summary: "),
        ("{}", "{}", "done: "),
        (r#"{"summary": oops}"#, r#""{\"summary\": oops}""#, "expected value"),
    ] {
        let server = || Server::script([Answer::chunks(&[call(0, "done", arguments), finish("stop")])]);
        let ended = run(&project, &server(), &[]);
        let expected = format!("signal done {shown} (invalid: {error}");
        assert!(ended.stderr.starts_with(&expected) && ended.stderr.ends_with(")\n"), "{}", ended.stderr);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(0), 1), "{}", ended.stderr);
        let signal = &run(&project, &server(), &["--json"]).finished()["signals"][0];
        assert!(signal["arguments_error"].as_str().unwrap().contains(error), "{signal}");
    }
}

#[test]
fn an_exit_call_does_not_end_a_reply() {
    let project = Project::new();
    let done = call(0, "done", r#"{"summary": "ok"}"#);
    let answer = Answer::stream().delta("Half").chunk(&done).delta(" an answer").end();
    let server = Server::script([answer]);
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "Half an answer\n"));
    let expected = "signal done {\"summary\":\"ok\"}\nerror[stream_incomplete]: the stream ended before";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
}

#[test]
fn a_tool_with_a_broken_or_missing_script_is_reported_as_omitted() {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(\n");
    let ended = run(&project, &Server::script([Answer::text("hi")]), &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert!(ended.stderr.ends_with("\ntool `count` is omitted\n"), "{}", ended.stderr);
    std::fs::remove_file(project.path("scripts/broken.lua")).unwrap();
    let ended = run(&project, &Server::script([Answer::text("hi")]), &[]);
    assert!(ended.stderr.contains("scripts/broken.lua does not exist\n"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(" and 1 other tool are omitted\n"), "{}", ended.stderr);
}

/// The other tools of the project are neither loaded nor checked.
#[test]
fn a_worker_with_a_list_of_tools_loads_only_these() {
    let worker = |tools: &str| format!("(defworker :name \"w\" :tools [{tools}] :exit-tools [\"done\"])");
    let project = Project::with_worker(&worker("\"count\""));
    project.write("specs/other.eld", "(deftool :name \"other\" :description \"d\" :type 1 :args 2)");
    let ask = || run(&project, &Server::script([Answer::text("hi")]), &[]);
    let ended = ask();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "hi\n", ""));
    // The tools of another worker are known.
    project.write("specs/second.eld", "(defworker :name \"second\" :tools [\"other\"])");
    let ended = run(&project, &Server::script([Answer::text("hi")]), &["--worker", "w"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    std::fs::remove_file(project.path("specs/second.eld")).unwrap();
    // A name that no tool has is still found, and so is the second tool with a name.
    project.write("specs/worker.eld", worker("\"count\" \"othr\""));
    let ended = ask();
    let expected = "specs/worker.eld:1:38: error[DT302]: unknown tool `othr` in worker `w`";
    assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{ended:?}");
    project.write("specs/worker.eld", worker("\"count\""));
    project.write("specs/twin.eld", "(deftool :name \"count\" :description \"d\" :args ())");
    let ended = ask();
    assert!(ended.stderr.contains("specs/twin.eld:1:16: error["), "{}", ended.stderr);
    assert!(!ended.stderr.contains("specs/other.eld"), "{}", ended.stderr);
}

/// The request is not reported as canceled.
#[cfg(unix)]
#[test]
fn a_closed_stdout_is_silent_and_a_full_disk_is_an_error() {
    let project = Project::new();
    // The server ends when the client disconnects.
    let server = || Server::script([Answer::stream().delta("one").then(Act::Silence)]);
    let (open, full) = (server(), server());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = project.command(&["run", "hello", "--endpoint", &open.endpoint()]);
    let ended = Ended::of(command.stdout(writer).output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), ""));
    if let Ok(file) = std::fs::File::options().write(true).open("/dev/full") {
        let mut command = project.command(&["run", "hello", "--endpoint", &full.endpoint()]);
        let ended = Ended::of(command.stdout(file).output().unwrap());
        let expected = "error: cannot write the result to stdout: No space left on device (os error 28)\n";
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), expected));
    }
}

/// Another process may write to the same stderr.
#[cfg(unix)]
#[test]
fn each_line_on_stderr_is_one_write() {
    let project = Project::new();
    let server = Server::script([
        Answer::chunks(&[call(0, "count", r#"{"text": "abc"}"#), finish("tool_calls")]),
        Answer::text("Three."),
    ]);
    let (reader, writer) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let mut command = project.command(&["run", "hello", "--endpoint", &server.endpoint()]);
    let ended = command.stderr(std::os::fd::OwnedFd::from(writer)).output().unwrap();
    assert!(ended.status.success());
    drop(command);
    let mut write = vec![0; 4096];
    let count = reader.recv(&mut write).unwrap();
    let write = String::from_utf8_lossy(&write[..count]);
    assert!(write.starts_with("tool   count ") && write.ends_with(")\n"), "{write:?}");
}

#[test]
fn a_prompt_is_read_from_stdin_unchanged() {
    let project = Project::new();
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let ended = project.run_with_stdin(&["run", "-", "--endpoint", &endpoint], " één\ntwo\n".as_bytes());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert_eq!(server.posts()[0].texts("user"), [" één\ntwo\n"]);
    // The size of stdin is limited, and truncated text is not sent.
    let endless = vec![b'a'; (64 << 20) + 1];
    for arguments in [&["run", "-", "--endpoint", &endpoint][..], &["call", "count", "-"]] {
        let ended = project.run_with_stdin(arguments, &endless);
        assert!(ended.stderr.contains("on stdin exceeds 64 MiB"), "{ended:?}");
    }
    assert_eq!(server.posts().len(), 1);
}

/// The prompt comes first, then files, then stdin. Without a prompt, stdin is the prompt.
#[test]
fn stdin_and_files_are_added_to_the_prompt() {
    let project = Project::new();
    project.write("notes.txt", "one\ntwo\n");
    let file = "<file name=\"notes.txt\">\none\ntwo\n</file>";
    for (arguments, stdin, expected) in [
        (vec!["Explain."], "a diff\n", String::from("Explain.\n\na diff\n")),
        (vec!["Explain.", "-f", "notes.txt"], "a diff", format!("Explain.\n\n{file}\n\na diff")),
        (vec!["Explain.", "-f", "notes.txt"], "", format!("Explain.\n\n{file}")),
        (vec!["-f", "notes.txt"], "Explain.\n", format!("Explain.\n\n{file}")),
        (vec!["-", "-f", "notes.txt"], "Explain.", format!("Explain.\n\n{file}")),
        (vec!["-f", "notes.txt"], "", String::from(file)),
        (vec![], "Explain.\n", String::from("Explain.\n")),
        (vec!["Explain.", "--no-stdin"], "a diff\n", String::from("Explain.")),
    ] {
        let server = Server::script([Answer::text("hi")]);
        let endpoint = server.endpoint();
        let ended = project
            .run_with_stdin(&[&["run", "--endpoint", &endpoint][..], &arguments].concat(), stdin.as_bytes());
        let added = expected.contains("\n\na diff");
        let note = format!(
            "note: added {} bytes of stdin to the prompt; use --no-stdin to ignore stdin\n",
            stdin.len()
        );
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), if added { &*note } else { "" }),
            "{arguments:?}"
        );
        assert_eq!(server.posts()[0].texts("user"), [expected], "{arguments:?}");
    }
    project.write("raw", b"a\xff");
    let failed = project.run(&["run", "hi", "-f", "raw"]);
    assert_eq!(
        (failed.code, failed.stderr.as_str()),
        (Some(2), "error: -f raw: cannot be read: byte 2 is not UTF-8\n")
    );
    let failed = project.run(&["run", "hi", "-f", "gone"]);
    assert!(failed.stderr.starts_with("error: -f gone: cannot be read: "), "{failed:?}");
}

#[test]
fn an_open_stdin_is_reported() {
    let project = Project::new();
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let mut command = project.command(&["run", "Explain.", "--endpoint", &endpoint]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut note = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut note).unwrap();
    assert_eq!(note, "note: reading stdin to its end; use --no-stdin to ignore it\n");
    stdin.write_all(b"late").unwrap();
    drop(stdin);
    assert_eq!(Ended::of(child.wait_with_output().unwrap()).code, Some(0));
    assert_eq!(server.posts()[0].texts("user"), ["Explain.\n\nlate"]);
}

#[test]
fn parameters_on_the_command_line_take_precedence() {
    let project = Project::with_worker("(defworker :name \"a\" :params (:temperature 1 :top-p 0.5))");
    let server = Server::script([Answer::text("hi")]);
    let ended = run(
        &project,
        &server,
        &["--param", "temperature=0", "--param", "stop=[\"END\"]", "--param", "user=me"],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let body = &server.posts()[0].body;
    assert_eq!(
        [&body["temperature"], &body["top_p"], &body["stop"], &body["user"]],
        [&json!(0), &json!(0.5), &json!(["END"]), &json!("me")]
    );
    for (param, expected) in [("tools=1", "`tools` is set by deftool"), ("x", "expected KEY=VALUE")] {
        let failed = run(&project, &server, &["--param", param]);
        assert!(failed.code == Some(2) && failed.stderr.contains(expected), "{failed:?}");
    }
}

#[test]
fn run_works_outside_a_project_with_an_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let arguments = ["run", "hello", "--endpoint", &endpoint, "--model", "m"];
    let ended = Ended::of(command_in(folder.path(), &arguments).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "hi\n", ""));
    assert_eq!(server.posts()[0].body.get("tools"), None);
}

#[test]
fn json_prints_all_events_and_finished_last() {
    let project = Project::new();
    let server = Server::script([
        Answer::chunks(&[
            json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}),
            delta("text"),
            call(0, "count", r#"{"text": "abc"}"#),
            finish("tool_calls"),
        ]),
        Answer::chunks(&[delta("!"), call(0, "done", r#"{"summary": "ok"}"#), finish("stop"), usage(7, 3)]),
    ]);
    let ended = run(&project, &server, &["--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let events = ended.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "submitted",
            "turn_started",
            "reasoning",
            "text",
            "tool_call",
            "tool_started",
            "tool_finished",
            "budget",
            "turn_started",
            "text",
            "signal",
            "finished",
        ]
    );
    let keys = |event: &Value| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&events[0]),
        ["type", "version", "request_id", "job_name", "worker", "model", "submitted_at_ms",]
    );
    let finished = ended.finished();
    assert_eq!(
        keys(&finished),
        [
            "type",
            "state",
            "finish_reason",
            "text",
            "signals",
            "usage",
            "first_token_ms",
            "tool_iterations",
            "reasoning",
        ]
    );
    assert_eq!(finished["state"], "completed");
    assert_eq!(finished["finish_reason"], "stop");
    assert_eq!(finished["text"], "text!");
    assert_eq!(finished["usage"], json!({"prompt_tokens": 7, "completion_tokens": 3}));
    assert_eq!(finished["tool_iterations"], 1);
    let signal = &finished["signals"][0];
    assert_eq!(keys(signal), ["tool_name", "arguments", "emitted_at_ms"]);
    assert_eq!(signal["arguments"], json!({"summary": "ok"}));
}

#[test]
fn a_temporary_error_before_the_reply_is_retried_and_counted() {
    let project = Project::new();
    let details = json!({"choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_cache_hit_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 12}
    }});
    let server = Server::script([
        Answer::error(502, &[("retry-after-ms", "1")], "bad gateway"),
        Answer::default().then(Act::Reset),
        Answer::chunks(&[delta("fine"), finish("stop"), details]),
    ]);
    let ended = run(&project, &server, &["--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let retries: Vec<Value> = ended.events().into_iter().filter(|event| event["type"] == "retry").collect();
    assert_eq!((&retries[0]["attempt"], &retries[0]["delay_ms"]), (&json!(2), &json!(1)));
    assert_eq!((retries.len(), &retries[1]["attempt"]), (2, &json!(3)));
    let finished = ended.finished();
    assert_eq!(
        finished["usage"],
        json!({"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 64, "reasoning_tokens": 12,
               "retries": 2})
    );
    assert!(finished["first_token_ms"].is_u64(), "{finished}");
}

#[test]
fn a_finish_reason_that_reports_a_failure_fails_the_request() {
    let project = Project::new();
    for reason in ["network_error", "abort", "function_call_filter: MALFORMED_FUNCTION_CALL"] {
        let server = Server::script([Answer::chunks(&[delta("Half"), finish(reason)])]);
        let ended = run(&project, &server, &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "Half\n"), "{ended:?}");
        assert!(ended.stderr.contains(&format!("finish reason `{reason}`")), "{ended:?}");
    }
    let server = Server::script([Answer::chunks(&[delta("Whole"), finish("surprise")])]);
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Whole\n"), "{ended:?}");
    assert!(ended.stderr.contains("warn   unknown finish reason `surprise`"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_the_usage_in_one_line() {
    let project = Project::new();
    let server = Server::answering(|_, _| Answer::chunks(&[delta("Hi."), finish("stop"), usage(7, 3)]));
    let endpoint = server.endpoint();
    let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], Piped::Stdout);
    terminal.wait_for("usage  7 input tokens, 3 output tokens, first token after ");
    terminal.end();
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("Hi.\n", ""));
}

#[test]
fn a_failed_request_exits_with_1_and_keeps_the_text() {
    let project = Project::new();
    let server =
        Server::script([Answer::chunks(&[delta("so far"), call(0, "broken", "{}"), finish("tool_calls")])]);
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "so far\n"));
    let expected = "error[script]: broken: scripts/broken.lua:2: no luck";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(ended.stderr.contains("scripts/broken.lua:5"), "the traceback: {}", ended.stderr);

    let ended = run(&project, &server, &["--json"]);
    assert_eq!(ended.code, Some(1));
    let finished = ended.finished();
    let keys: Vec<&String> = finished.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "type",
            "state",
            "finish_reason",
            "fail_reason",
            "kind",
            "detail",
            "text",
            "signals",
            "first_token_ms",
            "tool_iterations",
        ]
    );
    assert_eq!((&finished["state"], &finished["finish_reason"]), (&json!("failed"), &json!("failed")));
    assert_eq!(finished["fail_reason"], "tool_execution_error");
    assert_eq!(finished["kind"], "script");
}

#[test]
fn an_impossible_request_exits_with_2_and_one_line() {
    let project = Project::new();
    let empty = tempfile::tempdir().unwrap();
    let several = Project::with_worker(r#"(defworker :name "a") (defworker :name "b")"#);
    let broken = Project::with_worker(r#"(defworker :name "a" :slots "many")"#);
    let ended = |project: &Project, arguments: &[&str]| project.run(&[&["run", "hi"], arguments].concat());
    let cases = [
        (ended(&project, &["--worker", "x"]), "unknown worker `x`; the project has no workers"),
        (ended(&several, &[]), "the project has several workers (a, b); select one with --worker NAME"),
        (ended(&several, &["--worker", "x"]), "unknown worker `x`; known workers: a, b"),
        (ended(&broken, &[]), "the worker `a` has errors; see `deftool check`"),
        (
            ended(&project, &["--endpoint", "localhost:1"]),
            "invalid endpoint `localhost:1`: expected an HTTP URL; write http://HOST:PORT/v1",
        ),
        (ended(&project, &["-C", "nowhere"]), "cannot read"),
        (Ended::of(command_in(empty.path(), &["run", "hi"]).output().unwrap()), "`deftool init`"),
        (project.run_with_stdin(&["run", "-"], b"\xff\xfe"), "the prompt on stdin cannot be read"),
        (project.run_with_stdin(&["run", "-"], b" \n"), "the prompt on stdin is empty"),
        (project.run(&["run", " "]), "the prompt is empty"),
    ];
    for (ended, expected) in cases {
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{expected}: {ended:?}");
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(expected), "{expected}: {}", ended.stderr);
    }
    assert_eq!(project.run(&["run"]).code, Some(2), "no prompt");
    // A replay sends nothing, so it has no endpoint and model.
    for option in ["--model", "--endpoint"] {
        let ended = project.run(&["run", "--replay", "a.jsonl", option, "x"]);
        assert_eq!((ended.code, ended.stderr.contains("cannot be used with")), (Some(2), true), "{ended:?}");
    }
}
