//! Damaged calls of models and clients: which are repaired, which are reported to the model, and what the user sees.

use std::process::Stdio;

use serde_json::{Value, json};

use super::mcp::Host;
use crate::support::project::{Ended, Project, command_in};

/// A tool that returns its arguments.
const PUT: &str = r#"
(deftool :name "put" :description "Returns its arguments." :effect pure
 :args ((:name "n" :type integer :optional t :description "A number.")
        (:name "text" :type string :optional t :description "A text.")
        (:name "list" :type array :items (:type integer) :optional t :description "Numbers.")
        (:name "filter" :type object :properties (:a (:type integer)) :optional t :description "A filter.")))
(deftool :name "fail" :description "Fails." :effect pure :args ())
"#;

fn project(worker: &str, replies: &str) -> Project {
    let project = Project::empty();
    project.write("specs/put.eld", PUT);
    project.write("specs/worker.eld", format!("(defworker :name \"w\" :tool-budget 9 {worker})"));
    let put = "return function(n, text, list, filter)\n  return { n = n, text = text, list = list, filter = filter }\nend\n";
    project.write("scripts/put.lua", put);
    project.write("scripts/fail.lua", "return function() error('no luck') end\n");
    project.write("stub.eld", format!("(defscenario :name \"s\" {replies} (reply :repeat t \"done\"))"));
    project
}

/// Runs a command of deftool against the scenario of the project.
fn play(project: &Project, command: &[&str], stdin: &str) -> Ended {
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool")];
    let mut command = command_in(&project.path(""), &[&stub[..], command].concat());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), stdin.as_bytes()).unwrap();
    Ended::of(child.wait_with_output().unwrap())
}

/// Removes the duration of the call at the end of a line.
fn without_duration(line: &str) -> &str {
    line.rsplit_once(" (").map_or(line, |(begin, end)| if end.ends_with(" ms)") { begin } else { line })
}

/// The part of a reply, and the lines that `run` prints about it.
const REPAIRED: [(&str, &[&str]); 9] = [
    (
        r#"(call "put" (:n "5"))"#,
        &["repair put.n: the integer was sent as a string", "tool   put {\"n\":5} → {\"n\":5}"],
    ),
    (
        r#"(call "put" (:filter "{\"a\": 1}"))"#,
        &[
            "repair put.filter: the value was sent as a string of JSON",
            "tool   put {\"filter\":{\"a\":1}} → ",
        ],
    ),
    (
        r#"(call "put" "{\"text\": \"a
b\"}")"#,
        &[
            "repair put: control characters were not escaped",
            r#"tool   put {"text":"a\nb"} → {"text":"a\nb"}"#,
        ],
    ),
    (
        r#"(call "put" "\"{\\\"n\\\": 5}\"")"#,
        &["repair put: the arguments were encoded twice", "tool   put {\"n\":5} → {\"n\":5}"],
    ),
    (
        r#"(call "put" "{\"n\": 1, \"text\": null}")"#,
        &["repair put.text: the absent argument was sent as null", "tool   put {\"n\":1} → {\"n\":1}"],
    ),
    (
        r#"(call "put<|channel|>commentary" (:n 5))"#,
        &["repair put: a control token followed the name", "tool   put {\"n\":5} → {\"n\":5}"],
    ),
    (
        r#""<tool_call>{\"name\": \"put\", \"arguments\": {\"text\": \"a
	b\", \"list\": \"[1]\"}}</tool_call>""#,
        &[
            "repair put: control characters were not escaped",
            "repair put.list: the value was sent as a string of JSON",
            r#"tool   put {"text":"a\n\tb","list":[1]} → "#,
        ],
    ),
    (
        r#""<|tool_calls_section_begin|><|tool_call_begin|>functions.put:0<|tool_call_argument_begin|>\"{\\\"n\\\": 5}\"<|tool_call_end|><|tool_calls_section_end|>""#,
        &["repair put: the arguments were encoded twice", "tool   put {\"n\":5} → {\"n\":5}"],
    ),
    (r#"(call "put" (:text "5"))"#, &["tool   put {\"text\":\"5\"} → {\"text\":\"5\"}"]),
];

#[test]
fn repaired_calls_run_and_are_shown_in_one_line() {
    for (part, expected) in REPAIRED {
        let project = project("", &format!("(reply {part})"));
        let ended = play(&project, &["run", "x"], "");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{part}: {ended:?}");
        let lines: Vec<&str> = ended.stderr.lines().map(without_duration).collect();
        let matches = |(line, expected): (&&str, &&str)| line.starts_with(expected);
        let is_expected = lines.len() == expected.len() && lines.iter().zip(expected).all(matches);
        assert!(is_expected, "{part}: {lines:#?}");
    }
}

#[test]
fn repairs_are_events_and_entries_of_the_view() {
    let project = project("", r#"(reply (call "put" (:list [1 "2"] :n "3")))"#);
    let ended = play(&project, &["run", "x", "--json", "--record", "r.jsonl"], "");
    let repairs: Vec<Value> =
        ended.events().into_iter().filter(|event| event["type"] == "arguments_repaired").collect();
    let shown: Vec<String> = repairs
        .iter()
        .map(|event| format!("{} {} {}", event["name"], event["path"], event["kind"]).replace('"', ""))
        .collect();
    assert_eq!(shown, ["put .list[1] integer_as_string", "put .n integer_as_string"]);
    assert!(repairs.iter().all(|event| event["id"].is_string()));
    // A recording contains what the server sent; the events contain the repairs.
    project.write("events.jsonl", &ended.stdout);
    for (file, shown) in [
        ("r.jsonl", [r#".list[1]: written as \"2\""#, r#".n: written as \"3\""#]),
        (
            "events.jsonl",
            [".list[1]: the integer was sent as a string", ".n: the integer was sent as a string"],
        ),
    ] {
        let page = project.run(&["view", file, "-o", "-"]).stdout;
        for repair in shown {
            assert!(page.contains(repair), "{file}: {repair}");
        }
    }
    let replay = project.run(&["replay", "r.jsonl"]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
}

/// Arguments that are not certain, with the kind of the failure.
#[test]
fn uncertain_calls_fail_unless_they_are_reported() {
    for (part, kind, reported) in [
        (r#"(call "put" (:n "05"))"#, "invalid_arguments", "put.n: \"05\" is not of type \"integer\""),
        (r#"(call "put" "{oops")"#, "invalid_arguments", "received: {oops"),
        (r#"(call "putt" (:n 5))"#, "unknown_tool", "did you mean `put`?"),
        (
            r#""<tool_call>{\"name\": \"putt\", \"arguments\": {}}</tool_call>""#,
            "unknown_tool",
            "unknown tool `putt`",
        ),
        (
            r#""<tool_call>{\"name\": \"put\", \"arguments\": {oops}}</tool_call>""#,
            "malformed_call",
            "is malformed",
        ),
        (r#""<tool_call>{\"arguments\": {}}</tool_call>""#, "malformed_call", "missing tool name"),
    ] {
        let replies = format!("(reply {part}) (reply :when (:last-role tool) \"done\")");
        let ended = play(&project("", &replies), &["run", "x", "--json"], "");
        assert_eq!(ended.finished()["kind"], kind, "{part}: {ended:?}");
        for (worker, command, stdin) in [
            (":on-invalid-arguments report", &["run", "x", "--json"][..], ""),
            ("", &["chat", "--json"], "x\n"),
        ] {
            let ended = play(&project(worker, &replies), command, stdin);
            let events = ended.events();
            let finished = events.iter().find(|event| event["type"] == "finished").unwrap();
            assert_eq!(finished["state"], "completed", "{part}: {ended:?}");
            let answer = events.iter().find(|event| event["type"] == "tool_finished").unwrap();
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(reported), "{part}: {message}");
        }
    }
}

#[test]
fn the_fifth_identical_failure_ends_the_request() {
    let project = project(":on-tool-error report", r#"(reply :repeat t (call "fail"))"#);
    let ended = play(&project, &["run", "x", "--json"], "");
    let finished = ended.finished();
    assert_eq!(
        (&finished["fail_reason"], &finished["kind"]),
        (&json!("tool_execution_error"), &json!("repeated_failure")),
        "{finished}"
    );
    let answers = ended.events().into_iter().filter(|event| event["type"] == "tool_finished").count();
    assert_eq!(answers, 5);
}

/// `chat` reports errors to the model, unless the worker sets otherwise.
#[test]
fn chat_uses_the_setting_of_the_worker() {
    for (worker, state) in
        [("", "completed"), (":on-tool-error fail", "failed"), (":on-tool-error report", "completed")]
    {
        let project = project(worker, r#"(reply (call "fail"))"#);
        let ended = play(&project, &["chat", "--json"], "x\n");
        let finished = ended.events().into_iter().find(|event| event["type"] == "finished").unwrap();
        assert_eq!(finished["state"], state, "{worker}: {ended:?}");
    }
}

/// `isError` is a result for the model. An error of the protocol still ends the request.
#[test]
fn an_error_result_of_an_mcp_server_is_a_result() {
    let server = project("", "");
    let command = format!(
        "[\"{}\" \"mcp\" \"-C\" \"{}\" \"--trust\"]",
        env!("CARGO_BIN_EXE_deftool"),
        server.path("").display()
    );
    let project = Project::empty();
    project.write(
        "specs/w.eld",
        format!("(defmcp :name \"t\" :command {command})\n(defworker :name \"w\" :tools [\"t\"])"),
    );
    project.write("stub.eld", "(defscenario :name \"s\" (reply (call \"t__fail\")) (reply \"done\"))");
    let ended = play(&project, &["run", "x", "--json", "--trust"], "");
    let finished = ended.finished();
    assert_eq!((&finished["state"], &finished["text"]), (&json!("completed"), &json!("done")), "{ended:?}");
    let events = ended.events();
    let answer = events.iter().find(|event| event["type"] == "tool_finished").unwrap();
    assert_eq!(answer["error"]["kind"], "error_result", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("no luck"), "{answer}");
}

/// Claude Desktop sends objects and arrays as strings of JSON.
#[test]
fn calls_over_mcp_are_repaired() {
    let project = project("", "");
    let mut host = Host::start(&project, &[]);
    for (id, (name, arguments, expected, log)) in [
        (
            "put",
            json!({"list": "[1, 2]"}),
            r#"{"list":[1,2]}"#,
            "arguments_repaired put.list: the value was sent as a string of JSON",
        ),
        (
            "put",
            json!({"n": "5"}),
            r#"{"n":5}"#,
            "arguments_repaired put.n: the integer was sent as a string",
        ),
        (
            "put",
            json!("{\"n\": 5}"),
            r#"{"n":5}"#,
            "arguments_repaired put: the arguments were encoded twice",
        ),
        (
            "put<|channel|>commentary",
            json!({"n": 5}),
            r#"{"n":5}"#,
            "arguments_repaired put: a control token followed the name",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = u32::try_from(id).unwrap() + 1;
        host.ask(id, "tools/call", &json!({"name": name, "arguments": arguments}));
        let logged = host.next();
        assert_eq!(
            (&logged["method"], &logged["params"]["data"]),
            (&json!("notifications/message"), &json!(log)),
            "{logged}"
        );
        let answer = host.next();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(id), &json!(expected)),
            "{answer}"
        );
    }
    let answer = host.call(9, "put", &json!({"n": "05"}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = host.request(10, "tools/call", &json!({"name": "put", "arguments": "five"}));
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(host.end(), Some(0));
}
