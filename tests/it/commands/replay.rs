//! `deftool replay`: verifies recordings without a server, a key and tools, and validates their arguments against the
//! current specs.

use std::fs;

use deftool_test_support::server::{Answer, Server, call, delta, finish};
use serde_json::{Value, json};

use crate::support::project::Project;

const WORKERS: &str = r#"
(defworker :name "w" :tool-budget 3 :system "Be brief." :params (:temperature 0))
(defworker :name "v" :tool-budget 4 :on-invalid-arguments report)
"#;

fn counted(text: &str) -> Vec<Answer> {
    vec![
        Answer::chunks(&[
            delta("Counting. "),
            call(0, "count", &json!({ "text": text }).to_string()),
            finish("tool_calls"),
        ]),
        Answer::chunks(&[delta("Done."), call(0, "done", r#"{"summary": "counted"}"#), finish("stop")]),
    ]
}

/// A project with one recording per worker in `sessions`. The servers are stopped.
fn recorded() -> Project {
    let project = Project::with_worker(WORKERS);
    fs::create_dir_all(project.path("sessions/deep")).unwrap();
    for (file, worker) in [("sessions/a.jsonl", "w"), ("sessions/deep/b.jsonl", "v")] {
        let server = Server::script(counted("héllo"));
        let endpoint = server.endpoint();
        let ended =
            project.run(&["run", "count", "--worker", worker, "--endpoint", &endpoint, "--record", file]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    // Files with the extension of recordings, but with other content.
    project.write("sessions/events.jsonl", "{\"type\":\"submitted\"}\n");
    project.write("sessions/table.jsonl", "{\"record\": 1}\n");
    project.write("sessions/.hidden/c.jsonl", fs::read(project.path("sessions/a.jsonl")).unwrap());
    project
}

#[test]
fn folders_and_files_are_replayed_with_one_line_each() {
    let project = recorded();
    let ended = project.run(&["replay", "sessions"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.stdout,
        "ok      sessions/a.jsonl: 1 request, 2 exchanges, 1 tool call\n\
         ok      sessions/deep/b.jsonl: 1 request, 2 exchanges, 1 tool call\n"
    );
    assert_eq!(ended.stderr, "2 recordings: 2 ok\n");
    assert_eq!(project.run(&["replay", "sessions", "-q"]).stderr, "");
    project.write("specs/worker.eld", WORKERS.replace("Be brief.", "Be very brief."));
    let ended = project.run(&["replay", "sessions/a.jsonl", "missing.jsonl"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().map(str::trim).collect();
    assert_eq!(lines[0], "differs sessions/a.jsonl: 1 request, 2 exchanges, 1 tool call");
    assert!(lines[1].starts_with("turn 1: messages[0].content: recorded "), "{lines:?}");
    assert_eq!(lines[2], "failed  missing.jsonl");
    assert!(lines[3].starts_with("No such file"), "the file is named once: {lines:?}");
    assert_eq!(ended.stderr, "2 recordings: 1 differs, 1 failed\n");
    project.write("specs/worker.eld", WORKERS);
    // `run --replay` runs the tools. A changed result is reported at its call and in the next request.
    project.write("scripts/count.lua", "return function(text, times) return { length = 7 } end");
    let ended = project.run(&["run", "--replay", "sessions/a.jsonl"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for expected in [
        "  call 1 of count: result.length: recorded 6, now 7\n",
        "messages[3].content: recorded \"{\\\"length\\\":6}\\n",
    ] {
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    // `replay` runs no tool: nothing differs.
    let ended = project.run(&["replay", "sessions", "--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["summary"], json!({"recordings": 2, "ok": 2, "differs": 0, "failed": 0, "updated": 0}));
    assert_eq!(report["recordings"][1]["state"], "ok");
    // So does `run` on request.
    let ended = project.run(&["run", "--worker", "w", "--replay", "sessions/a.jsonl", "--recorded-tools"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Counting. Done.\n"), "{ended:?}");
    // By default, the recorded worker is used. `--worker` overrides it.
    let ended = project.run(&["run", "--replay", "sessions/deep/b.jsonl", "--recorded-tools"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Counting. Done.\n"), "{ended:?}");
    let ended = project.run(&["replay", "sessions", "--worker", "u"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.stderr, "error: unknown worker `u`; known workers: w, v\n");
    // If no recording can be read, nothing was replayed.
    let ended = project.run(&["replay", "missing.jsonl", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &report["recordings"][0]["state"]), (Some(2), &json!("failed")), "{ended:?}");
    let ended = project.run(&["replay", "sessions/events.jsonl"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let expected = "failed  sessions/events.jsonl\n        the output of `deftool run --json` contains no bytes of a server \
                    to replay: `deftool view sessions/events.jsonl` shows it\n";
    assert_eq!(ended.stdout, expected, "{ended:?}");
    let ended = project.run(&["replay", "scripts"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("no recording in scripts"), "{}", ended.stderr);
}

#[test]
fn a_missing_recording_is_reported_with_the_command_that_creates_one() {
    let project = Project::with_worker(WORKERS);
    let hint = "; create one with `deftool run PROMPT --record FILE.jsonl`";
    let ended = project.run(&["run", "--replay", "missing.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    let message = ended.stderr.strip_prefix("error: recording missing.jsonl: No such file").unwrap();
    assert!(message.trim_end().ends_with(hint), "{message}");
    let ended = project.run(&["replay", "missing.jsonl"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let message = ended.stdout.strip_prefix("failed  missing.jsonl\n        No such file").unwrap();
    assert!(message.trim_end().ends_with(hint), "{message}");
    // Only for a file that does not exist.
    project.write("bad.jsonl", "{}\n");
    for arguments in [&["run", "--replay", "bad.jsonl"][..], &["replay", "bad.jsonl"]] {
        let ended = project.run(arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let message = ended.stdout + &ended.stderr;
        assert!(
            message.contains("unknown format; expected ") && !message.contains("create one"),
            "{message}"
        );
    }
}

#[test]
fn json_differences_have_a_path() {
    let project = recorded();
    project.write("specs/worker.eld", WORKERS.replace("Be brief.", "Be very brief."));
    let ended = project.run(&["replay", "sessions", "--json", "--lenient"]);
    assert_eq!(ended.code, Some(0), "a lenient replay reports differences and continues: {ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let first = &report["recordings"][0];
    assert_eq!(first["state"], "differs");
    let brief = r#"…"l text. Exit tools: done.\n\nBe brief.""#;
    let very_brief = r#"…"l text. Exit tools: done.\n\nBe very brief.""#;
    assert_eq!(
        first["differences"][0],
        json!({
            "request": 1, "place": "turn 1",
            "message": format!("messages[0].content: recorded {brief}, now {very_brief}"),
            "path": "messages[0].content", "change": "changed",
            "recorded": brief, "now": very_brief,
        })
    );
    assert_eq!(report["recordings"][1]["state"], "ok");
    assert_eq!(project.run(&["replay", "sessions"]).code, Some(1));
}

#[test]
fn update_writes_differences_of_request_bodies_only() {
    let project = recorded();
    project.write("specs/worker.eld", WORKERS.replace("Be brief.", "Be very brief."));
    let before = fs::read_to_string(project.path("sessions/a.jsonl")).unwrap();
    let ended = project.run(&["replay", "sessions", "--update"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("updated sessions/a.jsonl"), "{}", ended.stdout);
    assert_eq!(project.run(&["replay", "sessions"]).code, Some(0));
    let after = fs::read_to_string(project.path("sessions/a.jsonl")).unwrap();
    for (before, after) in before.lines().zip(after.lines()) {
        assert_eq!(before == after, !after.contains("\"updated\":true"), "{after}");
    }
    // Other differences are not updated.
    let specs = fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    project.write("specs/tools.eld", specs.replace(":name \"count\"", ":name \"count\" :confirm t"));
    let ended = project.run(&["replay", "sessions/a.jsonl", "--update"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stdout.contains("not updated: there are differences outside of request bodies (a call of count: requires an approval now"),
        "{}",
        ended.stdout
    );
    assert_eq!(fs::read_to_string(project.path("sessions/a.jsonl")).unwrap(), after);
}

#[test]
fn recorded_arguments_are_validated_against_current_specs() {
    let project = Project::with_worker(WORKERS);
    fs::create_dir_all(project.path("sessions")).unwrap();
    let end =
        || Answer::chunks(&[delta("Done."), call(0, "done", r#"{"summary": "counted"}"#), finish("stop")]);
    let written =
        "<tool_call>{\"name\": \"count\", \"arguments\": {\"text\": \"w\", \"times\": 2}}</tool_call>";
    let server = Server::script([
        // The invalid call is reported to the model; the other call of the reply runs.
        Answer::chunks(&[
            call(0, "count", r#"{"text": "a", "times": "two"}"#),
            call(1, "count", r#"{"text": "b", "times": 200}"#),
            finish("tool_calls"),
        ]),
        Answer::text(written),
        end(),
    ]);
    let endpoint = server.endpoint();
    let ended = project.run(&[
        "run",
        "count",
        "--worker",
        "v",
        "--endpoint",
        &endpoint,
        "--record",
        "sessions/a.jsonl",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = project.run(&["replay", "--specs", "sessions"]);
    let summary = "3 of 3 still valid; 1 more was already invalid when recorded\n";
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), summary, ""),
        "{ended:?}"
    );

    let specs = fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    project.write(
        "specs/tools.eld",
        specs.replace(":type integer", ":type integer :maximum 100").replace(
            "(:name \"summary\" :type string :description \"What was done.\")",
            "(:name \"summary\" :type string :description \"What was done.\")\n        (:name \"grade\" :type integer :description \"How well.\")",
        ),
    );
    // No script runs.
    project.write("scripts/count.lua", "return function(text, times) error('never') end");
    let ended = project.run(&["replay", "--specs", "sessions"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let recording = fs::read_to_string(project.path("sessions/a.jsonl")).unwrap();
    let line = 1 + recording
        .lines()
        .position(|line| line.contains("\"index\\\":1") && line.contains("200"))
        .unwrap();
    assert_eq!(
        lines[0],
        format!(
            "sessions/a.jsonl:{line}: count.times: 200 is greater than the maximum of 100 (specs/tools.eld:4:38)"
        )
    );
    assert!(
        lines[1].contains(": done: \"grade\" is a required property (specs/tools.eld:8:16)"),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2], "1 of 3 still valid; 1 more was already invalid when recorded");

    // Removed tools, and a tool that became an exit tool.
    project.write(
        "specs/tools.eld",
        r#"(defexit :name "count" :description "Counted." :args ((:name "text" :type string :description "The text.")))"#,
    );
    let ended = project.run(&["replay", "--specs", "sessions", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        report["summary"],
        json!({"files": 1, "calls": 3, "valid": 0, "invalid_when_recorded": 1, "unreadable": 0})
    );
    let messages: Vec<&str> =
        report["invalid"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert_eq!(messages[0], "was called as a tool, but is now an exit tool");
    assert_eq!(report["invalid"][0]["spec"], "specs/tools.eld:1:16");
    assert!(messages[2].starts_with("unknown tool `done`"), "{messages:?}");
    assert_eq!(report["invalid"][2].get("spec"), None);
}

#[test]
fn lists_of_calls_are_validated_against_current_specs() {
    let project = Project::new();
    project.write(
        "calls.jsonl",
        "{\"tool\": \"count\", \"arguments\": {\"text\": \"a\"}}\n\n{\"name\": \"count\", \"arguments\": \"{\\\"text\\\": 7}\"}\n\
         {\"tool\": \"count\", \"arguments\": {\"text\": \"[redacted-1]\"}}\n{\"tool\": \"count\", \"arguments\": \"{\"}\n",
    );
    let ended = project.run(&["replay", "--specs", "calls.jsonl"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "calls.jsonl:3: count.text: 7 is not of type \"string\" (specs/tools.eld:3:23)");
    assert!(lines[1].starts_with("calls.jsonl:5: count: the arguments are not a JSON object: "), "{lines:?}");
    assert_eq!(lines[2..], ["2 of 4 still valid"]);
    project.write("calls.jsonl", "{\"tool\": \"count\"}\n");
    let ended = project.run(&["replay", "--specs", "calls.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("calls.jsonl:1: expected a line of a recording or"), "{}", ended.stderr);
}

#[test]
fn patterns_and_secret_variables_are_redacted_in_recordings() {
    let project = Project::new();
    let specs = fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    project.write(
        "specs/tools.eld",
        specs.replace("\"Fails.\" :args ()", "\"Fails.\" :args () :allow (:env [\"MY_TOKEN\" \"MY_PLACE\"])"),
    );
    let words = ["The tok", "en is to", "ken-0815", "-xyz at pl", "ace-0815; ", "a-4711"];
    let server =
        Server::script([Answer::chunks(&[words.map(delta).to_vec(), vec![finish("stop")]].concat())]);
    let mut command = project.command(&[
        "run",
        "say token-0815-xyz",
        "--trust",
        "--endpoint",
        &server.endpoint(),
        "--record",
        "s.jsonl",
        "--redact",
        r"a-(\d{4})",
    ]);
    command.env("MY_TOKEN", "token-0815-xyz").env("MY_PLACE", "place-0815");
    let ended = crate::support::project::Ended::of(command.output().unwrap());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "The token is token-0815-xyz at place-0815; a-4711\n"),
        "{ended:?}"
    );
    let text = fs::read_to_string(project.path("s.jsonl")).unwrap();
    assert!(!text.contains("ken-0815") && !text.contains("4711"), "{text}");
    // A variable without a secret name is not redacted.
    assert!(text.contains("ace-0815"), "{text}");
    let ended = project.run(&["run", "--replay", "s.jsonl", "--trust"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "The token is [redacted-1] at place-0815; a-[redacted-2]\n"),
        "{ended:?}"
    );
    let ended = project.run(&["run", "x", "--redact", "("]);
    assert_eq!(ended.code, Some(2));
    let ended = project.run(&["run", "--replay", "s.jsonl", "--redact", "(", "--trust"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("invalid regular expression `(`: unclosed group\n"),
        "{ended:?}"
    );
}

#[test]
fn a_recording_of_an_unknown_worker_fails() {
    let project = recorded();
    project.write("sessions/z.jsonl", fs::read(project.path("sessions/a.jsonl")).unwrap());
    project.write("specs/worker.eld", WORKERS.replace("\"v\"", "\"u\""));
    let ended = project.run(&["replay", "sessions"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("ok      sessions/a.jsonl"), "{lines:?}");
    assert!(lines[1].starts_with("failed  sessions/deep/b.jsonl"), "{lines:?}");
    let why = "recorded by worker `v`, which no longer exists; the project has several workers (w, u); set `:default t` in one, or select one with --worker NAME";
    assert_eq!(lines[2].trim(), why);
    assert!(lines[3].starts_with("ok      sessions/z.jsonl"), "{lines:?}");
    assert_eq!(ended.stderr, "3 recordings: 2 ok, 1 failed\n");
    let ended = project.run(&["run", "--replay", "sessions/deep/b.jsonl"]);
    assert_eq!((ended.code, ended.stderr), (Some(2), format!("error: {why}\n")));
    // Another worker has another name, which is in the system message.
    let ended = project.run(&["replay", "sessions/deep", "--worker", "u", "--lenient"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "1 recording: 1 differs\n"), "{ended:?}");
}

#[test]
fn the_bios_of_the_worker_is_used() {
    for (bios, text) in [("\"bios.txt\"", Some("Own rules of {{worker}}.\n")), ("nil", None)] {
        let project = Project::with_worker(&format!("(defworker :name \"w\" :bios {bios})"));
        if let Some(text) = text {
            project.write("bios.txt", text);
        }
        let server = Server::script(counted("héllo"));
        let ended = project.run(&["run", "count", "--endpoint", &server.endpoint(), "--record", "a.jsonl"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let ended = project.run(&["replay", "a.jsonl"]);
        assert_eq!(ended.code, Some(0), "{bios}: {ended:?}");
        if text.is_some() {
            project.write("bios.txt", "Other rules.\n");
            let ended = project.run(&["replay", "a.jsonl"]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stdout.contains("turn 1: messages[0].content: recorded"), "{ended:?}");
            fs::remove_file(project.path("bios.txt")).unwrap();
            let ended = project.run(&["replay", "a.jsonl"]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains("the BIOS `bios.txt` of worker `w`"), "{ended:?}");
        }
    }
}
