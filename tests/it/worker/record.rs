//! `deftool run --record` and `--replay`: the real binary, without a server at replay.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;

use deftool_chat::Api;
use deftool_test_support::server::{Act, Answer, Server, call, delta, finish, usage};
use serde_json::json;

use super::harness::turn;
use crate::support::project::{Ended, Project};

const WORKER: &str = r#"(defworker :name "w" :tool-budget 3 :system "Be brief." :params (:temperature 0))"#;

fn two_turns() -> Server {
    Server::script([
        Answer::chunks(&[
            delta("Counting. "),
            call(0, "count", r#"{"text": "héllo"}"#),
            finish("tool_calls"),
        ]),
        Answer::chunks(&[
            delta("Six bytes."),
            call(0, "done", r#"{"summary": "counted"}"#),
            finish("stop"),
            usage(9, 8),
        ])
        .byte_by_byte(),
    ])
}

/// Records two turns in `session.jsonl` and returns the output. The server is stopped.
fn recorded() -> (Project, Ended) {
    let project = Project::with_worker(WORKER);
    let server = two_turns();
    let endpoint = server.endpoint();
    let ended =
        project.run(&["run", "count", "--json", "--endpoint", &endpoint, "--record", "session.jsonl"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    (project, ended)
}

/// Other users cannot read the recording, even if it replaces a file that they could read.
#[cfg(unix)]
#[test]
fn a_recording_is_private_from_its_first_byte() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let recorder = deftool_record::Recorder::create(&path, deftool_record::Redaction::default()).unwrap();
    assert_eq!((mode(&path), fs::read(&path).unwrap().len()), (0o600, 0));
    drop(recorder);
    fs::write(&path, "{\"record\":\"session\",\"older\":1}\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let _recorder = deftool_record::Recorder::create(&path, deftool_record::Redaction::default()).unwrap();
    assert_eq!((mode(&path), fs::read(&path).unwrap().len()), (0o600, 0));
}

#[test]
fn a_replay_prints_the_same_lines_without_server_key_or_endpoint() {
    let (project, recorded) = recorded();
    let again = project.run(&["run", "--replay", "session.jsonl", "--json"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert_eq!(again.stdout, recorded.stdout);
    assert_eq!(recorded.finished()["text"], "Counting. Six bytes.");
    // Also as text, and with the recorded prompt on the command line.
    let text = project.run(&["run", "count", "--replay", "session.jsonl"]);
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), "Counting. Six bytes.\n"));
    assert!(text.stderr.contains("count text: \"héllo\" → {\"length\":6}"), "{}", text.stderr);
}

#[test]
fn a_recording_contains_no_key() {
    let project = Project::with_worker(WORKER);
    let key = "sk-0123456789abcdef";
    let server = Server::script([Answer::text(&format!("Your key is {key}!"))]);
    let mut command = project.command(&[
        "run",
        "hello",
        "--endpoint",
        &server.endpoint(),
        "--record",
        "session.jsonl",
        "--json",
    ]);
    let ended = Ended::of(command.env("OPENAI_API_KEY", key).output().unwrap());
    assert_eq!(server.posts()[0].header("authorization"), Some(format!("Bearer {key}").as_str()));
    let recording = fs::read_to_string(project.path("session.jsonl")).unwrap();
    for text in [&ended.stdout, &ended.stderr, &recording] {
        assert!(!text.contains(key), "{text}");
    }
    assert!(ended.stdout.contains("Your key is [redacted]!"), "{}", ended.stdout);
    for line in recording.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].is_string(), "{line}");
    }
}

#[test]
fn differences_are_reported_by_field() {
    let (project, _) = recorded();
    let replay = ["run", "--replay", "session.jsonl"];
    let assert_differences = |ended: &Ended, parts: &[&str]| {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("error[replay_differs]"), "{}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
    };
    // A different prompt.
    let ended = project.run(&["run", "count again", "--replay", "session.jsonl"]);
    assert_differences(
        &ended,
        &["turn 1: messages[1].content: recorded", "\\n\\ncount\"", "\\n\\ncount again\""],
    );
    assert_eq!(ended.stdout, "");
    // Different parameters, budget (in the user's message) and system message.
    project.write(
        "specs/worker.eld",
        r#"(defworker :name "w" :tool-budget 5 :system "Be very brief." :params (:temperature 1 :seed 7))"#,
    );
    assert_differences(
        &project.run(&replay),
        &[
            "turn 1: messages[1].content: recorded",
            "left: 3",
            "left: 5",
            "turn 1: messages[0].content: recorded …\"l text. Exit tools: done.\\n\\nBe brief.\", now …\"l text. Exit tools: done.\\n\\nBe very brief.\"",
            "turn 1: temperature: recorded 0, now 1",
            "turn 1: seed: not recorded, now 7",
        ],
    );
    project.write("specs/worker.eld", WORKER);
    // A different spec.
    let specs = fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    project.write("specs/tools.eld", specs.replace("Count the characters", "Count all characters"));
    assert_differences(
        &project.run(&replay),
        &["turn 1: tools[0].function.description: recorded", "Count all characters"],
    );
    project.write("specs/tools.eld", &specs);
    // A different script, whose result is in the second request.
    project.write("scripts/count.lua", "return function(text, times) return 'many' end");
    let ended = project.run(&replay);
    assert_differences(
        &ended,
        &["turn 2: messages[3].content: recorded \"{\\\"length\\\":6}\\n\\n", "now \"\\\"many\\\"\\n\\n"],
    );
    assert_eq!(ended.stdout, "Counting. \n", "the text so far is kept");
}

#[test]
fn a_lenient_replay_continues_and_reports_differences() {
    let (project, _) = recorded();
    let ended = project.run(&["run", "count again", "--replay", "session.jsonl", "--lenient"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Counting. Six bytes.\n"));
    assert!(ended.stderr.contains("turn 1: messages[1].content: recorded"), "{}", ended.stderr);
    assert!(ended.stderr.contains("turn 2: messages[1].content"), "{}", ended.stderr);
    // The option requires a recording.
    assert_eq!(project.run(&["run", "x", "--lenient"]).code, Some(2));
    assert_eq!(project.run(&["run", "--replay", "session.jsonl", "--record", "other.jsonl"]).code, Some(2));
}

#[test]
fn a_missing_exchange_is_reported() {
    let (project, _) = recorded();
    let path = project.path("session.jsonl");
    let recording = fs::read_to_string(&path).unwrap();
    let second = recording.find("{\"record\":\"request\",\"turn\":2").unwrap();
    fs::write(&path, &recording[..second]).unwrap();
    let ended = project.run(&["run", "--replay", "session.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "Counting. \n"));
    assert!(ended.stderr.contains("turn 2, attempt 1: not recorded"), "{}", ended.stderr);
}

#[test]
fn a_session_with_a_timeout_is_replayed() {
    let project = Project::with_worker(r#"(defworker :name "w" :stall "200ms")"#);
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let endpoint = server.endpoint();
    let recorded = project.run(&["run", "x", "--json", "--endpoint", &endpoint, "--record", "s.jsonl"]);
    drop(server);
    assert_eq!(recorded.code, Some(1), "{recorded:?}");
    let again = project.run(&["run", "--replay", "s.jsonl", "--json"]);
    assert_eq!((again.code, &again.stdout), (Some(1), &recorded.stdout));
    assert_eq!(again.finished()["kind"], "stall_timeout");
}

#[test]
fn an_incomplete_last_line_is_ignored() {
    let (project, recorded) = recorded();
    let path = project.path("session.jsonl");
    let whole = fs::read(&path).unwrap();
    // The end of the last line is missing, but the reply was complete before.
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let again = project.run(&["run", "--replay", "session.jsonl", "--json"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.finished()["text"], recorded.finished()["text"]);
}

#[test]
fn an_invalid_recording_is_reported_with_file_and_line() {
    let (project, _) = recorded();
    let whole = fs::read_to_string(project.path("session.jsonl")).unwrap();
    let (head, rest) = whole.split_once('\n').unwrap();
    let future = head.replacen("\"version\":3", "\"version\":99", 1);
    let cases = [
        ("text", "hello\nworld\n".to_owned(), "bad.jsonl: unknown format; expected a recording"),
        ("cut in its first line", "{\"record\":\"ses".to_owned(), "bad.jsonl:1: not a line of a recording"),
        (
            "other JSON lines",
            "{\"type\":\"submitted\"}\n".to_owned(),
            "bad.jsonl: the output of `deftool run",
        ),
        (
            "without its first line",
            rest.to_owned(),
            "bad.jsonl:1: not a line of a recording: expected a `session`",
        ),
        ("broken in the middle", format!("{head}\nhello\n{rest}"), "bad.jsonl:2: not a line"),
        ("empty", String::new(), "bad.jsonl: the file is empty"),
        ("of the future", format!("{future}\n{rest}"), "bad.jsonl: unsupported recording format 99"),
    ];
    for (name, content, expected) in cases {
        project.write("bad.jsonl", content);
        let ended = project.run(&["run", "--replay", "bad.jsonl"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{name}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{name}: {}", ended.stderr);
    }
    project.write("bad.jsonl", [0xff, 0xfe, b'\n', 0x80]);
    let ended = project.run(&["run", "--replay", "bad.jsonl"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("bad.jsonl: unknown format"), "{}", ended.stderr);
    let ended = project.run(&["run", "--replay", "missing.jsonl"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("missing.jsonl"), "{}", ended.stderr);
}

#[test]
fn a_recording_that_cannot_be_written_is_reported() {
    let project = Project::new();
    let server = Server::script([Answer::text("hello")]);
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "x", "--endpoint", &endpoint, "--record", "specs/tools.eld/s.jsonl"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("specs/tools.eld/s.jsonl"), "{}", ended.stderr);
    assert_eq!(server.posts().len(), 0, "nothing was attempted");
    // No file may grow, as on a full disk.
    #[cfg(target_os = "linux")]
    {
        let run = project.command(&["run", "x", "--endpoint", &endpoint, "--record", "s.jsonl"]);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]).arg(run.get_program());
        command.args(run.get_args()).current_dir(project.path(""));
        let ended = Ended::of(command.output().unwrap());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "hello\n"), "{ended:?}");
        assert!(ended.stderr.contains("recording s.jsonl: File too large"), "{}", ended.stderr);
    }
}

#[test]
fn a_file_that_is_not_a_recording_is_not_overwritten() {
    let project = Project::with_worker(WORKER);
    let server = two_turns();
    for content in ["(deftool :name \"mine\")", "{\"record\":\"chat\",\"version\":1}\n"] {
        project.write("mine", content);
        let ended = project.run(&["run", "count", "--endpoint", &server.endpoint(), "--record", "mine"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("the existing file is not a recording; choose another name"),
            "{ended:?}"
        );
        assert_eq!(fs::read_to_string(project.path("mine")).unwrap(), content);
    }
    assert!(server.posts().is_empty(), "nothing is attempted");
}

#[test]
fn an_older_recording_is_not_emptied_when_nothing_is_attempted() {
    let project = Project::new();
    project.write("s.jsonl", "precious");
    let ended = project.run(&["run", "x", "--endpoint", "nonsense", "--record", "s.jsonl"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(fs::read_to_string(project.path("s.jsonl")).unwrap(), "precious");
}

#[test]
fn an_error_object_is_recorded_as_it_came() {
    let project = Project::new();
    let server = Server::script([Answer::error(404, &[], "no such model")]);
    let endpoint = server.endpoint();
    let recorded = project.run(&["run", "x", "--json", "--endpoint", &endpoint, "--record", "s.jsonl"]);
    drop(server);
    assert_eq!(recorded.code, Some(1));
    assert_eq!(recorded.finished()["kind"], json!("http_error"));
    let again = project.run(&["run", "--replay", "s.jsonl", "--json"]);
    assert_eq!((again.code, again.stdout), (Some(1), recorded.stdout));
}

#[test]
fn a_session_over_the_responses_api_is_recorded_and_plays_again() {
    let project = Project::with_worker(r#"(defworker :name "w" :api responses :params (:max-tokens 99))"#);
    project.write(
        "specs/target.eld",
        r#"(deftool :name "target" :description "For all." :targets (:openai-responses (:description "For this one.")))"#,
    );
    project.write("scripts/target.lua", "return function() return 1 end");
    let server = Server::script([
        turn(Api::Responses, "Counting. ", &[("count", r#"{"text": "héllo"}"#)]),
        turn(Api::Responses, "Six bytes.", &[("done", r#"{"summary": "counted"}"#)]),
    ]);
    let endpoint = server.endpoint();
    let run = ["run", "count", "--json", "--endpoint", &endpoint, "--record", "session.jsonl"];
    let recorded = project.run(&run);
    assert_eq!((recorded.code, recorded.stderr.as_str()), (Some(0), ""), "{recorded:?}");
    assert_eq!(recorded.finished()["text"], "Counting. Six bytes.");
    assert_eq!(recorded.finished()["signals"][0]["tool_name"], "done");
    let posts = server.posts();
    assert!(
        posts.iter().all(|post| post.line == "POST /v1/responses" && post.body["max_output_tokens"] == 99)
    );
    let tools = posts[0].body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "target").unwrap();
    assert_eq!(tool["description"], "For this one.");
    assert!(
        posts[1].body["input"].to_string().contains(r#""output":"{\"length\":6}\n\nTime"#),
        "{}",
        posts[1].body
    );
    drop(server);
    let again = project.run(&["run", "--replay", "session.jsonl", "--json"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert_eq!(again.stdout, recorded.stdout);
}
