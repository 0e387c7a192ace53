//! `deftool stub` as a process, and `deftool run` against it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::project::Project;
use crate::support::terminal::{Piped, Terminal};
use deftool_test_support::client::exchange;

/// A running `deftool stub` process and its address.
struct Running {
    child: Child,
    address: SocketAddr,
    endpoint: String,
}

impl Running {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut command = project.command(&[&["stub"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let endpoint =
            line.strip_prefix("READY ").unwrap_or_else(|| panic!("not ready: {line:?}")).trim().to_owned();
        let address = endpoint.trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap();
        Self { child, address, endpoint }
    }

    /// Closes stdin and waits for the exit. Returns the exit code and stderr.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut stderr = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const WEATHER: &str = "(defscenario :name \"counts\"\n (reply :text \"Let me count. \" (call \"count\" (:text \"abc\")))\n \
                       (reply :when (:last-role tool) (expect :contains \"3\") \"Three.\"))\n";

/// Only READY is printed to stdout.
#[test]
fn a_scenario_is_served_until_stdin_closes_and_its_requests_are_printed_and_logged() {
    let project = Project::new();
    project.write("s.eld", WEATHER);
    let stub = Running::start(&project, &["s.eld", "--until-stdin-closes", "--log", "log.jsonl"]);
    assert!(stub.address.ip().is_loopback());
    let ended = project.run(&["run", "how long is abc?", "--endpoint", &stub.endpoint]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Let me count. Three.\n"), "{ended:?}");
    let (code, stderr) = stub.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.ends_with("POST /v1/chat/completions 200\nPOST /v1/chat/completions 200\n"), "{stderr}");
    let log = std::fs::read_to_string(project.path("log.jsonl")).unwrap();
    let posts: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["method"] == "POST")
        .collect();
    assert_eq!(posts.len(), 2);
    assert_eq!((&posts[0]["path"], &posts[0]["status"]), (&json!("/v1/chat/completions"), &json!(200)));
    let [.., tool] = posts[1]["body"]["messages"].as_array().unwrap().as_slice() else { panic!("{log}") };
    assert_eq!(tool["role"], "tool");
}

#[test]
fn secret_headers_are_not_logged() {
    let project = Project::new();
    let stub = Running::start(&project, &["--until-stdin-closes", "--log", "log.jsonl"]);
    let secret = ["authorization", "Proxy-Authorization", "x-goog-api-key", "X-Auth-Token", "cookie"]
        .join(": hunter2\r\n");
    let head = format!(
        "GET /v1/models?key=hunter2 HTTP/1.1\r\nx-plain: kept\r\n{secret}: hunter2\r\nconnection: close\r\n\r\n"
    );
    exchange(stub.address, &head);
    let (_, stderr) = stub.end();
    let log = std::fs::read_to_string(project.path("log.jsonl")).unwrap();
    assert!(log.contains("kept") && log.contains("/v1/models"), "{log}");
    assert!(!log.contains("hunter2") && !stderr.contains("hunter2"), "{log}\n{stderr}");
}

/// A signal to the stub ends all descendants of its command, including those in another session.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_all_descendants_of_the_command() {
    let project = Project::new();
    let script =
        "(trap '' TERM INT; sleep 600 & echo $! > one; wait) & setsid sleep 600 & echo $! > two; wait";
    let mut command = project.command(&["stub", "--quiet", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ids = ["one", "two"].map(|name| id_in(&project, name));
    // A second signal skips the grace period.
    for signal in ["-TERM", "-INT"] {
        kill(signal, &child.id().to_string());
    }
    // Both signals may be pending at once.
    assert!(matches!(child.wait().unwrap().code(), Some(130 | 143)));
    assert!(!ids.into_iter().any(is_alive));
}

/// In `server & exec deftool stub -- command` the stub replaces the shell, and `server` is not a descendant of the
/// command.
#[cfg(target_os = "linux")]
#[test]
fn processes_started_before_the_stub_keep_running() {
    let project = Project::new();
    let script =
        "sleep 600 & echo $! > before; exec \"$0\" stub --quiet -- sh -c 'sleep 600 & echo $! > own; wait'";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_deftool")]).current_dir(project.path(""));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = id_in(&project, "own");
    for signal in ["-TERM", "-INT"] {
        kill(signal, &child.id().to_string());
    }
    // Both signals may be pending at once.
    assert!(matches!(child.wait().unwrap().code(), Some(130 | 143)));
    let before = id_in(&project, "before");
    let is_running = is_alive(before);
    kill("-KILL", &before.to_string());
    assert!(is_running && !is_alive(own));
}

/// The command exits immediately, like npm. Its descendants get the grace period.
#[cfg(target_os = "linux")]
#[test]
fn descendants_of_the_command_get_the_grace_period() {
    use std::os::unix::process::CommandExt;
    let script =
        "(trap 'sleep 0.3; echo bye > words; exit' TERM; echo $$ > ready; while :; do sleep 1; done) & wait";
    // On a busy machine the grace period of two seconds may be too short.
    let has_output = (0..5).any(|_| {
        let project = Project::new();
        let mut command = project.command(&["stub", "--quiet", "--", "sh", "-c", script]);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        id_in(&project, "ready");
        kill("-TERM", &format!("-{}", child.id()));
        assert_eq!(child.wait().unwrap().code(), Some(143));
        project.path("words").exists()
    });
    assert!(has_output);
}

/// Waits for the process id that a script writes to a file.
#[cfg(target_os = "linux")]
fn id_in(project: &Project, name: &str) -> u32 {
    let started = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(project.path(name)).unwrap_or_default();
        if let Some(id) = text.strip_suffix('\n') {
            return id.parse().unwrap();
        }
        assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "the script does not start");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(unix)]
fn kill(signal: &str, id: &str) {
    assert!(Command::new("kill").args([signal, "--", id]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[cfg(unix)]
#[test]
fn a_signal_stops_the_stub_with_exit_code_0() {
    let project = Project::new();
    for signal in ["-INT", "-TERM"] {
        let stub = Running::start(&project, &[]);
        kill(signal, &stub.child.id().to_string());
        assert_eq!(stub.end().0, Some(0), "{signal}");
    }
}

/// A terminal sends Ctrl-C to both processes. The command finishes its output, and both exit.
#[test]
fn ctrl_c_ends_the_command_and_the_stub() {
    let project = Project::new();
    let binary = env!("CARGO_BIN_EXE_deftool");
    let arguments = ["stub", "s.eld", "--quiet", "--", binary, "run", "tell me a story"];
    let mut outputs = Vec::new();
    // On a busy machine the text may arrive before the first progress line, or the last output may be too late.
    let is_complete = ["1s", "3s", "9s"].into_iter().any(|every| {
        let reply =
            format!("(reply :text \"Once upon a time there was a stub.\" :chunk 4 :every \"{every}\")");
        project.write("s.eld", format!("(defscenario :name \"a\" {reply})"));
        let mut terminal = Terminal::start(&project, &arguments, Piped::Nothing);
        terminal.wait_for("Once");
        terminal.type_text("\u{3}");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let (before, after) = ended.stderr.split_once("Once").unwrap();
        // The progress line names its reason from the start.
        assert!(!before.contains("  0s"), "{ended:?}");
        let is_complete =
            before.contains("waiting for the model") && after.contains("canceled; the text so far is kept");
        outputs.push(ended.stderr);
        is_complete
    });
    assert!(is_complete, "{outputs:?}");
}

#[test]
fn all_faults_are_listed() {
    let project = Project::empty();
    let listed = project.run(&["stub", "--list"]);
    let json: Value = serde_json::from_str(&project.run(&["stub", "--list", "--json"]).stdout).unwrap();
    let mut count = 0;
    for fault in json.as_array().unwrap().iter().flat_map(|group| group["members"].as_array().unwrap()) {
        let name = fault["name"].as_str().unwrap();
        assert!(listed.stdout.contains(&format!("\n  {name} ")), "{name}");
        count += 1;
    }
    assert!(count >= 40, "{count}");
    let chat_only = |name: &str| {
        let line = listed.stdout.lines().find(|line| line.contains(&format!("  {name} "))).unwrap();
        line.ends_with("[chat completions only]")
    };
    assert!(chat_only("role-missing") && !chat_only("index-missing"), "{}", listed.stdout);
}
