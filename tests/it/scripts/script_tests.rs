//! Script tests: the project in `tests/test_command/scripts`, whose tests pass or fail as described in its files, with
//! the expected output of the failing tests. Also `--watch` and Ctrl-C. The rest is in `tests/commands/script_tests.md`.
//!
//! `UPDATE_EXPECT=1` updates the expected output.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use deftool_script::{known_globals, known_test_globals};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};
use crate::support::watching::WatchProcess;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_command/scripts")
}

fn deftool(arguments: &[&str]) -> Ended {
    let mut command = command_in(&root(), arguments);
    Ended::of(command.env_remove("CLICOLOR_FORCE").output().unwrap())
}

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

const PASSING: [&str; 9] = [
    "scripts/fs_test.lua",
    "scripts/host_test.lua",
    "scripts/http_test.lua",
    "scripts/luau_test.lua",
    "scripts/matchers_test.lua",
    "scripts/process_test.lua",
    "scripts/text_test.lua",
    "scripts/tools_test.lua",
    "scripts/lib/dates_test.luau",
];

#[test]
fn the_test_functions_work() {
    let before = folders();
    let ended = deftool(&[&["test", "--trust", "--timeout", "60s"], &PASSING[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left: Vec<_> = folders().into_iter().filter(|folder| !before.contains(folder)).collect();
    // Other tests may be running: folders of running processes are ignored.
    assert!(left.iter().all(|folder| is_running(folder) || !folder.exists()), "{left:?} left behind");
    // Tests are not unused scripts. One of them does not compile.
    let checked = deftool(&["check", "--ignore", "module-does-not-compile"]);
    assert!(checked.code == Some(0) && !checked.stdout.contains("DT408"), "{checked:?}");
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("deftool-test-"));
    ours.map(|entry| entry.path()).collect()
}

fn is_running(folder: &Path) -> bool {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let process = name.split('-').nth(2).unwrap().to_owned();
    Path::new("/proc").join(process).exists()
}

#[test]
fn failures_have_message_and_location() {
    let files = ["broken", "empty", "failures", "top", "undefined"];
    let files = files.map(|name| format!("scripts/{name}_test.lua"));
    let files = files.iter().map(String::as_str).collect::<Vec<_>>();
    let ended = deftool(&[&["test", "--timeout", "1s"], &files[..]].concat());
    assert_eq!(ended.code, Some(1));
    let failing: Vec<&str> = ended.stdout.lines().filter(|line| !line.starts_with("ok ")).collect();
    let (written, path) = (failing.join("\n") + "\n" + &ended.stderr, root().join("../scripts.txt"));
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(path, written).unwrap();
        return;
    }
    assert_eq!(written, fs::read_to_string(path).unwrap());
}

#[test]
fn json_and_junit_reports_contain_all_results() {
    let ended = deftool(&["test", "--timeout", "1s", "--format", "json", "scripts/failures_test.lua"]);
    let report = report(&ended);
    assert_eq!(ended.code, Some(1));
    let results = report["results"].as_array().unwrap();
    let keys: Vec<&String> = results[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "kind",
            "name",
            "ok",
            "file",
            "line",
            "column",
            "end_line",
            "end_column",
            "message",
            "tools",
            "failure",
            "failed_at",
            "details",
            "log",
            "elapsed_ms",
        ]
    );
    assert_eq!(results[0]["kind"], "script");
    assert_eq!(results[0]["failed_at"]["line"], 6);
    let failures: Vec<&str> = results.iter().map(|result| result["failure"].as_str().unwrap()).collect();
    for kind in ["expectation", "script", "timeout", "memory", "load"] {
        assert!(failures.contains(&kind), "{failures:?}");
    }
    let calls = results.iter().find(|result| result["name"] == "a tool that fails").unwrap();
    assert_eq!(calls["tools"], json!(["misbehave"]));
    assert_eq!((&report["summary"]["tests"], &report["summary"]["test_files"]), (&json!(15), &json!(1)));
    // Each test is one case in the suite of its file.
    let xml =
        deftool(&["test", "--timeout", "100ms", "--format", "junit", "scripts/failures_test.lua"]).stdout;
    assert_eq!((xml.matches("<testcase ").count(), xml.matches("<testsuite ").count()), (15, 1), "{xml}");
    assert!(xml.contains("name=\"scripts/failures_test.lua: spins\""), "{xml}");
    assert!(!xml.contains('\u{1b}'));
}

const SPEC: &str = "(deftool :name \"count\" :description \"Count what there is to be counted.\"
 :args ((:name \"text\" :type string :description \"What is counted.\"))
 :accepts [(:text \"a\")])
(deftool :name \"other\" :description \"Do something else than to count.\" :args ())\n";
const COUNT: &str = "return function(text) return #text end\n";
const OTHER: &str = "return function() end\n";
const TEST: &str =
    "test(\"counts\", function() expect(tool.load(\"count\")({ text = \"abc\" })).is(3) end)\n";

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write("scripts/count.lua", COUNT);
    project.write("scripts/other.lua", OTHER);
    project.write("scripts/count_test.lua", TEST);
    project
}

#[test]
fn tests_run_after_each_change() {
    let project = project();
    let watching = WatchProcess::start(&project.path("."), "test", &["--format", "json"]);
    assert_eq!(watching.report()["summary"]["ok"], 2);
    for (file, content, ok, failed) in [
        ("scripts/count.lua", "return function(text) return 4 end", 1, 1),
        ("scripts/count.lua", COUNT, 2, 0),
        ("scripts/count_test.lua", "test(\"no\", function() expect(1).is(2) end)", 1, 1),
        ("scripts/lib/new_test.lua", "test(\"new\", function() end)", 2, 1),
    ] {
        project.write(file, content);
        let summary = watching.report()["summary"].clone();
        assert_eq!((&summary["ok"], &summary["failed"]), (&json!(ok), &json!(failed)), "{file}: {summary}");
    }
}

/// Control characters in the output of a test are removed, and its length is limited.
#[test]
fn the_output_of_hostile_tests_is_safe() {
    let project = project();
    project.write(
        "scripts/count_test.lua",
        "test(\"\\27[2J\\u{202e}name\\n\", function()
           for i = 1, 1e5 do print(string.rep(\"\\27]0;x\\7\", 1000)) end
           error(\"\\27[31m\" .. string.rep(\"y\", 1e6))
         end)
         test(string.rep(\"long\", 1e5), function() end)
         for i = 1, 20 do test(\"t\" .. i, function() while true do end end) end",
    );
    for format in ["human", "json", "junit"] {
        let ended = project.run(&["test", "--timeout", "50ms", "--format", format]);
        assert_eq!(ended.code, Some(1));
        let shown = ended.stdout + &ended.stderr;
        assert!(shown.len() < 2_000_000, "{format}: {}", shown.len());
        let is_harmful = |c: char| c != '\n' && (c.is_control() || (format == "human" && c == '\u{202e}'));
        assert!(!shown.contains(is_harmful), "{format}");
    }
}

/// A name that does not exist would hide mistakes.
#[test]
fn the_known_globals_of_test_scripts_exist() {
    let own: Vec<String> =
        known_test_globals().into_iter().filter(|name| !known_globals().contains(name)).collect();
    let checks: Vec<String> = own.iter().map(|name| format!("assert({name} ~= nil, '{name}')\n")).collect();
    let project = project();
    project.write("scripts/all_test.lua", format!("test('all', function()\n{}end)", checks.concat()));
    let ended = project.run(&["test", "scripts/all_test.lua"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(own.contains(&String::from("tool.load")) && own.len() > 7, "{own:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_tests_and_removes_their_folders() {
    let project = project();
    project.write(
        "scripts/count_test.lua",
        "test(\"t\", function() temp.write(\"a\", \"\") while true do end end)",
    );
    let mut child = project.spawn(&["test", "--timeout", "60s"]);
    let of_child = |folder: &PathBuf| folder.to_string_lossy().contains(&format!("test-{}-", child.id()));
    let started = Instant::now();
    while !folders().iter().any(of_child) {
        assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "the test does not start");
        std::thread::yield_now();
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let id = child.id();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folders().iter().any(|folder| folder.to_string_lossy().contains(&format!("test-{id}-"))));
}
