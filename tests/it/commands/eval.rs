//! `deftool eval` with servers that fail in the middle, signals and recorded times. The rest is in
//! `tests/commands/eval.md`.

use std::fs;

use deftool_test_support::server::{Answer, ClosedPort, Server};

use super::run::interrupt;
use crate::support::project::{Ended, Project};

const ASKS: &str = r#"
(defproject :preview (asks))
(deftool :name "get_weather" :description "Get the weather of a city." :command ["false"]
 :args ((:name "city" :type string :description "The city."))
 :asks [("Is it warm in Oslo?" :call (:city "Oslo")) ("Is it warm in Rome?" :call (:city "Oslo"))
        ("Is it warm in Lima?" :call (:city "Oslo")) ("Is it warm in Bern?" :call (:city "Oslo"))])
"#;

/// A project with four asks. `keys`: those of its worker.
fn project(keys: &str) -> Project {
    let project = Project::empty();
    project.write("specs/asks.eld", ASKS);
    project.write("specs/worker.eld", format!("(defworker :name \"w\" {keys})"));
    project
}

fn oslo() -> Answer {
    Answer::calls(&[("get_weather", r#"{"city": "Oslo"}"#)])
}

fn eval(project: &Project, endpoint: &str, arguments: &[&str]) -> Ended {
    let recorded = ["eval", "--endpoint", endpoint, "--record", "evals.jsonl", "--format", "markdown"];
    project.run(&[&recorded, arguments].concat())
}

/// The last line of the table.
fn total(ended: &Ended) -> &str {
    ended.stdout.lines().last().unwrap_or_default()
}

#[test]
fn a_server_that_disappears_loses_no_reply_and_a_second_run_continues() {
    let project = project("");
    let server = Server::answering(|index, _| if index < 2 { oslo() } else { Answer::silent() });
    let endpoint = server.endpoint();
    let recorded = ["eval", "--endpoint", &endpoint, "--record", "evals.jsonl", "--format", "markdown"];
    let child = project.spawn(&recorded);
    server.wait_for_posts(3);
    drop(server);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, total(&ended)), (Some(3), "| **all** | 100 % (34 to 100 %) |"), "{ended:?}");
    assert!(ended.stderr.contains("\nstopped: connection to http://127.0.0.1:"), "{ended:?}");
    let server = Server::script([oslo()]);
    let ended = eval(&project, &server.endpoint(), &[]);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), "2 requests to send, 2 recorded\n"),
        "{ended:?}"
    );
    assert_eq!((total(&ended), server.posts().len()), ("| **all** | 100 % (51 to 100 %) |", 2));
    // A damaged end is cut off.
    let recording = fs::read_to_string(project.path("evals.jsonl")).unwrap();
    project.write("evals.jsonl", &recording[..recording.len() - 20]);
    let ended = eval(&project, &server.endpoint(), &[]);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), "1 request to send, 3 recorded\n"),
        "{ended:?}"
    );
}

#[test]
fn ctrl_c_keeps_the_replies_so_far() {
    let project = project("");
    let server = Server::answering(|index, _| if index < 2 { oslo() } else { Answer::silent() });
    let endpoint = server.endpoint();
    let child = project.spawn(&["eval", "--endpoint", &endpoint, "--record", "evals.jsonl"]);
    server.wait_for_posts(3);
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stdout.starts_with("scripted: 2 of 2 replies pass"), "{ended:?}");
    assert_eq!(ended.stderr, "4 requests to send\nstopped: interrupted\n");
    server.wait_for_disconnect();
    let server = Server::script([oslo()]);
    let ended = eval(&project, &server.endpoint(), &[]);
    assert_eq!((ended.code, server.posts().len()), (Some(0), 2), "{ended:?}");
}

#[test]
fn a_rate_limit_is_not_counted_and_a_rejected_key_ends_the_run() {
    // The server asks for a delay that is not awaited.
    let limited = || Answer::error(429, &[("retry-after", "86400")], "slow down");
    let [denied, forbidden] = [401, 403].map(|status| Answer::error(status, &[], "no access"));
    for (bad, requests, kept) in [(limited(), 4, 3), (denied, 2, 1), (forbidden, 2, 1)] {
        let project = project("");
        let server = Server::answering(move |index, _| if index == 1 { bad.clone() } else { oslo() });
        let ended = eval(&project, &server.endpoint(), &["--max-failures", "1"]);
        assert_eq!(server.posts().len(), requests, "{ended:?}");
        assert!(total(&ended).starts_with("| **all** | 100 %"), "{ended:?}");
        let is_stopped = ended.stderr.contains("stopped: ");
        assert_eq!((ended.code, is_stopped), (Some(if is_stopped { 3 } else { 0 }), kept == 1), "{ended:?}");
        let ended = eval(&project, &server.endpoint(), &[]);
        let missing = if kept == 1 { "3 requests" } else { "1 request" };
        assert_eq!(ended.stderr, format!("{missing} to send, {kept} recorded\n"));
    }
}

#[test]
fn no_server_is_connected_if_the_name_of_the_model_is_known_and_nothing_is_sent() {
    let server = Server::script([oslo()]);
    let endpoint = server.endpoint();
    let closed = ClosedPort::reserve();
    for (keys, arguments) in [(":model \"m\"", &[][..]), ("", &["--model", "a", "--model", "b"])] {
        let project = project(keys);
        let first = eval(&project, &endpoint, arguments);
        let again = eval(&project, &closed.endpoint(), arguments);
        assert_eq!((again.code, &again.stdout), (Some(0), &first.stdout), "{again:?}");
        assert!(again.stderr.starts_with("0 requests to send, "), "{again:?}");
        // Only a model with something to send needs a server.
        let other = eval(&project, &closed.endpoint(), &[arguments, &["--model", "c"]].concat());
        assert_eq!(other.code, Some(2), "{other:?}");
        assert!(other.stderr.contains("nothing is listening at"), "{other:?}");
    }
    // Only the server knows the name.
    let project = project("");
    eval(&project, &endpoint, &[]);
    let again = eval(&project, &closed.endpoint(), &[]);
    assert_eq!(again.code, Some(2), "{again:?}");
    let again = eval(&project, &endpoint, &[]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), "0 requests to send, 4 recorded\n"));
}

#[test]
fn the_duration_is_estimated_from_recorded_times() {
    let server = Server::script([oslo()]);
    for (keys, expected) in [("", "about 4 minutes"), (":slots 4", "about 60 seconds")] {
        let project = project(keys);
        eval(&project, &server.endpoint(), &[]);
        let recording = fs::read_to_string(project.path("evals.jsonl")).unwrap();
        // Each reply took a minute.
        let slow = recording.lines().map(|line| match line.split_once("\"at_ms\":") {
            Some((before, after)) => {
                let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                format!("{before}\"at_ms\":60000{rest}\n")
            }
            None => format!("{line}\n"),
        });
        project.write("evals.jsonl", slow.collect::<String>());
        let ended = eval(&project, &server.endpoint(), &["--runs", "2"]);
        assert_eq!(ended.stderr, format!("4 requests to send, 4 recorded, {expected}\n"), "{ended:?}");
        let limited = ["--runs", "3", "--max-requests", "0", "--param", "temperature=1"];
        let ended = eval(&project, &server.endpoint(), &limited);
        assert!(ended.stderr.starts_with("12 requests to send\nstopped: "), "{ended:?}");
    }
}

/// The name of the model is that of the server, so a replay finds the replies.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_the_worker_starts_is_started_only_if_something_is_sent() {
    let project = super::managed::project("");
    project.write("specs/asks.eld", ASKS);
    assert_eq!(project.run(&["trust", "grant"]).code, Some(0));
    let arguments = ["eval", "--record", "evals.jsonl", "--format", "markdown"];
    let recorded = project.run(&arguments);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    assert!(recorded.stderr.starts_with("starting the server\nserver ready at "), "{recorded:?}");
    let replayed = project.run(&["eval", "--replay", "evals.jsonl", "--format", "markdown"]);
    assert_eq!((replayed.code, &replayed.stdout), (Some(0), &recorded.stdout), "{replayed:?}");
    let again = project.run(&[&arguments[..], &["--model", "fake"]].concat());
    assert_eq!((again.code, &again.stdout), (Some(0), &recorded.stdout), "{again:?}");
    assert_eq!(again.stderr, "0 requests to send, 4 recorded\n");
}
