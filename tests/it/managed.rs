//! `deftool run` with a worker that starts its own server: the real binary, a fake server, and nothing left behind.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::project::{Ended, Project};
use crate::worker::managed::fake::{command, family, runs, signal, wait_until_gone};

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A project whose worker starts the fake server, which is told this.
pub(crate) fn project(told: &str) -> Project {
    let command: Vec<String> = command().iter().map(|word| quoted(word)).collect();
    Project::with_worker(&format!(
        "(defworker :name \"own\"\n :server (:command [{}]\n  :env (:FAKE {} :FAKE_PORT \"{{port}}\")))\n",
        command.join(" "),
        quoted(told)
    ))
}

/// A run that shows its events.
struct Run {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Run {
    fn start(project: &Project, prompt: &str) -> Self {
        let mut child = project
            .command(&["run", prompt, "--json", "--trust"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads events until one of this type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let Some(line) = self.lines.next() else {
                let mut said = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the run ended: {said}");
            };
            let line = line.unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Waits until it has started its server: all of its processes.
    fn family(&self) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let found = family(self.child.id());
            // Itself, the guard, the server.
            if found.len() >= 3 {
                return found[1..].to_vec();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{found:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

#[test]
fn a_run_starts_its_server_says_so_and_ends_it() {
    let project = project("load=100 family");
    let mut run = Run::start(&project, "hello");
    run.until("submitted");
    let family = run.family();
    assert_eq!(run.until("finished")["text"], "hi");
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "starting the server");
    assert!(lines[1].starts_with("server ready at http://127.0.0.1:"), "{said}");
    // Not even a moment later.
    assert!(!family.iter().any(|id| runs(*id)), "{family:?}");
}

/// What the kernel kills has no moment to clean up after itself.
#[test]
fn a_killed_deftool_leaves_no_server() {
    for (name, told, stopped) in [
        ("killed", "family", false),
        ("stopped and killed", "", true),
        ("ignores TERM", "stubborn family", false),
    ] {
        let project = project(told);
        let mut run = Run::start(&project, "stall");
        run.until("text");
        let family = run.family();
        if stopped {
            signal(run.child.id(), Signal::STOP);
        }
        signal(run.child.id(), Signal::KILL);
        let took = wait_until_gone(&family);
        assert_eq!(took >= Duration::from_secs(4), told.starts_with("stubborn"), "{name}: {took:?}");
        run.end();
    }
    // Before anything was asked, at any moment of the start.
    let project = project("load=100000");
    for wait in [0, 1, 2, 4, 8, 16, 32, 64] {
        let mut run = Run::start(&project, "hello");
        std::thread::sleep(Duration::from_millis(wait * 3));
        let family = family(run.child.id());
        run.child.kill().unwrap();
        wait_until_gone(&family[1..]);
        run.end();
    }
    wait_for_no_server_of(&project);
}

/// The guard may have started it after its family was listed.
fn wait_for_no_server_of(project: &Project) {
    let folder = std::fs::canonicalize(project.path(".")).unwrap();
    let begun = Instant::now();
    loop {
        let there = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
        if !there {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "something still runs in {}", folder.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_leaves_nothing_whenever_it_comes() {
    let loading = project("load=100000");
    let run = Run::start(&loading, "hello");
    let family = run.family();
    signal(run.child.id(), Signal::INT);
    assert_eq!(run.end().0, Some(130));
    wait_until_gone(&family);

    let streaming = project("family");
    let mut run = Run::start(&streaming, "stall");
    run.until("text");
    let family = run.family();
    signal(run.child.id(), Signal::INT);
    let finished = run.until("finished");
    assert_eq!((finished["state"].as_str(), finished["text"].as_str()), (Some("canceled"), Some("so far")));
    assert_eq!(run.end().0, Some(130));
    assert!(!family.iter().any(|id| runs(*id)), "{family:?}");
}

#[test]
fn a_server_is_not_started_without_trust() {
    let marks = tempfile::tempdir().unwrap();
    let mark = marks.path().join("started");
    let project = project(&format!("count={}", mark.display()));
    let untrusted = project.run(&["run", "hello"]);
    assert_eq!(untrusted.code, Some(2), "{untrusted:?}");
    assert!(untrusted.stderr.contains("worker `own` wants :server ["), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains("deftool trust grant"), "{}", untrusted.stderr);
    assert!(!mark.exists(), "it was started unasked");
    // Another server is no matter of trust, and starts none.
    let nobody = crate::support::server::DeadEnd::new();
    let elsewhere = project.run(&["run", "hello", "--endpoint", &nobody.endpoint()]);
    assert!(!elsewhere.stderr.contains("trust") && !mark.exists(), "{}", elsewhere.stderr);

    assert_eq!(project.run(&["trust", "grant"]).code, Some(0));
    let trusted = project.run(&["run", "hello"]);
    assert_eq!((trusted.code, trusted.stdout.as_str()), (Some(0), "hi\n"), "{trusted:?}");
    std::fs::remove_file(&mark).unwrap();
    // A changed argument is another program.
    let spec = std::fs::read_to_string(project.path("specs/worker.eld")).unwrap();
    project.write("specs/worker.eld", spec.replace("--nocapture", "--no-capture"));
    let changed = project.run(&["run", "hello"]);
    assert_eq!(changed.code, Some(2), "{changed:?}");
    assert!(!mark.exists());
    project.run(&["trust", "revoke"]);
}

#[test]
fn a_server_that_does_not_start_is_told_with_its_last_lines() {
    let ended = project("say=model.gguf:_no_such_file exit=1").run(&["run", "hello", "--trust"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("ended with exit code 1 before it was ready"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  model.gguf: no such file"), "{}", ended.stderr);
}

#[test]
fn a_death_in_the_middle_is_told_and_the_text_is_kept() {
    let project = project("");
    let mut run = Run::start(&project, "exit 42");
    let finished = run.until("finished");
    assert_eq!(finished["fail_reason"], "server_died", "{finished}");
    assert_eq!(finished["text"], "so far");
    assert!(finished["detail"].as_str().unwrap().contains("exit code 42"), "{finished}");
    assert_eq!(run.end().0, Some(1));
}

#[test]
fn doctor_looks_at_the_server_without_starting_it() {
    let marks = tempfile::tempdir().unwrap();
    let mark = marks.path().join("started");
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().port();
    let line = |project: &Project| {
        let Ended { stdout, .. } = project.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let lines = report["checks"].as_array().unwrap().clone();
        let line = lines.into_iter().find(|line| line["check"] == "server").expect("a line about the server");
        (line["level"].as_str().unwrap().to_owned(), line["message"].as_str().unwrap().to_owned())
    };
    let (level, message) = line(&project(&format!("count={}", mark.display())));
    assert_eq!(level, "ok", "{message}");
    assert!(message.contains("is started by each run") && !mark.exists(), "{message}");
    // What it takes trust for is told once, where trust is.
    let all = project("").run(&["doctor"]).stdout;
    assert!(
        message.ends_with(", once that is granted") && all.matches("wants :server").count() == 1,
        "{all}"
    );
    let worker =
        |server: &str| Project::with_worker(&format!("(defworker :name \"own\" :server ({server}))"));
    for (server, expected) in [
        (":command [\"no-such-program\" \"{port}\"]", "there is no program no-such-program in PATH"),
        (":command [\"sh serve.sh {port}\"]", "there is no program sh serve.sh {port} in PATH"),
        (":command [\"./serve.sh\" \"{port}\"]", "there is no program "),
        (":command [\"sleep\" \"{port}\"] :cwd \"gone\"", "there is no folder "),
        (&format!(":command [\"sleep\" \"9\"] :port {taken}"), &format!("port {taken} is taken by ")),
    ] {
        let (level, message) = line(&worker(server));
        assert_eq!(level, "error", "{server}: {message}");
        assert!(message.contains(expected), "{server}: {message}");
    }
}

/// Forms of `docs/managed.md`, and its first one for real, with a `llama-server` that is none.
#[test]
fn the_examples_of_the_page_hold() {
    let page = include_str!("../../docs/managed.md");
    let forms: Vec<&str> =
        page.split("```lisp\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let all = Project::new();
    all.write("specs/workers.eld", forms.concat());
    let checked = all.run(&["check"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), ""), "{checked:?}");

    let project = Project::with_worker(forms[0]);
    let words: Vec<String> = command().iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != --port ]; do shift; done\nFAKE=load=50 FAKE_PORT=$2 exec {}\n",
        words.join(" ")
    );
    project.write("bin/llama-server", script);
    let program = project.path("bin/llama-server");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program, mode).unwrap();
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    let output = project
        .command(&["run", "hello", "--worker", "local", "--trust"])
        .env("PATH", path)
        .output()
        .unwrap();
    let ended = Ended::of(output);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hi\n"), "{ended:?}");
    assert!(ended.stderr.starts_with("starting the server\nserver ready at http://127.0.0.1:"), "{ended:?}");
}
