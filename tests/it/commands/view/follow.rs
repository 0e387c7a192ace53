//! `deftool view --follow`. The tests write the end of a file and wait for the end of the process, so nothing is timed.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command};

use deftool_test_support::server::{Answer, Server};

use super::{counted, project, record};
use crate::support::ledger;
use crate::support::project::{Ended, Project};

/// A running `view --follow`.
struct Following {
    child: Child,
    stdout: ChildStdout,
    shown: String,
}

impl Following {
    fn start(project: &Project, file: &str) -> Self {
        let mut child = project.spawn(&["view", file, "--follow"]);
        let stdout = child.stdout.take().unwrap();
        Self { child, stdout, shown: String::new() }
    }

    /// Reads stdout until it ends with a text.
    fn wait_for(&mut self, text: &str) {
        let mut byte = [0];
        while !self.shown.ends_with(text) {
            self.stdout.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", self.shown));
            self.shown.push(char::from(byte[0]));
        }
    }

    /// Waits for the end of the process.
    fn end(mut self) -> Ended {
        self.stdout.read_to_string(&mut self.shown).unwrap();
        Ended { stdout: self.shown, ..Ended::of(self.child.wait_with_output().unwrap()) }
    }
}

#[test]
fn a_growing_recording_is_printed_until_its_end() {
    let project = project();
    let recorded = record(&project, "a.jsonl", counted("abc", "Again. "));
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let whole = fs::read(project.path("a.jsonl")).unwrap();
    // Cut in the middle of a line of the first reply.
    let middle = whole.windows(5).position(|window| window == b"ting.").unwrap();
    project.write("growing.jsonl", &whole[..middle]);
    let mut following = Following::start(&project, "growing.jsonl");
    following.wait_for("Coun");
    let mut file = fs::OpenOptions::new().append(true).open(project.path("growing.jsonl")).unwrap();
    let call = whole.windows(13).position(|window| window == b"tool_finished").unwrap();
    file.write_all(&whole[middle..call]).unwrap();
    following.wait_for("ting.");
    file.write_all(&whole[call..]).unwrap();
    let ended = following.end();
    assert_eq!((ended.code, &ended.stdout), (Some(0), &recorded.stdout), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().map(|line| line.split(" (").next().unwrap()).collect();
    let expected = [
        "prompt count",
        "fault  http_503: Loading model",
        "retry  attempt 2: HTTP 503: Loading model",
        "tool   count text: \"abc\" → {\"length\":3}",
        "tool   count text: 7 → failed: count.text: 7 is not of type \"string\"",
        "signal done summary: \"counted\"",
    ];
    assert_eq!(lines, expected);
    assert!(ended.stderr.contains("is not of type \"string\" (0 ms)\n"), "it did not run: {ended:?}");
    // A request that has ended is printed as well.
    let again = project.run(&["view", "a.jsonl", "--follow"]);
    assert_eq!((again.code, again.stdout, again.stderr), (Some(0), ended.stdout, ended.stderr));
    // What follows an invalid line is unknown.
    let mut damaged = whole[..call].to_vec();
    damaged.extend_from_slice(b"\n{}\n");
    project.write("damaged.jsonl", damaged);
    let ended = project.run(&["view", "damaged.jsonl", "--follow"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("; the rest cannot be followed\n"), "{ended:?}");
}

#[test]
fn a_growing_journal_is_printed_until_its_end() {
    let project = ledger::project();
    let server = Server::script([ledger::calling("pay"), Answer::text("Paid.")]);
    let endpoint = server.endpoint();
    let arguments = ["run", "Pay.", "--trust", "--journal", "j", "--endpoint", &endpoint];
    let running = ledger::spawn(project.command(&arguments));
    ledger::wait_until("the call runs", || !ledger::runs(&project).is_empty());
    let mut following = Following::start(&project, "j");
    following.wait_for("Let me see. ");
    // The tool waits for this file.
    project.write("log/go", "");
    let ended = following.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Let me see. Paid.\n"), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().map(|line| line.split(" (").next().unwrap()).collect();
    assert_eq!(lines, ["prompt Pay.", "tool   pay → \"pay is done\""]);
    assert!(running.wait_with_output().unwrap().status.success());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_command() {
    let project = project();
    record(&project, "a.jsonl", counted("abc", "Again."));
    let whole = fs::read(project.path("a.jsonl")).unwrap();
    let middle = whole.windows(5).position(|window| window == b"ting.").unwrap();
    project.write("growing.jsonl", &whole[..middle]);
    let mut following = Following::start(&project, "growing.jsonl");
    following.wait_for("Coun");
    let id = following.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ended = following.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), "Coun"), "{ended:?}");
}
