//! `deftool test` with hostile values, and `--watch`. Everything else is in `tests/commands/test.md`.

use std::fmt::Write;
use std::process::Command;

use serde_json::Value;

use crate::support::project::{Ended, Project};
use crate::support::watching::{LIMIT, WatchProcess};

fn results(ended: &Ended) -> Vec<Value> {
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    report["results"].as_array().unwrap().clone()
}

/// A project with one spec file and a script for each tool.
fn project_of(spec: &str) -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", spec);
    for rest in spec.split("(deftool :name \"").skip(1) {
        let name = rest.split('"').next().unwrap();
        project.write(&format!("scripts/{name}.lua"), "return function(...) end");
    }
    project
}

const KEPT: &str = "(deftool :name \"kept\" :description \"Keep it.\"
 :args ((:name \"x\" :type integer :description \"An x.\"))
 :accepts [(:x 1)]
 :rejects [(:x \"1\")])\n";
const BROKEN_PROMISE: &str = "(deftool :name \"promise\" :description \"Promise it.\"
 :args ((:name \"x\" :type integer :description \"An x.\"))
 :accepts [(:x \"1\")])\n";
const BROKEN: &str = "(deftool :name \"broken\" :description \"Break it.\"
 :args ((:name \"x\" :type strin :description \"An x.\")) :accepts [(:x 1)])\n";

#[test]
fn hostile_values_are_printed_on_one_line_in_short_time() {
    let deep = "(:a ".repeat(100) + "1" + &")".repeat(100);
    let mut spec = format!(
        "(deftool :name \"t\" :description \"Take anything.\"
 :args ((:name \"x\" :type string :maxLength 3 :optional t :description \"An x.\")
        (:name \"y\" :type object :optional t :description \"A y.\" :additionalProperties (:type object :additionalProperties :json-false)))
 :accepts [(:x \"{}\") (:y (:a {deep})) (:x \"\\e[31m\\n]]>\\u202e\") (:y (:\\\u{1b}key\\\n\\<new 1))]
 :rejects [",
        "x".repeat(1_000_000)
    );
    // All on one line.
    for _ in 0..10_000 {
        let _ = write!(spec, "(:x \"abcd\") ");
    }
    let project = project_of(&(spec + "])\n"));
    for format in ["human", "json", "junit"] {
        // Limited to ten seconds of CPU time.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t 10 && exec \"$0\" test --format \"$1\""]);
        command.args([env!("CARGO_BIN_EXE_deftool"), format]).current_dir(project.path("."));
        let ended = Ended::of(command.output().unwrap());
        assert_eq!(ended.code, Some(1), "{format} was stopped");
        let is_harmful = |c: char| c != '\n' && (c.is_control() || (format == "human" && c == '\u{202e}'));
        assert!(!ended.stdout.contains(is_harmful), "{format}");
        match format {
            "human" => {
                assert_eq!(ended.stdout.lines().count(), 10_004);
                assert_eq!(ended.stdout.matches("FAIL ").count(), 4);
                assert!(ended.stdout.contains(": .y.\\u{1b}key\\n<new: 1 is not of type \"object\"\n"));
            }
            "json" => assert_eq!(results(&ended).len(), 10_004),
            _ => {
                assert_eq!(ended.stdout.matches("<testcase ").count(), 10_004);
                assert_eq!(ended.stdout.matches("</failure>").count(), 4);
                assert!(
                    ended.stdout.contains("message=\".y.\\u{1b}key\\n&lt;new: 1"),
                    "{}",
                    &ended.stdout[..3000]
                );
            }
        }
    }
}

#[test]
fn tests_run_after_each_change() {
    let project = project_of(KEPT);
    let watching = WatchProcess::start(&project.path("."), "test", &["--format", "json"]);
    assert_eq!(watching.report()["summary"]["ok"], 2);
    project.write("specs/a.eld", BROKEN_PROMISE);
    assert_eq!(watching.report()["results"][0]["ok"], false);
    watching.wait_for_stderr(" 1 example of 1 tool: 1 failed; watching; press Ctrl-C to stop");
    project.write("specs/a.eld", BROKEN);
    assert_eq!(watching.report()["findings"][0]["rule"], "DT204");
    project.write("specs/a.eld", KEPT);
    assert_eq!(watching.report()["summary"]["ok"], 2);
}

#[test]
fn watch_reports_what_a_change_does() {
    let project = Project::new();
    let watching = WatchProcess::start(&project.path("."), "test", &[]);
    let wait_for = |start: &str| loop {
        let line = watching.stdout.recv_timeout(LIMIT).unwrap();
        if line.starts_with(start) {
            return line;
        }
    };
    assert_eq!(wait_for("generation "), "generation 1: 3 tools");
    project.write("scripts/count.lua", "return function(text, times) return 1 end");
    assert!(wait_for("generation ").starts_with("generation 2: changed count ("));
    project.write("specs/new.eld", "(defexit :name \"silent\")\n");
    assert!(wait_for("generation ").starts_with("generation 3: added silent ("));
    wait_for("specs/new.eld:1:16: warning[DT112]");
}

#[cfg(unix)]
#[test]
fn watch_runs_until_ctrl_c() {
    let project = project_of(KEPT);
    let mut watching = WatchProcess::start(&project.path("."), "test", &["--filter", "kept"]);
    assert_eq!(watching.stdout.recv_timeout(LIMIT).unwrap(), "ok   kept accepts 1 specs/a.eld:3:12");
    watching.wait_for_stderr("2 examples of 1 tool: 2 ok");
    watching.wait_for_stderr(" watching; press Ctrl-C to stop");
    project.write("specs/a.eld", BROKEN_PROMISE);
    watching.wait_for_stderr(" no tool or test name contains `kept`; watching; press Ctrl-C to stop");
    let pid = watching.child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(watching.child.wait().unwrap().code(), Some(130));
}
