//! `deftool call`: validates and runs one tool call.

use super::*;

#[test]
fn a_result_is_printed_as_json_and_exits_with_0() {
    let project = Project::new();
    let ended = project.run(&["call", "count", r#"{"text": "abc", "times": 2}"#]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.stdout, "{\n  \"length\": 6\n}\n");
    let ended = project.run_with_stdin(&["call", "count", "-", "--json"], br#"{"text": "abc"}"#);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ok", "result", "elapsed_ms", "timing", "memory"]);
    assert_eq!((&report["ok"], &report["result"]), (&json!(true), &json!({"length": 3})));
    assert!(report["elapsed_ms"].is_f64());
}

#[test]
fn null_is_a_result() {
    let project = Project::new();
    project.write("scripts/broken.lua", "return function() return nil end");
    let report = project.run(&["call", "broken", "--json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!((&report["ok"], report.get("result")), (&json!(true), Some(&Value::Null)));
}

#[test]
fn every_failure_has_a_kind_and_one_line_and_exits_with_1() {
    let project = Project::new();
    let spec =
        |name: &str, more: &str| format!("(deftool :name \"{name}\" :description \"x\" :args () {more})\n");
    let names = ["gone", "syntax", "endless", "odd", "forbidden", "failing"];
    let more = |name| if name == "endless" { ":timeout \"200ms\"" } else { "" };
    let specs: String = names.iter().map(|name| spec(name, more(*name))).collect();
    project.write("specs/more.eld", specs + "(deftool :name \"typo\" :description \"x\" :args \"none\")");
    project.write("scripts/syntax.lua", "return function()\n  return 1 +\nend");
    project.write("scripts/endless.lua", "return function() while true do end end");
    project.write("scripts/odd.lua", "return function() return { f = print } end");
    project.write("scripts/forbidden.lua", "return function() return fs.read('/etc/hostname') end");
    project.write("scripts/failing.lua", "return function() error(tool.failure('nothing found')) end");

    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["cuont"], "unknown_tool", &["unknown tool `cuont`; did you mean `count`?"]),
        (&["zzz"], "unknown_tool", &["available tools: broken, count"]),
        (&["done", r#"{"summary": "x"}"#], "unknown_tool", &["`done` is an exit tool"]),
        (&["count", "{text: 1}"], "invalid_arguments", &["the arguments of `count` are not JSON", "line 1"]),
        (&["count", "[1]"], "invalid_arguments", &["must be a JSON object"]),
        (&["count", "{}"], "invalid_arguments", &["`count`: ", "text"]),
        (&["count", r#"{"text": 1, "more": 2}"#], "invalid_arguments", &[".text", "more"]),
        (&["gone"], "load", &["missing script of `gone`: scripts/gone.lua does not exist"]),
        (&["syntax"], "load", &["scripts/syntax.lua:3"]),
        (&["typo"], "load", &["the spec of `typo` has errors: specs/more.eld:7:"]),
        (&["broken"], "script", &["scripts/broken.lua:2: no luck", "scripts/broken.lua:5"]),
        (&["failing"], "failure", &["nothing found"]),
        (&["endless"], "timeout", &["200 ms", "scripts/endless.lua:1"]),
        (&["odd"], "unserialisable", &[".f", "function"]),
        (&["forbidden"], "permission", &["/etc/hostname", ":allow"]),
    ];
    for (arguments, kind, parts) in cases {
        let ended = project.run(&[&["call"], *arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{arguments:?}: {ended:?}");
        let first = ended.stderr.lines().next().unwrap();
        assert!(first.starts_with(&format!("error[{kind}]: ")), "{arguments:?}: {}", ended.stderr);
        for part in *parts {
            assert!(ended.stderr.contains(part), "{arguments:?}: {part}: {}", ended.stderr);
        }

        let ended = project.run(&[&["call", "--json"], *arguments].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout.lines().count(), 1);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
        assert_eq!(keys[..4], ["ok", "error", "elapsed_ms", "timing"]);
        assert_eq!((&report["ok"], &report["error"]["kind"]), (&json!(false), &json!(kind)));
        let error = report["error"].to_string();
        let message = report["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains('\n'), "{arguments:?}: {error}");
    }
}

#[test]
fn an_impossible_call_exits_with_2() {
    let empty = tempfile::tempdir().unwrap();
    let ended = Ended::of(command_in(empty.path(), &["call", "count"]).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("no project found"), "{}", ended.stderr);
    assert_eq!(Project::new().run(&["call"]).code, Some(2));
    let ended = Project::new().run_with_stdin(&["call", "count", "-"], b"\xff");
    assert_eq!(ended.code, Some(1), "the call was attempted: {ended:?}");
    assert!(ended.stderr.contains("stdin"), "{}", ended.stderr);
}

/// Calls `tool` and stops the process for `pause` after its first log line.
#[cfg(unix)]
fn call_with_pause(project: &Project, tool: &str, pause: Duration) -> Ended {
    use rustix::process::{Pid, Signal, kill_process};
    let mut child = project.spawn(&["call", tool]);
    let mut line = [0; 5];
    child.stderr.as_mut().unwrap().read_exact(&mut line).unwrap();
    let id = Pid::from_child(&child);
    kill_process(id, Signal::STOP).unwrap();
    std::thread::sleep(pause);
    kill_process(id, Signal::CONT).unwrap();
    Ended::of(child.wait_with_output().unwrap())
}

/// A stopped process does not exceed the top-level limit. The call's own limit applies.
#[cfg(unix)]
#[test]
fn a_timeout_in_the_top_level_is_the_timeout_of_the_call() {
    let project = Project::new();
    let spec = "(deftool :name \"late\" :description \"x\" :args () :timeout \"1s\")\n";
    project.write("specs/late.eld", spec);
    let body = "log.info('begun')\nlocal n = 0\nfor i = 1, 3000000 do n = n + i % 7 end\n";
    project.write("scripts/late.lua", format!("{body}return function() return n end\n"));
    for _ in 0..20 {
        let ended = call_with_pause(&project, "late", Duration::from_millis(1_200));
        // The call may have ended before the process was stopped.
        if ended.code != Some(0) {
            assert!(ended.stderr.contains("error[timeout]"), "{ended:?}");
            return;
        }
    }
    panic!("every call ended before the process was stopped");
}

/// The limit counts CPU time, so that a busy machine does not make a top level exceed it.
#[cfg(unix)]
#[test]
fn the_top_level_limit_counts_cpu_time() {
    let project = Project::new();
    let body = "log.info('begun')\nlocal n = 0\nfor i = 1, 1000000 do n = n + i % 7 end\n";
    project.write("scripts/broken.lua", format!("{body}return function() return n end\n"));
    let ended = call_with_pause(&project, "broken", Duration::from_millis(500));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2999998\n"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_exits_with_130() {
    let project = Project::new();
    project.write("scripts/broken.lua", "return function() log.info('begun') while true do end end");
    let mut child = project.spawn(&["call", "broken"]);
    let err = child.stderr.as_mut().unwrap();
    let mut line = [0; 5];
    err.read_exact(&mut line).unwrap();
    interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
}
