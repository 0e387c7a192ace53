//! `deftool run` and `deftool call`: the real binary in small projects.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod call;
#[cfg(unix)]
mod streams;

use std::io::{Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};
use crate::support::server::{Act, Answer, DeadEnd, Server, call, delta, finish, usage};
use crate::support::terminal::{Piped, Terminal};

fn run(project: &Project, server: &Server, arguments: &[&str]) -> Ended {
    let endpoint = server.endpoint();
    project.run(&[&["run", "hello", "--endpoint", &endpoint], arguments].concat())
}

#[test]
fn stdout_is_the_text_and_stderr_everything_said_about_it() {
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
fn an_answer_of_nothing_is_told_as_that() {
    let project = Project::new();
    let done = call(0, "done", r#"{"summary": "ok"}"#);
    let reasoning = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]});
    for (chunks, expected) in [
        (vec![finish("stop")], "note: the model answered with nothing: no text, no reasoning, no signal\n"),
        (
            vec![reasoning, finish("stop")],
            "note: the model answered with reasoning only; see --json for it\n",
        ),
        (vec![done, finish("stop")], "signal done {\"summary\":\"ok\"}\n"),
    ] {
        let ended = run(&project, &Server::script([Answer::chunks(&chunks)]), &[]);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", expected));
    }
}

#[test]
fn a_tool_with_a_broken_or_missing_script_is_told_to_be_left_out() {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(\n");
    let ended = run(&project, &Server::script([Answer::text("hi")]), &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert!(ended.stderr.ends_with("\ncount is left out\n"), "{}", ended.stderr);
    std::fs::remove_file(project.path("scripts/broken.lua")).unwrap();
    let ended = run(&project, &Server::script([Answer::text("hi")]), &[]);
    assert!(ended.stderr.contains("scripts/broken.lua is not there\n"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(" and 1 other tool are left out\n"), "{}", ended.stderr);
}

/// Nobody canceled it.
#[cfg(unix)]
#[test]
fn who_reads_no_further_is_told_nothing_and_a_full_disk_is_told_alone() {
    let project = Project::new();
    // It ends when nobody reads it.
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
        let expected =
            "error: the result cannot be written to stdout: No space left on device (os error 28)\n";
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), expected));
    }
}

/// What answers is no server of models.
#[test]
fn an_endpoint_of_another_kind_is_told_with_what_to_do() {
    let project = Project::new();
    let page = "<!DOCTYPE HTML>\n<html><head><title>Error response</title></head></html>";
    let web = Server::answering(move |_, _| Answer::whole(501, &[("content-type", "text/html")], page));
    let json = Server::answering(|_, _| Answer::error(501, &[], "not made yet"));
    for (endpoint, expected) in [
        (
            web.endpoint(),
            "HTTP 501: Error response; a web page is no model server's answer: check the endpoint, which ends in /v1 \
             as a rule\n",
        ),
        (json.endpoint(), "HTTP 501: not made yet; the server's log may say more\n"),
    ] {
        let ended = project.run(&["run", "hello", "--model", "m", "--endpoint", &endpoint]);
        assert!(ended.code == Some(1) && ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
    // What is no request is refused at once.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}/v1", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let ended = project.run(&["run", "hello", "--model", "m", "--endpoint", &secure]);
    // On a machine without certificates there is no TLS at all.
    let expected =
        ["; if it is an http:// server, say so; else ", "; are the system's CA certificates installed?"];
    assert!(expected.iter().any(|expected| ended.stderr.contains(expected)), "{ended:?}");
}

#[test]
fn a_prompt_comes_from_stdin_as_it_is() {
    let project = Project::new();
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let ended = project.run_with_stdin(&["run", "-", "--endpoint", &endpoint], " één\ntwo\n".as_bytes());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert_eq!(server.posts()[0].contents("user"), [" één\ntwo\n"]);
    // More than anybody means to send is not read on and on, and what is cut off is not sent.
    let endless = vec![b'a'; (64 << 20) + 1];
    for arguments in [&["run", "-", "--endpoint", &endpoint][..], &["call", "count", "-"]] {
        let ended = project.run_with_stdin(arguments, &endless);
        assert!(ended.stderr.contains("on stdin has more than 64 MiB"), "{ended:?}");
    }
    assert_eq!(server.posts().len(), 1);
}

#[cfg(unix)]
#[test]
fn who_interrupts_twice_does_not_wait() {
    let project = Project::new();
    let server = Server::script([Answer::silent()]);
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
    server.wait_for_posts(1);
    interrupt(&child);
    interrupt(&child);
    assert_eq!(Ended::of(child.wait_with_output().unwrap()).code, Some(130));
}

#[test]
fn json_prints_every_event_and_last_how_it_ended() {
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
        ["type", "state", "finish_reason", "text", "signals", "usage", "tool_iterations", "reasoning",]
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
fn a_failed_request_exits_with_1_says_one_line_and_keeps_the_text() {
    let project = Project::new();
    let server =
        Server::script([Answer::chunks(&[delta("so far"), call(0, "broken", "{}"), finish("tool_calls")])]);
    let ended = run(&project, &server, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "so far\n"));
    let told = "error[script]: broken: scripts/broken.lua:2: no luck";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
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
            "tool_iterations",
        ]
    );
    assert_eq!((&finished["state"], &finished["finish_reason"]), (&json!("failed"), &json!("failed")));
    assert_eq!(finished["fail_reason"], "tool_execution_error");
    assert_eq!(finished["kind"], "script");
}

#[test]
fn where_nobody_listens_is_told_at_once_with_what_to_do() {
    let project = Project::new();
    let nobody = DeadEnd::new();
    let ended = project.run(&["run", "hello", "--json", "--endpoint", &nobody.endpoint()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let expected = format!(
        "error: nobody listens at {}/models; start the server, or correct the port\n",
        nobody.endpoint()
    );
    assert_eq!(ended.stderr, expected);
    // A spec's is none the better, and one with user and password is told without them.
    let endpoint = nobody.endpoint().replace("http://", "http://me:hunter2hunter2@");
    let worker = format!(r#"(defworker :name "w" :model "m" :endpoint "{endpoint}")"#);
    let ended = Project::with_worker(&worker).run(&["run", "hello"]);
    assert_eq!((ended.code, ended.stderr), (Some(2), expected));
}

#[test]
fn what_cannot_be_attempted_exits_with_2_and_one_line() {
    let project = Project::new();
    let empty = tempfile::tempdir().unwrap();
    let several = Project::with_worker(r#"(defworker :name "a") (defworker :name "b")"#);
    let broken = Project::with_worker(r#"(defworker :name "a" :slots "many")"#);
    let ended = |project: &Project, arguments: &[&str]| project.run(&[&["run", "hi"], arguments].concat());
    let cases = [
        (ended(&project, &["--worker", "x"]), "no worker called `x`; the project has none"),
        (ended(&several, &[]), "the project has several workers (a, b); choose one with --worker NAME"),
        (ended(&several, &["--worker", "x"]), "no worker called `x`; there are: a, b"),
        (ended(&broken, &[]), "the worker `a` has errors; see `deftool check`"),
        (
            ended(&project, &["--endpoint", "localhost:1"]),
            "the endpoint `localhost:1` is no HTTP URL; write http://HOST:PORT/v1",
        ),
        (ended(&project, &["--project", "nowhere"]), "cannot read"),
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
    // Nothing is sent.
    for option in ["--model", "--endpoint"] {
        let ended = project.run(&["run", "--replay", "a.jsonl", option, "x"]);
        assert_eq!((ended.code, ended.stderr.contains("cannot be used with")), (Some(2), true), "{ended:?}");
    }
}

/// Only where the ports that are looked at are free.
#[test]
fn no_endpoint_exits_with_2_and_says_how_to_give_one() {
    let is_free = |port: u16| std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
    if !is_free(8080) || !is_free(11434) {
        return;
    }
    let project = Project::new();
    let mut command = project.command(&["run", "hello"]);
    let ended = Ended::of(command.env("OPENAI_BASE_URL", "").output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    for way in ["--endpoint", "OPENAI_BASE_URL", ":endpoint", "8080", "11434"] {
        assert!(ended.stderr.contains(way), "{way}: {}", ended.stderr);
    }
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn the_endpoint_comes_from_the_command_line_then_the_spec_then_the_environment() {
    let [first, second, third] = ["one", "two", "three"].map(|text| Server::script([Answer::text(text)]));
    let worker = format!(r#"(defworker :name "w" :endpoint "{}" :model "named")"#, second.endpoint());
    let (with, without) = (Project::with_worker(&worker), Project::new());
    let ask = |project: &Project, arguments: &[&str]| {
        let mut command = project.command(&[&["run", "hi"], arguments].concat());
        Ended::of(command.env("OPENAI_BASE_URL", third.endpoint()).output().unwrap()).stdout
    };
    assert_eq!(ask(&with, &["--endpoint", &first.endpoint(), "--model", "mine"]), "one\n");
    assert_eq!(ask(&with, &[]), "two\n");
    assert_eq!(ask(&without, &[]), "three\n");
    let models = [&first, &second, &third].map(|server| server.posts()[0].body["model"].clone());
    assert_eq!(models, ["mine", "named", "scripted"]);
}

#[test]
fn a_key_is_taken_from_the_variable_that_the_worker_names_and_told_to_nobody() {
    let key = "sk-0123456789abcdef";
    let project = Project::with_worker(r#"(defworker :name "w" :api-key-env "MY_KEY")"#);
    let server = Server::script([Answer::error(401, &[], &format!("bad key {key}")).byte_by_byte()]);
    for json in [&["--json"][..], &[]] {
        let endpoint = server.endpoint();
        let mut command =
            project.command(&[&["run", "hello", "--trust", "--endpoint", &endpoint], json].concat());
        command.env("MY_KEY", key).env("OPENAI_API_KEY", "sk-another-that-is-not-sent");
        let ended = Ended::of(command.output().unwrap());
        assert_eq!(ended.code, Some(1));
        assert!(!format!("{ended:?}").contains("0123456789"), "{ended:?}");
        assert!(format!("{ended:?}").contains("bad key [redacted]"), "{ended:?}");
    }
    let bearer = format!("Bearer {key}");
    assert!(server.posts().iter().all(|post| post.header("authorization") == Some(&bearer)));
}

/// Sends the signal of Ctrl-C.
#[cfg(unix)]
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

/// Reads stdout until it holds `text`.
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

#[cfg(unix)]
#[test]
fn ctrl_c_in_the_stream_keeps_the_text_disconnects_and_exits_with_130() {
    let project = Project::new();
    let server = Server::script([Answer::stream().delta("so far").then(Act::Silence)]);
    let endpoint = server.endpoint();
    let mut child = project.spawn(&["run", "hello", "--endpoint", &endpoint, "--record", "s.jsonl"]);
    let begun = read_until(&mut child, "so far");
    let interrupted = Instant::now();
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    // Far from the time for which silence is put up with.
    assert!(interrupted.elapsed() < Duration::from_secs(20), "{:?}", interrupted.elapsed());
    assert_eq!((ended.code, begun + &ended.stdout), (Some(130), String::from("so far\n")));
    assert_eq!(ended.stderr, "canceled; the text so far is kept\n");
    server.wait_for_client_to_leave();
    drop(server);
    // And so it plays again.
    let again = project.run(&["run", "--replay", "s.jsonl"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(130), "so far\n"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_tool_stops_it_and_json_ends_with_finished() {
    let project = Project::new();
    project.write("scripts/count.lua", "return function(text, times) while true do end end");
    let server = Server::script([Answer::calls(&[("count", r#"{"text": "abc"}"#)])]);
    let endpoint = server.endpoint();
    let mut child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    let begun = read_until(&mut child, "\"tool_started\"");
    interrupt(&child);
    let rest = Ended::of(child.wait_with_output().unwrap());
    let ended = Ended { stdout: begun + &rest.stdout, ..rest };
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let finished = ended.finished();
    assert_eq!((&finished["state"], &finished["fail_reason"]), (&json!("canceled"), &json!("canceled")));
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_the_endpoint_is_looked_for_exits_with_130() {
    let project = Project::new();
    // It accepts and says nothing, so that the look at its models takes long.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let child = project.spawn(&["run", "hello", "--endpoint", &endpoint]);
    let (_connection, _) = listener.accept().unwrap();
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    // On a terminal it says so while it lasts.
    let mut terminal = Terminal::start(&project, &["run", "hello", "--endpoint", &endpoint], Piped::Nothing);
    terminal.wait_for(&format!("asking {endpoint} what it is"));
    terminal.type_text("\u{3}");
    assert_eq!(terminal.end().code, Some(130));
}

/// The server goes on asking for a tool's result until `is_new` likes one.
fn until(is_new: impl Fn(&str) -> bool + Send + Sync + 'static) -> Server {
    Server::answering(move |_, request| {
        let results = request.contents("tool");
        if results.last().is_some_and(|result| is_new(result)) {
            return Answer::text("over");
        }
        // A turn takes a while, so that a save has time to be seen.
        let call = call(0, "count", r#"{"text": "abc"}"#);
        Answer::stream().wait_ms(40).chunk(&call).chunk(&finish("tool_calls")).done().end()
    })
}

#[test]
fn a_script_saved_between_two_turns_is_used_by_the_next_one() {
    let project = Project::with_worker(r#"(defworker :name "w" :tool-budget 500)"#);
    let server = until(|result| result.contains("new"));
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    server.wait_for_posts(2);
    project.write("scripts/count.lua", "return function(text, times) return 'new' end");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &ended.finished()["text"]), (Some(0), &json!("over")), "{}", ended.stderr);
    let events = ended.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let reloads: Vec<usize> = (0..types.len()).filter(|&at| types[at] == "reloaded").collect();
    assert_eq!(reloads.len(), 1, "{types:?}");
    assert_eq!(types[reloads[0] + 1], "turn_started");
    assert_eq!(events[reloads[0]]["generation"], 2);
    let results: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_finished")
        .map(|event| &event["result"])
        .collect();
    let (last, old) = results.split_last().unwrap();
    assert_eq!(*last, &json!("new"));
    assert!(old.iter().all(|result| **result == json!({"length": 3})), "{results:?}");
}

#[test]
fn a_script_saved_broken_leaves_the_last_good_one_and_the_repair_is_taken() {
    let project = Project::with_worker(r#"(defworker :name "w" :tool-budget 500)"#);
    let server = until(|result| result.contains("repaired"));
    let endpoint = server.endpoint();
    let child = project.spawn(&["run", "hello", "--json", "--endpoint", &endpoint]);
    server.wait_for_posts(2);
    project.write("scripts/count.lua", "return function(text, times) return 'broken'");
    // Long enough to be seen, whatever the machine does meanwhile.
    server.wait_for_posts(server.posts().len() + 15);
    project.write("scripts/count.lua", "return function(text, times) return 'repaired' end");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &ended.finished()["text"]), (Some(0), &json!("over")), "{}", ended.stderr);
    let events = ended.events();
    let results: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_finished")
        .map(|event| &event["result"])
        .collect();
    let (_, old) = results.split_last().unwrap();
    assert!(old.iter().all(|result| **result == json!({"length": 3})), "{results:?}");
}
