//! `deftool run` and `deftool call` with servers, signals and terminals. The rest is in `tests/commands/run.md` and
//! `call.md`.

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

use deftool_test_support::server::{Act, Answer, Server, Texts, call, delta, finish, usage};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};
use crate::support::terminal::{Piped, Terminal};

fn run(project: &Project, server: &Server, arguments: &[&str]) -> Ended {
    let endpoint = server.endpoint();
    project.run(&[&["run", "hello", "--endpoint", &endpoint], arguments].concat())
}

/// Sends SIGINT, like Ctrl-C.
#[cfg(unix)]
pub(super) fn interrupt(child: &Child) {
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
