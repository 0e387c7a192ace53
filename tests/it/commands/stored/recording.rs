//! Recordings, and the sessions of `deftool chat`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use deftool_test_support::server::{Answer, Server, call, finish, without_budget};
use serde_json::{Value, json};

use super::{Change, project, restricted};
use crate::support::project::Ended;

/// Returns the lines of a file of JSON lines, each changed by `change`.
fn change_lines(path: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(path).unwrap();
    let changed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        change(&mut line);
        format!("{line}\n")
    });
    fs::write(path, changed.collect::<String>()).unwrap();
}

#[test]
fn a_recording_cannot_decide_what_happens_next() {
    let server = Server::answering(|index, _| match index {
        0 => {
            Answer::chunks(&[call(0, "look", "{}"), call(1, "pay", r#"{"amount": 3}"#), finish("tool_calls")])
        }
        _ => Answer::text("Done."),
    });
    let elsewhere = Server::answering(|_, _| Answer::text("Hello."));
    let project = project(&server);
    project.write("log/go", "");
    let ended = project.run(&["run", "hello", "--trust", "--record", "r.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    let replay = || {
        project.write("log/runs", "");
        let ended = project.run(&["run", "--replay", "r.jsonl", "--lenient", "--trust"]);
        (ended.code, ended.stdout, fs::read_to_string(project.path("log/runs")).unwrap())
    };
    assert_eq!(replay(), (Some(0), String::from("Done.\n"), String::from("look\n")));
    let url = elsewhere.endpoint();
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let in_session = |name: &'static str, value: Value| -> Change {
        Box::new(move |line| {
            if line["record"] == "session" {
                line[name] = value.clone();
            }
        })
    };
    let changes: [(&str, Change); 6] = [
        ("Session.url", in_session("url", json!(url))),
        ("Session.engine", in_session("engine", json!("99"))),
        ("Session.trace", in_session("trace", json!({"submitter": {"traceparent": traceparent}}))),
        ("RequestOptions.tools", in_session("options", json!({"tools": ["look", "send", "pay", "other"]}))),
        (
            "Line.Log",
            Box::new(|line| {
                if line["record"] == "log" {
                    line["text"] = json!("x");
                }
            }),
        ),
        (
            "Event.Approval.answer",
            Box::new(|line| {
                if line["event"]["answer"]["answer"] == "refused" {
                    line["event"]["answer"] = json!({"answer": "allowed"});
                }
            }),
        ),
    ];
    let changed: BTreeSet<&str> = changes.iter().map(|(row, _)| *row).collect();
    // The URL restores where the replies came from. No request is sent to it.
    let restricted = restricted("recording");
    assert_eq!(changed, restricted.into_iter().chain(["Session.url"]).collect());
    let before = fs::read(project.path("r.jsonl")).unwrap();
    for (row, change) in changes {
        fs::write(project.path("r.jsonl"), &before).unwrap();
        change_lines(&project.path("r.jsonl"), change);
        assert!(fs::read(project.path("r.jsonl")).unwrap() != before, "{row}");
        let (code, _, runs) = replay();
        // An approval without a recorded run fails.
        let expected = if row == "Event.Approval.answer" { Some(1) } else { Some(0) };
        assert_eq!((code, runs.as_str()), (expected, "look\n"), "{row}");
    }
    assert_eq!((server.posts().len(), elsewhere.connections()), (2, 0));
}

#[test]
fn a_session_cannot_decide_what_happens_next() {
    let server = Server::answering(|_, _| Answer::text("Hello."));
    let project = project(&server);
    let state = tempfile::tempdir().unwrap();
    let chat = |arguments: &[&str]| {
        let mut command = project.command(&[&["chat", "--trust", "Hi."], arguments].concat());
        command.env("XDG_STATE_HOME", state.path()).stdin(std::process::Stdio::null());
        let ended = Ended::of(command.output().unwrap());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hello.\n"), "{ended:?}");
        let mut body = server.posts().pop().unwrap().body;
        // The time of the next request may be another one.
        for content in
            body["messages"].as_array_mut().unwrap().iter_mut().map(|message| &mut message["content"])
        {
            *content = json!(without_budget(content.as_str().unwrap()));
        }
        body
    };
    chat(&[]);
    let folder = state.path().join("deftool/sessions");
    let folder = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let stored = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let resume = |change: &dyn Fn(&mut Value)| {
        fs::copy(&stored, project.path("s.jsonl")).unwrap();
        change_lines(&project.path("s.jsonl"), change);
        chat(&["--resume", "s.jsonl"])
    };
    let expected = resume(&|_| {});
    let changes = [
        ("Line.Chat.created_at_ms", json!(0)),
        ("Line.Chat.project", json!("/")),
        ("Line.Chat.worker", json!("other")),
        ("Line.Chat.model", json!("other")),
    ];
    let changed: BTreeSet<&str> = changes.iter().map(|(row, _)| *row).collect();
    assert_eq!(changed, restricted("session"));
    for (row, value) in changes {
        let name = row.rsplit_once('.').unwrap().1;
        let change = |line: &mut Value| {
            if line["record"] == "chat" {
                line[name] = value.clone();
            }
        };
        assert_eq!(resume(&change), expected, "{row}");
    }
}
