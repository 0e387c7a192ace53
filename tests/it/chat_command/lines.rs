//! The lines of stdin: which are one message, and what ends them.

use std::io::Read;

use super::*;

/// What the people of a chat with these lines of stdin said.
fn said_by_people(lines: &str) -> Vec<String> {
    let home = Home::new();
    let server = Server::answering(|_, _| Answer::text("Yes."));
    let ended = home.chat(&server, &["--no-save"], lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = sent(&server, server.posts().len() - 1);
    last.into_iter().filter(|(role, _)| role == "user").map(|(_, content)| content).collect()
}

/// It is no fence: no backtick follows the first ones of a block.
#[test]
fn a_line_that_begins_with_a_span_of_code_is_a_message() {
    let said = said_by_people("```ls -la``` what does this do?\nsecond\n/tools\nthird\n");
    assert_eq!(said, ["```ls -la``` what does this do?", "second", "third"]);
}

/// A block in a block, as people quote Markdown.
#[test]
fn a_block_ends_with_as_many_backticks_as_it_began_with() {
    let said = said_by_people("````\n```\none\n````\ntwo\n");
    assert_eq!(said, ["````\n```\none\n````", "two"]);
}

#[test]
fn lines_that_end_as_windows_has_it_go_on_as_others_do() {
    let said = said_by_people("one\\\r\ntwo\r\n```\r\nthree\\\r\n```\r\n/tools\r\n");
    assert_eq!(said, ["one\ntwo", "```\nthree\\\n```"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_interrupts_the_chat() {
    let home = Home::new();
    let endless = (0..2000).fold(Answer::stream(), |answer, _| answer.delta("word ").wait_ms(5));
    let server = Server::script([endless]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\nnot sent\n").unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), ""), "{ended:?}");
    assert_eq!(server.posts().len(), 1);
    let kept = fs::read_to_string(home.only_session()).unwrap();
    assert!(kept.contains(INTERRUPTED), "{kept}");
}

/// A program that writes messages and reads events counts the ends.
#[test]
fn every_message_ends_in_a_finished_event() {
    let home = Home::new();
    let server = Server::script([Answer::text("Yes."), Answer::error(500, &[], "no"), Answer::text("Yes.")]);
    let mut child = home.command(&server, &["--json", "--no-save"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\nnot \xff text\n/tools\nthree").unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    let ends: Vec<Value> = ended.events().into_iter().filter(|event| event["type"] == "finished").collect();
    let states: Vec<&str> = ends.iter().map(|end| end["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed", "failed", "failed", "completed"], "{ended:?}");
    assert!(ends[2]["detail"].as_str().unwrap().contains("line 3 of stdin is not UTF-8"), "{ended:?}");
}

/// A server that died between two messages is waited for, as one that starts is.
#[cfg(target_os = "linux")]
#[test]
fn a_managed_server_is_waited_for_before_each_message() {
    let project = crate::managed::project("load=300");
    let arguments = ["chat", "--json", "--no-save", "--trust"];
    let ended = project.run_with_stdin(&arguments, b"die\nhello\nexit 3\nhello\n");
    let ends: Vec<Value> = ended.events().into_iter().filter(|event| event["type"] == "finished").collect();
    let told: Vec<(&str, &str)> = ends
        .iter()
        .map(|end| (end["fail_reason"].as_str().unwrap_or_default(), end["text"].as_str().unwrap()))
        .collect();
    let expected = [("server_died", "so far"), ("", "hi"), ("server_died", "so far"), ("", "hi")];
    assert_eq!(told, expected, "{ended:?}");
}

/// Interrupted twice, it is not waited for; what came of it is told.
#[cfg(unix)]
#[test]
fn a_message_that_is_interrupted_while_its_server_starts_again_is_canceled() {
    use rustix::process::{Pid, Signal, kill_process};
    let project = crate::managed::project("load=300");
    let mut child = project
        .command(&["chat", "--json", "--no-save", "--trust"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"die\nhello\n").unwrap();
    let mut until_finished = || -> Value {
        lines
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .find(|event| event["type"] == "finished")
            .unwrap()
    };
    assert_eq!(until_finished()["fail_reason"], "server_died");
    // The second message waits at least a second for the restart.
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let starts = |line: &String| line.contains("starting the server");
    assert_eq!(
        said.by_ref().map(Result::unwrap).filter(starts).nth(1).as_deref(),
        Some("starting the server")
    );
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    assert_eq!(until_finished()["state"], "canceled");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
