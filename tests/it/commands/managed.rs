//! `deftool run` with a managed server: the real binary and a fake server, without leftover processes.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use deftool_test_support::markdown::blocks_in;
use rustix::process::Signal;
use serde_json::Value;

use crate::managed::fake::{command, family, runs, signal, wait_until_gone};
use crate::support::project::{Ended, Project};

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A project whose worker starts the fake server with these settings.
pub(crate) fn project(settings: &str) -> Project {
    let command: Vec<String> = command().iter().map(|word| quoted(word)).collect();
    Project::with_worker(&format!(
        "(defworker :name \"own\"\n :server (:command [{}]\n  :env (:FAKE {} :FAKE_PORT \"{{port}}\")))\n",
        command.join(" "),
        quoted(settings)
    ))
}

/// A `deftool run --json` process.
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

    /// Returns the next event of this type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let Some(line) = self.lines.next() else {
                let mut stderr = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
                panic!("the run ended: {stderr}");
            };
            let line = line.unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Waits for the server and returns the ids of all child processes.
    fn family(&self) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let found = family(self.child.id());
            // deftool, the guard and the server.
            if found.len() >= 3 {
                return found[1..].to_vec();
            }
            assert!(begun.elapsed() < deftool_test_support::HANG_LIMIT, "{found:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (status.code(), stderr)
    }
}

#[test]
fn run_starts_and_stops_its_server() {
    let project = project("load=1000 family");
    let mut run = Run::start(&project, "hello");
    // While the server loads. The request itself may end before its processes are listed.
    let family = run.family();
    run.until("submitted");
    assert_eq!(run.until("finished")["text"], "hi");
    let (code, stderr) = run.end();
    assert_eq!(code, Some(0), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines[0], "starting the server");
    assert!(lines[1].starts_with("server ready at http://127.0.0.1:"), "{stderr}");
    // Already ended, without waiting.
    assert!(!family.iter().any(|id| runs(*id)), "{family:?}");
}

/// A killed process cannot clean up.
#[test]
fn a_killed_deftool_leaves_no_server_behind() {
    for (name, settings, stopped) in [
        ("killed", "family", false),
        ("stopped and killed", "", true),
        ("ignores TERM", "stubborn family", false),
    ] {
        let project = project(settings);
        let mut run = Run::start(&project, "stall");
        run.until("text");
        let family = run.family();
        if stopped {
            signal(run.child.id(), Signal::STOP);
        }
        signal(run.child.id(), Signal::KILL);
        let took = wait_until_gone(&family);
        assert_eq!(took >= Duration::from_secs(4), settings.starts_with("stubborn"), "{name}: {took:?}");
        run.end();
    }
    // At any time during the start.
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

/// The guard may have started the server after the processes were listed.
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
        assert!(
            begun.elapsed() < deftool_test_support::HANG_LIMIT,
            "something still runs in {}",
            folder.display()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_leaves_no_process_behind() {
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
    assert!(untrusted.stderr.contains("worker `own` requires :server ["), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains("deftool trust grant"), "{}", untrusted.stderr);
    assert!(!mark.exists(), "started without trust");
    // Using another server requires no trust and starts no server.
    let nobody = deftool_test_support::server::ClosedPort::reserve();
    let elsewhere = project.run(&["run", "hello", "--endpoint", &nobody.endpoint()]);
    assert!(!elsewhere.stderr.contains("trust") && !mark.exists(), "{}", elsewhere.stderr);

    assert_eq!(project.run(&["trust", "grant"]).code, Some(0));
    let trusted = project.run(&["run", "hello"]);
    assert_eq!((trusted.code, trusted.stdout.as_str()), (Some(0), "hi\n"), "{trusted:?}");
    std::fs::remove_file(&mark).unwrap();
    // A changed argument requires a new grant.
    let spec = std::fs::read_to_string(project.path("specs/worker.eld")).unwrap();
    project.write("specs/worker.eld", spec.replace("--nocapture", "--no-capture"));
    let changed = project.run(&["run", "hello"]);
    assert_eq!(changed.code, Some(2), "{changed:?}");
    assert!(!mark.exists());
    project.run(&["trust", "revoke"]);
}

#[test]
fn a_failed_start_is_reported_with_the_last_log_lines() {
    let ended = project("say=model.gguf:_no_such_file exit=1").run(&["run", "hello", "--trust"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("exited with code 1 before it was ready"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  model.gguf: no such file"), "{}", ended.stderr);
}

#[test]
fn a_crash_during_a_reply_is_reported_and_the_text_is_kept() {
    let project = project("");
    let mut run = Run::start(&project, "exit 42");
    let finished = run.until("finished");
    assert_eq!(finished["fail_reason"], "server_died", "{finished}");
    assert_eq!(finished["text"], "so far");
    assert!(finished["detail"].as_str().unwrap().contains("exited with code 42"), "{finished}");
    assert_eq!(run.end().0, Some(1));
}

#[test]
fn doctor_checks_the_server_without_starting_it() {
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
    // The required permissions are reported once, in the trust line.
    let all = project("").run(&["doctor"]).stdout;
    assert!(
        message.ends_with(", after permission is granted") && all.matches("requires :server").count() == 1,
        "{all}"
    );
    let worker =
        |server: &str| Project::with_worker(&format!("(defworker :name \"own\" :server ({server}))"));
    for (server, expected) in [
        (
            ":command [\"no-such-program\" \"{port}\"]",
            "program `no-such-program` of worker `own` not found in PATH",
        ),
        (
            ":command [\"sh serve.sh {port}\"]",
            "program `sh serve.sh {port}` of worker `own` not found in PATH",
        ),
        (":command [\"./serve.sh\" \"{port}\"]", "program `./serve.sh` of worker `own` not found in "),
        (":command [\"sleep\" \"{port}\"] :cwd \"gone\"", "working directory `"),
        (
            &format!(":command [\"sleep\" \"9\"] :port {taken}"),
            &format!("port {taken} is already in use by "),
        ),
    ] {
        let (level, message) = line(&worker(server));
        assert_eq!(level, "error", "{server}: {message}");
        assert!(message.contains(expected), "{server}: {message}");
    }
}

/// Checks the managed servers of `docs/servers.md`, and runs the first one with a fake `llama-server`.
#[test]
fn the_examples_of_the_documentation_work() {
    let page = include_str!("../../../docs/servers.md");
    let section = page.split("## Managed servers").nth(1).unwrap();
    let forms = blocks_in(section, "lisp");
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
