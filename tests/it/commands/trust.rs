//! Trust: prompts, servers, and what happens at once. Everything else is in `tests/commands/trust.md`.

mod keys;
mod untrusted_projects;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use deftool_test_support::server::{Act, Answer, Server, Texts};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};
use crate::support::watching::WatchProcess;

/// A project and a state folder.
struct Home {
    project: Project,
    state: tempfile::TempDir,
}

fn tool(name: &str, allow: &str) -> String {
    format!("(deftool :name \"{name}\" :description \"Do it.\" :allow ({allow}))\n")
}

const SCRIPT: &str = "return function() return 'ran' end\n";

impl Home {
    /// Creates a project with tools and their `:allow` lists.
    fn of(tools: &[(&str, &str)]) -> Self {
        let home = Self { project: Project::empty(), state: tempfile::tempdir().unwrap() };
        for (name, allow) in tools {
            home.project.write(&format!("specs/{name}.eld"), tool(name, allow));
            home.project.write(&format!("scripts/{name}.lua"), SCRIPT);
        }
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.command(arguments);
        command.env("XDG_STATE_HOME", self.state.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    fn call(&self, tool: &str) -> Option<i32> {
        self.run(&["call", tool]).code
    }

    fn store(&self) -> PathBuf {
        self.state.path().join("deftool/trust.json")
    }

    /// Returns the permissions of this project in `trust --json`.
    fn granted(&self) -> Value {
        let listed: Value = serde_json::from_str(&self.run(&["trust", "--json"]).stdout).unwrap();
        let root = fs::canonicalize(self.project.path(".")).unwrap();
        let mine = listed.as_array().unwrap().iter().find(|entry| entry["project"] == root.to_str().unwrap());
        mine.map_or(Value::Null, |entry| entry["grants"].clone())
    }
}

/// Only root can change the owner.
#[cfg(unix)]
#[test]
fn a_store_of_another_user_is_ignored() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    home.run(&["trust", "grant"]);
    if std::os::unix::fs::chown(home.store(), Some(4321), None).is_ok() {
        assert!(home.run(&["call", "fetch"]).stderr.contains("it belongs to another user"));
    }
}

#[test]
fn concurrent_grants_are_all_stored() {
    let state = tempfile::tempdir().unwrap();
    let projects: Vec<Project> = (0..12)
        .map(|_| {
            let project = Project::empty();
            project.write("specs/a.eld", tool("a", ":run [\"git\"]"));
            project
        })
        .collect();
    let started = projects.iter().map(|project| {
        let mut command = project.command(&["trust", "grant"]);
        command
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    });
    let started: Vec<_> = started.collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    let content = fs::read(state.path().join("deftool/trust.json")).unwrap();
    let content: Value = serde_json::from_slice(&content).unwrap();
    assert_eq!(content["projects"].as_object().unwrap().len(), projects.len());
}

/// A permission that a reload adds during a request is refused at the call, and works after it is granted.
#[test]
fn a_permission_added_during_a_run_is_refused() {
    grow_during_a_run(&[]);
}

/// `--trust` covers the permissions at the start of the run. Later edits of the specs by the model are not covered.
#[test]
fn a_permission_added_during_a_run_is_refused_with_trust_option() {
    grow_during_a_run(&["--trust"]);
}

fn grow_during_a_run(options: &[&str]) {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    home.project
        .write("specs/worker.eld", "(defworker :name \"w\" :tool-budget 1000 :on-tool-error report)\n");
    if options.is_empty() {
        home.run(&["trust", "grant"]);
    }
    let home = Arc::new(home);
    let shared = Arc::clone(&home);
    let (widen, grant) = (tool("fetch", ":net [\"a.example\" \"evil.example\"]"), Arc::clone(&home));
    let server = Server::answering(move |index, request| {
        let results = request.texts("tool");
        let is_refused = |result: &String| result.contains("evil.example");
        let (refused, last) = (results.iter().any(is_refused), results.last());
        // Call until the reload is visible, then until the grant is.
        let call = Answer::stream().then(Act::Wait(std::time::Duration::from_millis(100)));
        let call = call
            .chunk(&deftool_test_support::server::call(0, "fetch", "{}"))
            .chunk(&deftool_test_support::server::finish("tool_calls"))
            .done()
            .end();
        if index == 1 {
            assert!(last.is_some_and(|last| last.contains("ran")), "{results:?}");
            let beside = shared.project.path("new");
            fs::write(&beside, &widen).unwrap();
            fs::rename(beside, shared.project.path("specs/fetch.eld")).unwrap();
        }
        if last.is_some_and(is_refused) {
            assert_eq!(grant.run(&["trust", "grant"]).code, Some(0));
        } else if refused {
            return Answer::text(last.unwrap());
        }
        call
    });
    let endpoint = server.endpoint();
    let ended = home.run(&[&["run", "go", "--endpoint", &endpoint], options].concat());
    assert_eq!((ended.code, ended.stdout.contains("ran")), (Some(0), true), "{ended:?}");
    let expected = "not trusted, so calls are refused: fetch requires :net [\"evil.example\"]";
    assert!(ended.stderr.contains("new permissions: fetch"), "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(ended.stderr.contains("run `deftool trust grant`"), "{}", ended.stderr);
    let is_refused = |result: &String| result.contains("evil.example");
    assert!(server.posts().last().unwrap().texts("tool").iter().any(is_refused));
}

#[test]
fn a_run_requires_the_permissions_of_its_worker() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("plain", "")]);
    home.project.write(
        "specs/w.eld",
        "(defworker :name \"plain\" :tools [\"plain\"])\n(defworker :name \"one\" :tools [\"fetch\"])\n",
    );
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let run = |arguments: &[&str]| {
        home.run(&[&["run", "hello", "--endpoint", &endpoint, "--worker"], arguments].concat()).code
    };
    assert_eq!((run(&["plain"]), run(&["one"]), run(&["one", "--trust"])), (Some(0), Some(2), Some(0)));
    assert_eq!(server.posts().len(), 2, "untrusted runs must not send requests");
}

/// Returns the names of the tools that a request offers.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// A tool that was left out is offered after it was granted and a file was saved.
#[test]
fn a_granted_tool_is_offered_after_a_reload() {
    let home = Arc::new(Home::of(&[("fetch", ":net [\"a.example\"]"), ("plain", "")]));
    home.project.write("specs/worker.eld", "(defworker :name \"w\" :tool-budget 1000)\n");
    let grant = Arc::clone(&home);
    let server = Server::answering(move |index, request| {
        if index == 0 {
            assert_eq!(offered(&request.body), ["plain"]);
            assert_eq!(grant.run(&["trust", "grant"]).code, Some(0));
            let beside = grant.project.path("new");
            fs::write(&beside, "return function() return 'saved' end\n").unwrap();
            fs::rename(beside, grant.project.path("scripts/plain.lua")).unwrap();
        }
        if offered(&request.body) == ["fetch", "plain"] {
            return Answer::text("both");
        }
        Answer::stream()
            .then(Act::Wait(std::time::Duration::from_millis(100)))
            .chunk(&deftool_test_support::server::call(0, "plain", "{}"))
            .chunk(&deftool_test_support::server::finish("tool_calls"))
            .done()
            .end()
    });
    let ended = home.run(&["run", "go", "--endpoint", &server.endpoint()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "both\n"), "{ended:?}");
}

#[test]
fn watch_reports_untrusted_permissions() {
    let home = Home::of(&[("fetch", ":net [\"never.example\"]")]);
    let mut command = home.command(&["test", "--watch"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let watching = WatchProcess::of(child);
    let line = |start: &str| loop {
        let line = watching.stdout.recv_timeout(crate::support::watching::LIMIT).unwrap();
        if line.starts_with(start) {
            return line;
        }
    };
    assert!(line("not trusted: ").contains("fetch requires :net [\"never.example\"]"));
    let beside = home.project.path("new");
    fs::write(&beside, tool("fetch", ":run [\"git\"]")).unwrap();
    fs::rename(beside, home.project.path("specs/fetch.eld")).unwrap();
    assert!(line("generation 2: ").contains("new permissions: fetch"));
    assert!(line("not trusted: ").contains("fetch requires :run [\"git\"]"));
}

#[cfg(target_os = "linux")]
mod terminal {
    use std::io::{Read, Write};

    use super::*;
    use crate::support::terminal::pseudo_terminal;

    /// Runs the binary with a pseudo-terminal for stdin and stderr. Returns the terminal output and the result.
    fn answer(command: Command, answer: &[u8]) -> (String, Ended) {
        answer_after(command, b"", answer)
    }

    /// Like [`answer`], with text that is typed before the binary starts.
    fn answer_after(mut command: Command, typed_ahead: &[u8], answer: &[u8]) -> (String, Ended) {
        let (mut master, slave) = pseudo_terminal();
        master.write_all(typed_ahead).unwrap();
        let other = slave.try_clone().unwrap();
        let child = command.stdin(slave).stderr(other).stdout(Stdio::piped()).spawn().unwrap();
        // The command holds the other ends.
        drop(command);
        let mut typist = master.try_clone().unwrap();
        let answer = answer.to_vec();
        let reader = std::thread::spawn(move || {
            let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
            let mut is_answered = false;
            let mut master = master;
            // Linux returns EIO after the last other end is closed.
            while let Ok(count @ 1..) = master.read(&mut bytes) {
                said.extend_from_slice(&bytes[..count]);
                if !is_answered && said.ends_with(b"[y/N] ") {
                    typist.write_all(&answer).unwrap();
                    is_answered = true;
                }
            }
            String::from_utf8(said).unwrap()
        });
        let ended = Ended::of(child.wait_with_output().unwrap());
        (reader.join().unwrap(), ended)
    }

    #[test]
    fn yes_is_stored_and_any_other_answer_runs_nothing() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("save", ":write [\"out\"]")]);
        // 4: Ctrl-D, the end of input.
        for no in ["\n", "n\n", "yess\n", "\u{4}"] {
            let (said, ended) = answer(home.command(&["call", "fetch"]), no.as_bytes());
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{no:?}");
            assert!(said.contains("nothing was run"), "{said}");
        }
        let (said, ended) = answer(home.command(&["call", "fetch"]), b"y\n");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "\"ran\"\n"), "{said}");
        assert!(said.contains("fetch requires :net [\"a.example\"] (specs/fetch.eld:1:16)\r\n"), "{said}");
        assert!(!said.contains("save"), "tools that are not run must not be listed: {said}");
        assert_eq!(
            home.granted(),
            json!({"net": ["a.example"]}),
            "what was granted is remembered, and no more"
        );
        assert_eq!((home.call("fetch"), home.call("save")), (Some(0), Some(2)));
        let (_, ended) = answer(home.command(&["call", "save"]), b"YES\n");
        assert_eq!(ended.code, Some(0));
        assert_eq!(home.granted(), json!({"net": ["a.example"], "write": ["out"]}));
    }

    #[test]
    fn a_run_continues_without_the_tools_that_are_not_trusted() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("plain", "")]);
        let server = Server::answering(|_, _| Answer::text("hi"));
        let command = home.command(&["run", "hello", "--endpoint", &server.endpoint()]);
        let (said, ended) = answer(command, b"n\n");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{said}");
        assert!(said.contains("not available: fetch requires :net [\"a.example\"] ("), "{said}");
        assert_eq!(offered(&server.posts()[0].body), ["plain"]);
        assert_eq!(home.granted(), Value::Null);
    }

    /// Text that was typed before the prompt does not answer it.
    #[test]
    fn an_answer_before_the_prompt_is_ignored() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let (said, ended) = answer_after(home.command(&["call", "fetch"]), b"y\n", b"n\n");
        assert_eq!(ended.code, Some(2), "{said}");
        assert!(said.contains("nothing was run"), "{said}");
    }

    #[test]
    fn the_prompt_contains_no_control_characters() {
        let hostile =
            r#":run ["git\e[2K\rharmless" "a\nTrust it? [y/N] y" "\u202egnp" "a\u200bb\u2028c\u00a0d"]"#;
        let home = Home::of(&[("fetch", hostile)]);
        let (said, ended) = answer(home.command(&["call", "fetch", "--color", "never"]), b"n\n");
        assert_eq!(ended.code, Some(2), "{said}");
        let bad = |c: char| c.is_control() && !matches!(c, '\r' | '\n');
        assert!(
            !said.contains(bad) && !said.contains(['\u{202e}', '\u{200b}', '\u{2028}', '\u{a0}']),
            "{said:?}"
        );
        let requests: Vec<&str> = said.lines().filter(|line| line.contains("fetch requires")).collect();
        assert_eq!(requests.len(), 1, "{said}");
        assert!(requests[0].contains(r"\u{1b}[2K\rharmless"), "{said}");
    }

    #[test]
    fn without_a_home_folder_the_answer_applies_to_this_run() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let mut command = home.command(&["call", "fetch"]);
        command.env_remove("XDG_STATE_HOME").env_remove("HOME");
        let (said, ended) = answer(command, b"y\n");
        assert_eq!(ended.code, Some(0), "{said}");
        assert!(said.contains("cannot store the trust: no state folder"), "{said}");
    }

    /// No prompt is shown if stdin is not a terminal.
    #[test]
    fn stdin_and_stderr_must_both_be_terminals() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let (_typist, slave) = pseudo_terminal();
        let output = home.command(&["call", "fetch"]).stdin(slave).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
