//! `deftool test`: the output for `tests/test_command/project` in each format, selection, exit codes, hostile values
//! and `--watch`.
//!
//! `UPDATE_EXPECT=1` updates the expected output.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};
use crate::support::watching::{LIMIT, WatchProcess};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_command")
}

fn deftool(arguments: &[&str]) -> Ended {
    let mut command = command_in(&root().join("project"), arguments);
    Ended::of(command.env_remove("CLICOLOR_FORCE").output().unwrap())
}

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

#[test]
fn the_list_contains_examples_and_tests_without_outcomes() {
    let list = "promise accepts 1 specs/a.eld:3:12
has tests scripts/empty_test.lua:1:1
a test scripts/promise_test.lua:1:1
";
    let project = project_of(BROKEN_PROMISE);
    project.write("scripts/promise.lua", "error('the script was loaded')");
    project.write("scripts/empty_test.lua", "");
    project.write("scripts/promise_test.lua", "test('a test', function() error('the test ran') end)\n");
    let ended = project.run(&["test", "--list"]);
    assert_eq!((ended.stdout.as_str(), ended.code), (list, Some(0)), "{}", ended.stderr);
    let ended = project.run(&["test", "--list", "--format", "json", "--filter", "a test"]);
    let tests: Value = serde_json::from_str(&ended.stdout).unwrap();
    let test = json!({"kind": "script", "name": "a test", "file": "scripts/promise_test.lua", "line": 1, "column": 1, "end_line": 1, "end_column": 53});
    assert_eq!(tests, json!({"tests": [test], "findings": []}));
    project.write("specs/b.eld", BROKEN);
    let ended = project.run(&["test", "--list"]);
    let rest = ended.stdout.strip_prefix(list).unwrap();
    assert_eq!((rest.split(':').next(), ended.code), (Some("error[DT204]"), Some(1)), "{rest}");
}

const KEPT: &str = "(deftool :name \"kept\" :description \"Keep it.\"
 :args ((:name \"x\" :type integer :description \"An x.\"))
 :accepts [(:x 1)]
 :rejects [(:x \"1\")])\n";
const BROKEN_PROMISE: &str = "(deftool :name \"promise\" :description \"Promise it.\"
 :args ((:name \"x\" :type integer :description \"An x.\"))
 :accepts [(:x \"1\")])\n";
const WITHOUT: &str = "(deftool :name \"without\" :description \"Go without.\" :args ())\n";
const BROKEN: &str = "(deftool :name \"broken\" :description \"Break it.\"
 :args ((:name \"x\" :type strin :description \"An x.\")) :accepts [(:x 1)])\n";

#[test]
fn each_format_matches_its_expected_file() {
    let mut wrong = Vec::new();
    let mut compare = |file: &str, written: &str| {
        let path = root().join(file);
        if std::env::var("UPDATE_EXPECT").is_ok() {
            fs::write(path, written).unwrap();
        } else if fs::read_to_string(path).unwrap_or_default() != written {
            wrong.push(format!("{file} differs; written was\n{written}"));
        }
    };
    for (format, file, summary) in
        [("human", "human.txt", true), ("json", "json.json", false), ("junit", "junit.xml", true)]
    {
        let ended = deftool(&["test", "--format", format]);
        assert_eq!(ended.code, Some(1), "{format}");
        compare(file, &ended.stdout);
        if summary {
            compare("summary.txt", &ended.stderr);
        } else {
            assert_eq!(ended.stderr, "", "{format}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `test`, `check` and `call` report the same violations at the same locations.
#[test]
fn failing_examples_are_the_findings_of_check() {
    let place = |json: &Value| (json["file"].clone(), json["line"].clone(), json["column"].clone());
    let failed: Vec<_> = results(&deftool(&["test", "--format", "json"]))
        .iter()
        .filter(|result| result["ok"] == false && result["kind"] == "example")
        .map(|result| {
            let violation = &result["violation"];
            let at = if violation.is_object() { violation } else { result };
            place(&json!({"file": result["file"], "line": at["line"], "column": at["column"]}))
        })
        .collect();
    let report: Value = serde_json::from_str(&deftool(&["check", "--format", "json"]).stdout).unwrap();
    let findings: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| ["DT245", "DT246"].iter().any(|code| finding["rule"] == *code))
        .map(place)
        .collect();
    assert!(!failed.is_empty());
    assert_eq!(failed, findings);
    // A call with the same arguments has the same error.
    let project = project_of(KEPT);
    let rejected = results(&project.run(&["test", "--format", "json"]))[1]["violation"].clone();
    let called = project.run(&["call", "kept", "{\"x\": \"1\"}", "--json"]);
    let called: Value = serde_json::from_str(&called.stdout).unwrap();
    let expected =
        format!("`kept`: {}: {}", rejected["path"].as_str().unwrap(), rejected["message"].as_str().unwrap());
    assert_eq!(called["error"]["message"], expected);
}

#[test]
fn exit_codes_and_summaries() {
    let case = |spec: &str, arguments: &[&str], code: i32, summary: &str| {
        let ended = project_of(spec).run(&[&["test"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{spec} {arguments:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().next(), Some(summary), "{spec} {arguments:?}");
        ended
    };
    case(KEPT, &[], 0, "2 examples of 1 tool: 2 ok");
    case(BROKEN_PROMISE, &[], 1, "1 example of 1 tool: 1 failed");
    let all = [KEPT, BROKEN_PROMISE, WITHOUT, BROKEN].concat();
    let summary = "3 examples of 2 tools: 2 ok, 1 failed; 1 tool without examples; 1 error, 1 tool skipped";
    let ended = case(&all, &[], 1, summary);
    assert!(ended.stdout.contains("error[DT204]") && !ended.stdout.contains("broken accepts"), "{ended:?}");
    assert!(!ended.stdout.contains("DT245"), "a failing example is reported once: {ended:?}");
    case(BROKEN, &["--format", "junit"], 1, "no examples; 1 error, 1 tool skipped");
    // Errors outside of tools.
    let worker = KEPT.to_owned() + "(defworker :name \"w\" :max-output 7)(deftool";
    let ended = case(&worker, &[], 1, "2 examples of 1 tool: 2 ok; 1 error");
    assert!(ended.stdout.contains("unclosed `(`"), "{ended:?}");

    let ended = case(WITHOUT, &[], 0, "no examples of 1 tool");
    assert!(ended.stdout.is_empty() && ended.stderr.contains(":accepts ["), "{ended:?}");
    case(KEPT, &["--filter", "keep"], 2, "error: no tool or test name contains `keep`");
    case(
        KEPT,
        &["--watch", "--format", "junit"],
        2,
        "error: --watch supports only `--format` human and json",
    );
    assert_eq!(project_of(KEPT).run(&["test", "gone.eld"]).code, Some(2));
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(command_in(nowhere.path(), &["test"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_script_that_does_not_load_fails_and_the_examples_still_run() {
    let project = project_of(KEPT);
    for (script, says) in [
        ("this is no Lua", "scripts/kept.lua:1: "),
        ("return 7", "to return a function, found a number"),
        ("return _G.x", "the script must return a function, but it returned nothing"),
        ("error('no dice') return function(x) end", "scripts/kept.lua:1: no dice"),
        ("while true do end return function(x) end", "the script's top level ran longer than 250 ms"),
        ("local x = require('lib/gone') return function(y) return x end", "lib/gone"),
    ] {
        project.write("scripts/kept.lua", script);
        let ended = project.run(&["test"]);
        assert_eq!(ended.code, Some(1), "{script}: {ended:?}");
        assert_eq!(ended.stderr, "2 examples of 1 tool: 2 ok; 1 script does not load\n", "{script}");
        let line = ended.stdout.lines().find(|line| line.starts_with("FAIL kept loads specs/a.eld:1:16: "));
        assert!(line.is_some_and(|line| line.contains(says)), "{script}: {ended:?}");
        let report: Value = serde_json::from_str(&project.run(&["test", "--format", "json"]).stdout).unwrap();
        assert_eq!(report["results"][2]["kind"], "load", "{report:#}");
        assert_eq!(report["summary"]["broken_scripts"], 1);
        let junit = project.run(&["test", "--format", "junit"]).stdout;
        assert!(junit.contains("name=\"specs/a.eld: kept loads\""), "{junit}");
    }
    // A script as a path selects the tools that use it.
    project.write("specs/b.eld", BROKEN_PROMISE);
    project.write("scripts/kept.lua", "return function(x) end");
    let ended = project.run(&["test", "scripts/kept.lua"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "2 examples of 1 tool: 2 ok\n"));
    // The filter also applies to missing scripts.
    let ended = project.run(&["test", "--filter", "kept"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "2 examples of 1 tool: 2 ok\n"));
    project.write("specs/b.eld", WITHOUT);
    let ended = project.run(&["test"]);
    assert!(
        ended.stdout.contains("FAIL without loads specs/b.eld:1:16: missing script of `without`"),
        "{ended:?}"
    );
    // A tool in Emacs Lisp needs no script.
    let project = Project::empty();
    project.write("specs/a.el", KEPT.replace(":accepts", ":function #'ignore :accepts"));
    assert_eq!(project.run(&["test"]).code, Some(0));
}

#[test]
fn a_filter_selects_tools_and_errors() {
    let project = project_of(&[KEPT, BROKEN_PROMISE, BROKEN, WITHOUT].concat());
    project.write("specs/a.eld", [KEPT, BROKEN_PROMISE].concat());
    project.write("specs/b.eld", [BROKEN, WITHOUT].concat() + "(deftool");
    for (filter, code, results, errors) in [
        ("kept", 0, 2, 0),
        ("promise", 1, 1, 0),
        ("ro", 1, 1, 2), // promise and broken, and the file of broken is unclosed
        ("without", 1, 0, 1),
        ("", 1, 3, 2),
    ] {
        let ended = project.run(&["test", "--format", "json", "--filter", filter]);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let number = |list: &str| report[list].as_array().unwrap().len();
        assert_eq!(ended.code, Some(code), "{filter}: {report:#}");
        assert_eq!((number("results"), number("findings")), (results, errors), "{filter}: {report:#}");
        assert_eq!(report["summary"]["examples"], results);
    }
}

const DOUBLE: &str = "(deftool :name \"double\" :description \"Double it.\"
 :args ((:name \"x\" :type integer :description \"An x.\"))
 :accepts [(:x 1) (:args (:x 2) :returns (:twice 4 :text \"a ]] b\"))])\n";

#[test]
fn an_example_with_a_result_is_called() {
    let project = project_of(DOUBLE);
    let run = |script: &str| {
        project.write("scripts/double.lua", script);
        let ended = project.run(&["test"]);
        (ended.code.unwrap(), ended.stdout + &ended.stderr)
    };
    let (code, output) = run("return function(x) return { twice = 2 * x, text = 'a ]] b' } end");
    assert_eq!(
        (code, output.as_str()),
        (
            0,
            "\
ok   double accepts 1 specs/a.eld:3:12
ok   double accepts 2 specs/a.eld:3:26
2 examples of 1 tool: 2 ok\n"
        )
    );
    let (code, output) = run("return function(x) log.info('x', x) return { twice = 2, text = 'a ]] b' } end");
    assert_eq!(
        (code, output.as_str()),
        (
            1,
            "\
ok   double accepts 1 specs/a.eld:3:12
FAIL double accepts 2 specs/a.eld:3:42: .twice: expected 4, got 2
     logged info: double: x 2
2 examples of 1 tool: 1 ok, 1 failed\n"
        )
    );
    let (code, output) = run("return function(x) error('no dice') end");
    assert_eq!(code, 1);
    assert!(
        output.contains("FAIL double accepts 2 specs/a.eld:3:42: ") && output.contains("no dice"),
        "{output}"
    );
    // The tool runs with its permissions, without a prompt.
    project.write("specs/a.eld", DOUBLE.replace(" :accepts", " :allow (:run [\"true\"]) :accepts"));
    let (code, output) = run("return function(x) return process.run({ 'true' }) end");
    assert_eq!(code, 1);
    assert!(output.contains("trust"), "{output}");
    // An argument called `args` is an argument.
    let own = DOUBLE
        .replace("\"x\"", "\"args\"")
        .replace("(:x 1) (:args (:x 2) :returns (:twice 4 :text \"a ]] b\"))", "(:args 1)");
    project.write("specs/a.eld", own);
    let (code, output) = run("return function(x) return x end");
    assert_eq!(code, 0, "{output}");
}

/// In an `.el` file, a later definition replaces an earlier one, but failing examples of both are errors.
#[test]
fn examples_of_a_replaced_tool_run_only_if_they_fail() {
    let kept = BROKEN_PROMISE.replace("(:x \"1\")", "(:x 1)");
    for (earlier, oks) in [(BROKEN_PROMISE, vec![false, true]), (&kept, vec![true])] {
        let project = Project::empty();
        project.write("specs/a.el", earlier.to_owned() + &kept);
        project.write("scripts/promise.lua", "return function(x) end");
        let ended = project.run(&["test", "--format", "json"]);
        let ok: Vec<Value> = results(&ended).iter().map(|result| result["ok"].clone()).collect();
        assert_eq!(ok, oks, "{ended:?}");
        assert_eq!(ended.code, project.run(&["check"]).code);
    }
}

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
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(watching.child.wait().unwrap().code(), Some(130));
}
