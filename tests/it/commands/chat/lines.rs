//! A closed stdout, and servers that restart between messages.

use std::io::Read;

use super::*;

#[cfg(unix)]
#[test]
fn a_closed_stdout_interrupts_the_chat() {
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

/// A server that crashed between two messages is restarted first.
#[cfg(target_os = "linux")]
#[test]
fn each_message_waits_for_a_restarting_server() {
    let project = crate::commands::managed::project("load=300");
    let arguments = ["chat", "--json", "--no-save", "--trust"];
    let ended = project.run_with_stdin(&arguments, b"die\nhello\nexit 3\nhello\n");
    let ends: Vec<Value> = ended.events().into_iter().filter(|event| event["type"] == "finished").collect();
    let results: Vec<(&str, &str)> = ends
        .iter()
        .map(|end| (end["fail_reason"].as_str().unwrap_or_default(), end["text"].as_str().unwrap()))
        .collect();
    let expected = [("server_died", "so far"), ("", "hi"), ("server_died", "so far"), ("", "hi")];
    assert_eq!(results, expected, "{ended:?}");
}

/// The interrupted message is canceled, and the chat exits with 130.
#[cfg(unix)]
#[test]
fn a_message_interrupted_during_a_server_restart_is_canceled() {
    use rustix::process::{Pid, Signal, kill_process};
    let project = crate::commands::managed::project("load=300");
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
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let starts = |line: &String| line.contains("starting the server");
    assert_eq!(
        stderr.by_ref().map(Result::unwrap).filter(starts).nth(1).as_deref(),
        Some("starting the server")
    );
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    assert_eq!(until_finished()["state"], "canceled");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
