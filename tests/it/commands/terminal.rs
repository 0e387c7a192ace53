//! Texts of scripts and specs cannot emit terminal control characters.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use deftool_test_support::server::{Answer, Server, Texts, call, delta, finish};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

/// A colour, a title, a bell, the C1 control sequence introducer, bidirectional controls, delete and carriage return.
const TRICKS: &str = "\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}\u{7f}\r\u{8}";

fn project() -> Project {
    let project = Project::new();
    let tricks = r"\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}\u{7f}\r\u{8}";
    let specs = ["returns", "raises", "fails", "keys"]
        .map(|name| format!("(deftool :name \"{name}\" :description \"Tries the terminal.\" :args ())\n"));
    project.write("specs/tricks.eld", specs.concat());
    let log = format!("  print('{tricks}') log.error('{tricks}') tool.progress(0.5, '{tricks}')\n");
    for (name, body) in [
        ("returns", format!("return {{ text = '{tricks}' }}")),
        ("raises", format!("error('{tricks}')")),
        ("fails", format!("error(tool.failure('{tricks}'))")),
        ("keys", format!("return {{ ['{tricks}'] = print }}")),
    ] {
        project.write(&format!("scripts/{name}.lua"), format!("return function()\n{log}  {body}\nend\n"));
    }
    project
}

fn assert_harmless(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        let harmful = |c: char| {
            c.is_control() && c != '\n' && c != '\t' || "\u{202e}\u{2066}\u{200f}\u{61c}".contains(c)
        };
        assert!(!text.contains(harmful), "{text:?}");
    }
}

#[test]
fn call_prints_no_control_characters() {
    let project = project();
    for isolation in ["threads", "process"] {
        for tool in ["returns", "raises", "fails", "keys"] {
            for more in [&[][..], &["--json"]] {
                let ended = project.run(&[&["call", tool, "--isolate", isolation], more].concat());
                assert_harmless(&ended);
                assert!(ended.stderr.contains("[31m"), "the log lines are printed: {ended:?}");
                assert_eq!(ended.code, Some(i32::from(tool != "returns")), "{ended:?}");
                if tool == "returns" {
                    // The JSON value is unchanged.
                    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
                    let result = if more.is_empty() { &value } else { &value["result"] };
                    assert_eq!(*result, json!({"text": TRICKS}));
                }
            }
        }
    }
}

#[test]
fn run_prints_no_control_characters() {
    let project = project();
    for more in [&[][..], &["--json"]] {
        for tool in ["returns", "raises", "fails", "keys"] {
            let calls = [call(0, tool, "{}"), finish("tool_calls")];
            let last = [delta("Done.\n"), call(0, "done", r#"{"summary": "ok"}"#), finish("stop")];
            let server = Server::script([Answer::chunks(&calls), Answer::chunks(&last)]);
            let endpoint = server.endpoint();
            let ended = project.run(&[&["run", "hello", "--endpoint", &endpoint], more].concat());
            assert_harmless(&ended);
            assert!(ended.stderr.contains("owned"), "{ended:?}");
            if tool == "returns" {
                // The model receives the unchanged result.
                let result = json!({"text": TRICKS}).to_string();
                assert_eq!(server.posts()[1].texts("tool"), [result]);
            }
        }
    }
}

/// Names and contents of a project in all reports.
#[cfg(unix)]
#[test]
fn reports_contain_no_control_characters() {
    let (project, state) = (Project::empty(), tempfile::tempdir().unwrap());
    let odd = format!("odd{TRICKS}");
    let spec = format!(
        "(deftool :name \"says\" :description \"Say it. {TRICKS}\" :allow (:env [\"HOME\"]) :args ())\n\
         (deftool :name \"other\" :description \"Say nothing.\" :args ((:name \"a\" :type \"{odd}\")))\n"
    );
    let tricks = r"\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}\u{7f}\r\u{8}";
    project.write(&format!("{odd}/specs/a.eld"), spec);
    project.write(&format!("{odd}/scripts/says.lua"), format!("return function() error('{tricks}') end\n"));
    project.write(&format!("{odd}/scripts/other.lua"), "return function() end\n");
    let test = format!("test('{tricks}', function() print('{tricks}') expect('{tricks}').is('') end)\n");
    project.write(&format!("{odd}/scripts/says_test.lua"), test);
    let odd = odd.as_str();
    let cases: &[(&[&str], i32)] = &[
        (&["check", odd], 1),
        (&["check", odd, "--format", "concise"], 1),
        (&["check", odd, "--format", "github"], 1),
        (&["check", odd, "--format", "json"], 1),
        (&["check", odd, "--format", "sarif"], 1),
        (&["check", odd, "--format", "junit"], 1),
        (&["compile", odd], 1),
        (&["test", odd], 1),
        (&["test", odd, "--format", "json"], 1),
        (&["test", odd, "--format", "junit"], 1),
        (&["trust", "grant", odd], 0),
        (&["trust"], 0),
        (&["trust", "--json"], 0),
        (&["doctor", "-C", odd], 1),
        (&["doctor", "-C", odd, "--json"], 1),
    ];
    for (arguments, code) in cases {
        let mut command = project.command(arguments);
        command.env("XDG_STATE_HOME", state.path()).stdin(std::process::Stdio::null());
        let ended = Ended::of(command.output().unwrap());
        assert_eq!(ended.code, Some(*code), "{arguments:?}: {ended:?}");
        assert_harmless(&ended);
        assert!(
            ended.stdout.contains("odd") || ended.stderr.contains("odd"),
            "the name is printed: {ended:?}"
        );
        if arguments.iter().any(|argument| argument.ends_with("json")) && arguments[0] != "doctor" {
            // The JSON value is unchanged.
            let value: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert!(value.to_string().contains('\u{9b}'), "{ended:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn findings_and_help_fit_into_the_terminal() {
    use crate::support::terminal::{Piped, Terminal};

    let (long, wide) = ("word ".repeat(40), "日本語".repeat(40));
    let project = Project::empty();
    project.write(
        "specs/a.eld",
        format!("(deftool :name \"a\" :description \"{long}\" :args ((:name \"x\" :type strng :description \"{wide}\")))\n"),
    );
    // The terminal has 100 columns.
    for (arguments, location) in
        [(&["check"][..], Some("strng")), (&["--help"], None), (&["rule", "DT107"], None)]
    {
        let ended = Terminal::start(&project, arguments, Piped::Nothing).end();
        let width = |line: &str| line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        let lines = ended.stderr.lines().filter(|line| location.is_none() || line.contains("| "));
        for line in lines.clone() {
            assert!(width(line) <= 100, "{line}\n{ended:?}");
        }
        if let Some(location) = location {
            assert!(
                lines
                    .clone()
                    .any(|line| line.contains("| ...") && line.contains(location) && line.ends_with("..."))
            );
        }
        // The width of a file is that of no terminal.
        let piped = project.run(arguments).stdout;
        assert!(piped.lines().any(|line| width(line) > 100) == location.is_some(), "{piped}");
    }
}
