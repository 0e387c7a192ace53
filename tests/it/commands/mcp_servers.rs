//! MCP servers as sources of tools: official servers, and servers that misbehave.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use deftool_test_support::server::{Answer, Server, Texts};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use super::mcp::is_installed;
use crate::support::project::{Ended, Project, command_in};
use crate::support::watching::{LIMIT, WatchProcess};

/// Returns the path of a file in `tests/mcp`.
fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name).display().to_string()
}

/// A project with MCP servers, whose worker reports errors to the model.
fn project(servers: &str, replies: &str) -> Project {
    let project = Project::empty();
    let worker =
        r#"(defworker :name "w" :on-tool-error report :on-invalid-arguments report :tool-budget 20)"#;
    project.write("specs/a.eld", format!("{servers}\n{worker}\n"));
    project.write("stub.eld", format!("(defscenario :name \"s\" {replies} (reply \"done\"))"));
    project
}

/// The command that runs the worker against the scenario of the project.
fn command(project: &Project, arguments: &[&str]) -> Command {
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool"), "run", "x"];
    let mut command = command_in(&project.path(""), &[&stub[..], arguments].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the worker, and returns what it printed to stderr, without durations.
fn run(project: &Project, arguments: &[&str]) -> String {
    let ended = Ended::of(command(project, arguments).output().unwrap());
    let without_duration = |line: &str| match line.rsplit_once(" (") {
        Some((begin, end)) if end.ends_with(" ms)") => begin.to_owned(),
        _ => line.to_owned(),
    };
    let root = project.path("").canonicalize().unwrap().display().to_string();
    let lines: Vec<String> = ended.stderr.lines().map(without_duration).collect();
    lines.join("\n").replace(&root, "ROOT")
}

/// Waits until the processes in the file `pids`, which servers write, are gone. Returns their number.
fn wait_until_all_gone(project: &Project) -> usize {
    let ids = std::fs::read_to_string(project.path("pids")).unwrap_or_default();
    let ids: Vec<Pid> = ids.lines().filter_map(|line| Pid::from_raw(line.parse().unwrap())).collect();
    let begun = Instant::now();
    for &id in &ids {
        while test_kill_process(id).is_ok() {
            assert!(begun.elapsed() < LIMIT, "process {id:?} still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    ids.len()
}

#[test]
fn the_official_servers_can_be_used() {
    if !is_installed("node_modules") || !is_installed(".venv") {
        return;
    }
    let everything = file("node_modules/.bin/mcp-server-everything");
    let filesystem = file("node_modules/.bin/mcp-server-filesystem");
    let (python, server, typescript) = (file(".venv/bin/python"), file("server.py"), file("server.mjs"));
    let servers = format!(
        r#"(defmcp :name "all" :command ["{everything}"])
(defmcp :name "files" :command ["{filesystem}" "."] :tools ["read_text_file"])
(defmcp :name "fast" :command ["{python}" "{server}"])
(defmcp :name "ts" :command ["node" "{typescript}"])"#
    );
    let replies = r#"
 (reply (call "all__echo" (:message "hi")) (call "all__get-tiny-image") (call "all__get-structured-content" (:location "Chicago"))
  (call "all__get-resource-links" (:count 1)))
 (reply (call "files__read_text_file" (:path "note.txt")) (call "files__read_text_file" (:path "/etc/passwd")))
 (reply (call "fast__add" (:a 1 :b 2)) (call "fast__fail") (call "fast__picture"))
 (reply (call "fast__add" (:a "one" :b 2)))
 (reply (call "ts__join" (:pair ["a" 1])) (call "ts__join" (:pair ["a" "b"])))
 (reply (call "files__write_file" (:path "x" :content "")))"#;
    let project = project(&servers, replies);
    project.write("note.txt", "a note\n");
    let shown = run(&project, &["--trust"]);
    for expected in [
        r#"tool   all__echo message: "hi" → "Echo: hi""#,
        r#"tool   all__get-tiny-image → "Here's the image you requested:\n[image: image/png, "#,
        r#"→ {"temperature":36,"conditions":"Light rain / drizzle","humidity":82}"#,
        "[resource: Blob Resource 1, demo://resource/dynamic/blob/1",
        r#"tool   files__read_text_file path: "note.txt" → {"content":"a note\n"}"#,
        r#"tool   files__read_text_file path: "/etc/passwd" → failed: Access denied"#,
        r#"tool   fast__add a: 1, b: 2 → {"result":3}"#,
        "tool   fast__fail → failed: Error calling tool 'fail': no luck",
        r#"tool   fast__picture → "[image: image/png, 8 bytes]""#,
        r#""one" is not of type "integer""#,
        // Its schema is a draft-07 tuple.
        r#"tool   ts__join pair: ["a",1] → "a 1""#,
        r#""b" is not of type "integer""#,
        "unknown tool `files__write_file`",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    // The tools of a server become a new project.
    let made = project.run(&["init", "made", "--from", "mcp", &format!("{python} {server}")]);
    assert!(made.code == Some(0) && project.path("made/scripts/add.lua").exists(), "{made:?}");
}

/// A server on stdin and stdout with one tool, whose result is in a file.
const ONE_RESULT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"say","description":"Say it.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result=$(cat result.json) ;;
    *'"id"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"
      continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Text of a server reaches the model without JSON quotes, whatever the worker sets.
#[test]
fn text_of_a_server_is_sent_as_it_is() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let picture = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    for (result, expected) in [
        (json!({"content": [text("It is noon.\n\"Really.\"")]}), String::from("It is noon.\n\"Really.\"")),
        // Null counts as absent.
        (
            json!({"content": [text("pong")], "structuredContent": null, "isError": false, "_meta": null}),
            String::from("pong"),
        ),
        (json!({"content": [text("{}")], "structuredContent": {"n": 5}}), String::from(r#"{"n":5}"#)),
        (json!({"content": [text("one"), text("two")]}), String::from("one\ntwo")),
        (
            json!({"content": [text(&"x\n".repeat(40_000))]}),
            format!("{}x\n[cut: 63.9 KiB of 78.2 KiB]", "x\n".repeat(32_767)),
        ),
        (
            json!({"content": [text(&"no".repeat(40_000))], "isError": true}),
            json!({"error": {
                "kind": "error_result",
                "message": format!("{}\n[cut: 64 KiB of 78.2 KiB]", "no".repeat(32_768)),
            }})
            .to_string(),
        ),
        (json!({"content": [text("one"), picture]}), String::from("one\n[image: image/png, 8 bytes]")),
    ] {
        let project = Project::empty();
        project.write("specs/a.eld", r#"(defmcp :name "m" :command ["sh" "server.sh"])"#);
        project.write("server.sh", ONE_RESULT);
        project.write("result.json", result.to_string());
        let server = Server::script([Answer::calls(&[("m__say", "{}")]), Answer::text("Noon.")]);
        let ended = project.run(&["run", "When?", "--trust", "--endpoint", &server.endpoint()]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Noon.\n"), "{ended:?}");
        assert_eq!(server.posts()[1].texts("tool"), [expected]);
    }
}

/// The behaviours of `hostile.py`, with lines that are printed, and the number of started processes.
const HOSTILE: [(&str, &[&str], usize); 12] = [
    ("works", &["tool   h__act → \"acted\"", "tool   h__act → \"acted\""], 2),
    ("starts-late", &["tool   h__act → \"acted\"", "tool   h__act → \"acted\""], 2),
    ("starts-late-modern", &["tool   h__act → \"acted\"", "tool   h__act → \"acted\""], 2),
    (
        "dies",
        &[
            "MCP server `h`: exited with code 3: out of luck; trying again in 500ms",
            "tool   h__act → failed: MCP server `h`: exited with code 3: out of luck",
            "tool   h__act → \"acted\"",
        ],
        4,
    ),
    ("hangs", &["tool   h__act → failed: MCP server `h`: no result within 3s"], 2),
    (
        "lies",
        &[
            "MCP server `h`: offers `broken`, which is left out: the schema of `h__broken` does not compile",
            "MCP server `h`: offers several tools `h__act`; only the last is used",
            "tool   h__act → failed: the result violates its schema: \"three\" is not of type \"integer\"",
        ],
        2,
    ),
    (
        "costs",
        &[
            "MCP server `h`: offers `costly`, which is left out: the schema of `h__costly` does not compile at /: its references \
             expand to more than 100000 subschemas",
            "MCP server `h`: results of `act` are not checked: the schema of `h__act` does not compile at /: its references",
            "tool   h__act → {\"n\":5}",
        ],
        2,
    ),
    ("floods", &["tool   h__act → \"acted\"", "tool   h__act → \"acted\""], 2),
    (
        "grows",
        &[
            "tool   h__act → \"acted\"",
            "reload generation 3: the tools of MCP servers changed: h offers 2",
            "tool   h__more → \"acted\"",
        ],
        2,
    ),
    ("refuses", &["tool   h__act → failed: MCP server `h`: not today (-32602)"], 2),
    ("fails", &["tool   h__act → failed: disk full"], 2),
    ("exits", &["error: MCP server `h`: exited with code 7: no configuration"], 2),
];

fn hostile(behaviour: &str, more: &str) -> String {
    format!("(defmcp :name \"h\" :command [\"python3\" \"{}\" \"{behaviour}\"]{more})", file("hostile.py"))
}

#[test]
fn servers_that_misbehave_are_reported_and_leave_no_process() {
    if !is_installed(".venv") {
        return;
    }
    for (behaviour, expected, processes) in HOSTILE {
        // The time for a second start must fit.
        let timeout = if behaviour == "hangs" { " :timeout \"3s\"" } else { " :timeout \"120s\"" };
        let second = if behaviour == "grows" { "h__more" } else { "h__act" };
        let replies = format!("(reply (call \"h__act\")) (reply (call \"{second}\"))");
        let project = project(&hostile(behaviour, timeout), &replies);
        let shown = run(&project, &["--trust"]);
        let mut rest = shown.as_str();
        for line in expected {
            let Some((_, after)) = rest.split_once(line) else { panic!("{behaviour}: {line}\n{shown}") };
            rest = after;
        }
        assert_eq!(wait_until_all_gone(&project), processes, "{behaviour}: {shown}");
        assert_eq!(project.path("canceled").exists(), behaviour == "hangs", "{behaviour}: {shown}");
    }
}

/// A signal ends a run whose server does not answer.
#[test]
fn a_server_that_does_not_answer_can_be_interrupted() {
    if !is_installed(".venv") {
        return;
    }
    let project = project(&hostile("silent", ""), "");
    let mut command =
        command_in(&project.path(""), &["run", "x", "--trust", "--endpoint", "http://127.0.0.1:1/v1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = WatchProcess::of(command.spawn().unwrap());
    let begun = Instant::now();
    while !project.path("pids").exists() {
        assert!(begun.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&process.child), Signal::TERM).unwrap();
    assert_eq!(process.child.wait().unwrap().code(), Some(143));
    wait_until_all_gone(&project);
}

/// An untrusted spec starts no server.
#[test]
fn servers_without_trust_are_not_started() {
    let project = project(&hostile("works", " :env [\"HOME\"]"), "");
    let shown = run(&project, &[]);
    assert!(shown.contains("MCP server `h` requires :server [\"python3 "), "{shown}");
    assert!(shown.contains(" :env [\"HOME\"]"), "{shown}");
    let commands: [&[&str]; 5] =
        [&["check"], &["check", "--online"], &["import", "--mcp", "h"], &["tools"], &["mcp"]];
    for arguments in commands {
        let ended = project.run(arguments);
        let is_refused = arguments.len() > 1;
        assert_eq!(
            ended.stderr.contains("not trusted: MCP server `h`"),
            is_refused,
            "{arguments:?}: {ended:?}"
        );
    }
    assert!(!project.path("pids").exists());
    // A trusted URL is not a trusted program of that name.
    let state = project.path("state").display().to_string();
    let deftool = |arguments: &[&str]| {
        let mut command = command_in(&project.path(""), arguments);
        Ended::of(command.env("XDG_STATE_HOME", &state).output().unwrap())
    };
    project.write("specs/a.eld", "(defmcp :name \"h\" :url \"https://x.example/mcp\")");
    let granted = deftool(&["trust", "grant"]).stdout;
    assert!(
        granted.contains("MCP server `h` requires :server [\":url=https://x.example/mcp\"]"),
        "{granted}"
    );
    for command in [r#"["https://x.example/mcp"]"#, r#"[":url=https://x.example/mcp"]"#] {
        project.write("specs/a.eld", format!("(defmcp :name \"h\" :command {command})"));
        let ended = deftool(&["check", "--online"]);
        assert!(ended.stderr.contains("not trusted: MCP server `h`"), "{ended:?}");
    }
}

/// A call that needs approval is refused without a user.
#[test]
fn calls_of_a_server_with_confirm_need_approval() {
    if !is_installed(".venv") {
        return;
    }
    let project = project(&hostile("works", " :confirm t"), r#"(reply (call "h__act"))"#);
    let shown = run(&project, &["--trust"]);
    assert!(shown.contains("tool   h__act → {\"refused\"") && !shown.contains("\"acted\""), "{shown}");
    let shown = run(&project, &["--trust", "--yes"]);
    assert!(shown.contains("tool   h__act → \"acted\""), "{shown}");
}

#[test]
fn offers_can_be_checked_and_imported() {
    if !is_installed(".venv") {
        return;
    }
    let project = project(&hostile("lies", " :tools [\"act\" \"broken\" \"gone\"]"), "");
    project.write("specs/b.eld", "(defworker :name \"v\" :tools [\"h__act\" \"h__gone\"])");
    // Granting needs a folder for the store.
    let state = project.path("state").display().to_string();
    let deftool = |arguments: &[&str]| {
        let mut command = command_in(&project.path(""), arguments);
        Ended::of(command.env("XDG_STATE_HOME", &state).output().unwrap())
    };
    assert_eq!(deftool(&["trust", "grant"]).code, Some(0));
    let checked = deftool(&["check", "--online", "--format", "concise"]);
    let lines = [
        "specs/a.eld:1:15: warning[DT315]: MCP server `h` offers no tool `gone`, which `:tools` lists",
        "specs/a.eld:1:15: warning[DT315]: MCP server `h` offers `broken`, which is left out: the schema of",
        "specs/a.eld:1:15: warning[DT315]: MCP server `h` offers several tools `h__act`; only the last is used",
        "specs/b.eld:1:39: warning[DT315]: MCP server `h` offers no tool `h__gone`",
    ];
    for line in lines {
        assert!(checked.stdout.contains(line), "{line}\n{checked:?}");
    }
    let imported = deftool(&["import", "--mcp", "h"]);
    // The last of the two tools with this name.
    let act = " :description \"Act.\"\n :returns (:type object :properties (:n (:type integer)) :required [\"n\"]))\n";
    assert!(imported.stdout.contains(act), "{imported:?}");
    let unknown = deftool(&["import", "--mcp", "g"]);
    assert!(unknown.stderr.contains("unknown MCP server `g`; known MCP servers: h"), "{unknown:?}");
    project.write("specs/a.eld", hostile("exits", ""));
    assert_eq!(deftool(&["trust", "grant"]).code, Some(0));
    let checked = deftool(&["check", "--online", "--format", "concise"]);
    let line = "specs/a.eld:1:15: error[DT306]: MCP server `h`: exited with code 7: no configuration";
    assert!(checked.stdout.contains(line) && checked.code == Some(1), "{checked:?}");
    wait_until_all_gone(&project);
}

/// A server that returns the value of a variable: it is not recorded.
#[test]
fn secrets_of_servers_are_not_recorded() {
    if !is_installed(".venv") {
        return;
    }
    let project = project(&hostile("leaks", " :env [\"H_TOKEN\"]"), r#"(reply (call "h__act"))"#);
    let mut command = command(&project, &["--trust", "--record", "run.jsonl"]);
    let ended = Ended::of(command.env("H_TOKEN", "hunter2-hunter2").output().unwrap());
    assert!(ended.stderr.contains("hunter2-hunter2"), "{ended:?}");
    let recorded = std::fs::read_to_string(project.path("run.jsonl")).unwrap();
    assert!(recorded.contains("h__act") && !recorded.contains("hunter2"), "{recorded}");
}

/// A server that sends its own token: it is redacted before the user, the model or a file receives it.
#[test]
fn the_token_of_a_server_is_redacted() {
    let served = Project::empty();
    served.write(
        "specs/a.eld",
        "(deftool :name \"echo\" :description \"Knows secret.\" :args ())
         (deftool :name \"fail\" :description \"Fails.\" :args ())",
    );
    // Also in base64.
    served.write(
        "scripts/echo.lua",
        "return function() return { text = \"a secret\", secret = \"c2VjcmV0\" } end\n",
    );
    served.write("scripts/fail.lua", "return function() error(tool.failure(\"no secret\")) end\n");
    let (_server, url) = super::mcp::start_http(&served, &[]);
    let server = format!("(defmcp :name \"web\" :url \"{url}\" :token-env \"TOKEN\")");
    let project = project(&server, r#"(reply (call "web__echo")) (reply (call "web__fail"))"#);
    let mut command = command(&project, &["--trust", "--record", "run.jsonl"]);
    let ended = Ended::of(command.env("TOKEN", "secret").output().unwrap());
    let recorded = std::fs::read_to_string(project.path("run.jsonl")).unwrap();
    for shown in ["a [redacted]", "no [redacted]"] {
        assert!(ended.stderr.contains(shown) && recorded.contains(shown), "{shown}: {ended:?}\n{recorded}");
    }
    assert!(recorded.contains("Knows [redacted]."), "{recorded}");
    assert_eq!(project.run(&["trust", "grant"]).code, Some(0));
    let mut import = project.command(&["import", "--mcp", "web"]);
    let imported = Ended::of(import.env("TOKEN", "secret").output().unwrap());
    assert!(imported.stdout.contains("Knows [redacted]."), "{imported:?}");
    for text in [&ended.stdout, &ended.stderr, &recorded, &imported.stdout, &imported.stderr] {
        assert!(!text.contains("secret") && !text.contains("c2VjcmV0"), "{text}");
    }
}

/// A server over HTTP, with the right token, a wrong one, and none.
#[test]
fn servers_over_http_can_be_used() {
    let served = Project::empty();
    served.write("specs/a.eld", "(deftool :name \"now\" :description \"Tell the time.\" :args ())");
    served.write("scripts/now.lua", "return function() return \"noon\" end\n");
    let (_server, url) = super::mcp::start_http(&served, &[]);
    let server = format!("(defmcp :name \"web\" :url \"{url}\" :token-env \"TOKEN\")");
    let project = project(&server, r#"(reply (call "web__now"))"#);
    for (token, expected) in [
        (Some("secret"), "tool   web__now → \"noon\""),
        (Some("wrong"), "it requires a bearer token; name its environment variable in `:token-env`"),
        (None, "error: MCP server `web`: the environment variable `TOKEN` is not set\n"),
    ] {
        let mut command = command(&project, &["--trust"]);
        command.envs(token.map(|token| ("TOKEN", token)));
        let ended = Ended::of(command.output().unwrap());
        assert!(ended.stderr.contains(expected), "{token:?}: {ended:?}");
    }
    let with_header = server.replace(":token-env", ":header-env (:Authorization \"TOKEN\") ;");
    project.write("specs/a.eld", with_header + "\n)");
    for (header, expected) in [
        ("Bearer secret", "tool   web__now → \"noon\""),
        ("a\nb", "the value of the header `Authorization` has characters that no header can have"),
    ] {
        let ended = Ended::of(command(&project, &["--trust"]).env("TOKEN", header).output().unwrap());
        assert!(ended.stderr.contains(expected), "{header}: {ended:?}");
    }
    project.write("specs/a.eld", "(defmcp :name \"web\" :url \"http://127.0.0.1:1/mcp\")");
    let ended = project.run(&["run", "x", "--trust", "--endpoint", "http://127.0.0.1:1/v1"]);
    let unreachable = "error: MCP server `web`: cannot connect to http://127.0.0.1:1/mcp: Connection refused";
    assert!(ended.stderr.contains(unreachable), "{ended:?}");
}
