//! No output is lost, and no secret is recorded.

use deftool_test_support::server::{Act, Answer, Server, call, delta, finish};
use serde_json::json;

use crate::support::project::{Project, command_in};

#[test]
fn each_tool_line_has_its_own_arguments() {
    let project = Project::new();
    let server = Server::script([
        Answer::chunks(&[
            call(0, "count", r#"{"text": "a"}"#),
            call(1, "count", r#"{"text": "bb"}"#),
            finish("tool_calls"),
        ]),
        Answer::text("ok"),
    ]);
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines[0].starts_with("tool   count text: \"a\" → {\"length\":1} ("), "{lines:?}");
    assert!(lines[1].starts_with("tool   count text: \"bb\" → {\"length\":2} ("), "{lines:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_unwritable_result_is_an_error() {
    let project = Project::new();
    let server = Server::answering(|_, _| Answer::text("hi"));
    let endpoint = server.endpoint();
    for arguments in
        [vec!["compile"], vec!["check", "--format", "json"], vec!["run", "x", "--endpoint", &endpoint]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = project.command(&arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("cannot write the result to stdout"), "{arguments:?}: {said}");
    }
}

#[test]
#[cfg(unix)]
fn a_closed_stdout_ends_the_request() {
    let project = Project::new();
    let word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n";
    let chunk = format!("{:x}\r\n{word}\r\n", word.len()).into_bytes();
    let endless = Answer::stream().then(Act::Endless(chunk));
    let server = Server::script([endless]);
    let command =
        format!("{} run x --endpoint {} | head -c 20", env!("CARGO_BIN_EXE_deftool"), server.endpoint());
    // The command does not end unless the request does.
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(project.path("."))
        .env_remove("OPENAI_API_KEY")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "word word word word ");
}

#[test]
fn an_undecodable_chunk_is_reported() {
    let project = Project::new();
    let answer = Answer::stream()
        .delta("x")
        .piece("data: {\"choices\": [{\"delta\": {\"content\": \"lost\n\n")
        .delta("y")
        .chunk(&finish("stop"))
        .done()
        .end();
    let server = Server::script([answer]);
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "xy\n"));
    assert!(ended.stderr.contains("could not be decoded and may have contained text"), "{}", ended.stderr);
}

#[test]
fn a_call_is_recovered_from_a_server_error() {
    let project = Project::new();
    let text = "<tool_call>\n{\"name\": \"count\", \"arguments\": {\"text\": \"abc\"}}\n</tool_call>";
    let error = json!({"error": {
        "message": "Failed to call a function.", "type": "invalid_request_error", "code": "tool_use_failed",
        "failed_generation": text,
    }});
    let server = Server::script([
        Answer::whole(400, &[("content-type", "application/json")], &error.to_string()),
        Answer::text("three"),
    ]);
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint(), "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let finished = ended.finished();
    assert_eq!((&finished["text"], &finished["tool_iterations"]), (&json!("three"), &json!(1)));
}

#[test]
fn a_key_in_the_prompt_is_not_recorded() {
    let project = Project::new();
    let server = Server::script([Answer::chunks(&[delta("1795 ok"), finish("stop")])]);
    // Numbers in the recording format may contain the same four digits.
    let mut command = command_in(&project.path("."), &["run", "my key is 1795", "--record", "r.jsonl"]);
    let status = command
        .args(["--endpoint", &server.endpoint()])
        .env("OPENAI_API_KEY", "1795")
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let recording = std::fs::read_to_string(project.path("r.jsonl")).unwrap();
    assert!(!recording.contains("is 1795") && recording.contains("is [redacted]"), "{recording}");
    let replayed = project.run(&["run", "--replay", "r.jsonl"]);
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "[redacted] ok\n"), "{replayed:?}");
}
