//! `deftool chat`: the real binary with piped stdin and on a terminal.

mod lines;
mod saves;
mod sessions;
#[cfg(target_os = "linux")]
mod terminal;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use deftool_test_support::server::{Act, Answer, Server, without_budget};
use deftool_test_support::validity::assert_valid;
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

/// A project with its own state folder.
struct Home {
    project: Project,
    state: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { project: Project::new(), state: tempfile::tempdir().unwrap() }
    }

    fn command(&self, server: &Server, arguments: &[&str]) -> Command {
        let endpoint = server.endpoint();
        let mut command = self.project.command(&[&["chat", "--endpoint", &endpoint], arguments].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a chat with these lines of stdin.
    fn chat(&self, server: &Server, arguments: &[&str], lines: &str) -> Ended {
        let mut child = self.command(server, arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A chat that fails to start does not read stdin.
        let _ = stdin.write_all(lines.as_bytes());
        drop(stdin);
        let ended = Ended::of(child.wait_with_output().unwrap());
        server.posts().iter().for_each(|post| assert_valid(&post.body));
        ended
    }

    /// Returns the stored sessions, sorted by name.
    fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in fs::read_dir(self.state.path().join("deftool/sessions")).into_iter().flatten().flatten()
        {
            found.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
        }
        found.sort();
        found
    }

    fn only_session(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0].clone()
    }
}

/// Returns role and text of each message in the nth request, without system messages, time and budget.
fn sent(server: &Server, nth: usize) -> Vec<(String, String)> {
    let posts = server.posts();
    let messages = posts[nth].body["messages"].as_array().unwrap().clone();
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let conversation = messages.iter().filter(|message| message["role"] != "system");
    let content = |message: &Value| without_budget(&text(message, "content")).to_owned();
    conversation.map(|message| (text(message, "role"), content(message))).collect()
}

fn message(role: &str, content: &str) -> (String, String) {
    (role.to_owned(), content.to_owned())
}

const INTERRUPTED: &str = "[this reply was interrupted]";

#[test]
fn each_line_is_a_message_of_one_conversation() {
    let home = Home::new();
    let server = Server::script([
        Answer::text("Hello."),
        Answer::calls(&[("count", r#"{"text": "abc"}"#)]),
        Answer::text("Three."),
        Answer::text("Both."),
    ]);
    let lines = "\nHow long is abc?\n```\none\ntwo\n```\n";
    let ended = home.chat(&server, &["Hi there"], lines);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hello.\nThree.\nBoth.\n"), "{ended:?}");
    assert_eq!(sent(&server, 0), [message("user", "Hi there")]);
    let last = sent(&server, 3);
    assert_eq!(last[1..3], [message("assistant", "Hello."), message("user", "How long is abc?")]);
    assert_eq!(last[4], message("tool", r#"{"length":3}"#));
    assert_eq!(last[5..], [message("assistant", "Three."), message("user", "```\none\ntwo\n```")]);
}

#[test]
fn a_failed_message_does_not_end_the_chat_but_sets_the_exit_code() {
    let home = Home::new();
    home.project
        .write("specs/w.eld", "(defworker :name \"w\" :on-tool-error fail :on-invalid-arguments fail)");
    let server = Server::script([
        Answer::stream().delta("Half").then(Act::Close),
        Answer::calls(&[("broken", "{}")]),
        Answer::calls(&[("nothing", "{}")]),
        Answer::text("Fine."),
    ]);
    let ended = home.chat(&server, &[], "one\ntwo\nthree\nfour\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "Half\nFine.\n"), "{ended:?}");
    let last = sent(&server, 3);
    assert_eq!(last[1], message("assistant", &format!("Half\n\n{INTERRUPTED}")));
    assert!(last[4].1.contains("no luck"), "completed work before the failure is included: {last:?}");
}

#[test]
fn slash_commands_work_without_a_terminal() {
    let home = Home::new();
    let server = Server::script([Answer::text("First."), Answer::text("Second."), Answer::text("Third.")]);
    let lines = "/model other\n/system Be brief.\nhello\n/retry\n/undo\nthere\n/clear\nagain\n//etc\n";
    let ended = home.chat(&server, &["--system", "Be long."], lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(sent(&server, 1), [message("user", "hello")], "the reply was removed");
    assert_eq!(sent(&server, 2), [message("user", "there")]);
    assert_eq!(sent(&server, 3), [message("user", "again")]);
    assert_eq!(sent(&server, 4)[2], message("user", "/etc"));
    let first = &server.posts()[0];
    assert_eq!(first.body["model"], "other");
    let systems = first.contents("system");
    assert!(systems[0].ends_with("\n\nBe brief.") && !systems[0].contains("Be long."), "{systems:?}");

    let ended = home.chat(&server, &[], "/tools\n/help\n/tolls\n/undo\n/quit\nnot sent\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    for part in [
        "count: Count the characters of a text.",
        "done (exit tool): The task is done.",
        "/save [FILE]",
        "unknown command /tolls; did you mean /tools?",
        "no message to remove",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_eq!(server.posts().len(), 5);
}

#[test]
fn tools_are_described_with_confirmations_and_permissions() {
    let home = Home::new();
    let spec = "(deftool :name \"drop\" :description \"Drop it.\" :confirm (:when (:a \"x\") (:a \"y\")) :allow (:run [\"ls\"])
                 :args ((:name \"a\" :type string :description \"What.\")))
                (deftool :name \"every\" :description \"Do it.\" :confirm t)";
    home.project.write("specs/drop.eld", spec);
    home.project.write("scripts/drop.lua", "return function(a) return a end");
    home.project.write("scripts/every.lua", "return function() return 1 end");
    let server = Server::script([Answer::text("x")]);
    let ended = home.chat(&server, &["--trust"], "/tools\n");
    let expected = "drop (confirms calls under 2 conditions): Drop it.\n    permissions: :run [\"ls\"]\n";
    assert!(ended.stderr.contains(expected), "{ended:?}");
    assert!(ended.stderr.contains("every (confirms every call): Do it."), "{ended:?}");
}

#[test]
fn json_prints_only_events_to_stdout() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let ended = home.chat(&server, &["--json"], "a\n/help\nb\n");
    let events = ended.events();
    let ends: Vec<&Value> = events.iter().filter(|event| event["type"] == "finished").collect();
    assert_eq!(ends.len(), 2);
    assert_eq!((&ends[0]["text"], &ends[1]["text"]), (&json!("One."), &json!("Two.")));
}

#[test]
fn invalid_utf_8_in_a_message_is_rejected() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two.")]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\nol\xe9\n```\n\xff\n```\ntwo\n").unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "One.\nTwo.\n"), "{ended:?}");
    assert!(ended.stderr.contains("invalid UTF-8 in line 2 of stdin; the message was not sent"), "{ended:?}");
    assert!(ended.stderr.contains("invalid UTF-8 in line 4 of stdin; the message was not sent"), "{ended:?}");
    assert_eq!(sent(&server, 1)[2], message("user", "two"));
}

#[test]
fn an_unknown_model_is_reported() {
    let home = Home::new();
    let none = ["chat", "--endpoint", "http://127.0.0.1:9/v1", "--no-save"];
    for (more, expected) in
        [(&[][..], "unknown model (requests use `default`)\n"), (&["--model", "default"][..], "default\n")]
    {
        let ended = home.project.run_with_stdin(&[&none, more].concat(), b"/model\n");
        assert!(ended.stderr.ends_with(expected), "{ended:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_model_of_a_managed_server_is_reported() {
    let project = crate::commands::managed::project("");
    let ended =
        project.run_with_stdin(&["chat", "--trust", "--no-save"], b"/model\n/model x\n/model -\n/model\n");
    assert_eq!(ended.stderr.matches("the server's first model\n").count(), 2, "{ended:?}");
}
