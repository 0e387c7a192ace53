//! `deftool stub`: the real binary, and `deftool run` against it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::client::{ask, exchange, hello};
use crate::support::project::{Ended, Project};
use crate::support::terminal::{Piped, Terminal};

/// A stub that serves, and where.
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

    /// Closes its stdin and waits for its end.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
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

/// The READY line has one reader only; the rest of stdout stays empty.
#[test]
fn a_scenario_is_served_until_stdin_closes_and_its_requests_are_told_and_logged() {
    let project = Project::new();
    project.write("s.eld", WEATHER);
    let stub = Running::start(&project, &["s.eld", "--until-stdin-closes", "--log", "log.jsonl"]);
    assert!(stub.address.ip().is_loopback());
    let ended = project.run(&["run", "how long is abc?", "--endpoint", &stub.endpoint]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Let me count. Three.\n"), "{ended:?}");
    let (code, said) = stub.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("POST /v1/chat/completions 200\nPOST /v1/chat/completions 200\n"), "{said}");
    let log = std::fs::read_to_string(project.path("log.jsonl")).unwrap();
    let posts: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["method"] == "POST")
        .collect();
    assert_eq!(posts.len(), 2);
    assert_eq!((&posts[0]["path"], &posts[0]["status"]), (&json!("/v1/chat/completions"), &json!(200)));
    let [.., tool, _bios] = posts[1]["body"]["messages"].as_array().unwrap().as_slice() else {
        panic!("{log}")
    };
    assert_eq!(tool["role"], "tool");
}

#[test]
fn a_request_that_is_not_as_expected_fails_the_stub() {
    let project = Project::new();
    project.write("s.eld", "(defscenario :name \"a\" (reply (expect :last-role tool) \"x\"))");
    let stub = Running::start(&project, &["s.eld", "--until-stdin-closes"]);
    assert_eq!(ask(stub.address, &hello(false)).0, 400);
    let (code, said) = stub.end();
    assert_eq!(code, Some(1), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "POST /v1/chat/completions 400",
            "error: scenario `a`, step 1: expected the last message to be of the role `tool`, found `user`",
            "error: 1 request was not as the scenario expects",
        ]
    );
}

#[test]
fn no_header_that_holds_a_secret_is_logged() {
    let project = Project::new();
    let stub = Running::start(&project, &["--until-stdin-closes", "--log", "log.jsonl"]);
    let secret = ["authorization", "Proxy-Authorization", "x-goog-api-key", "X-Auth-Token", "cookie"]
        .join(": hunter2\r\n");
    let head = format!(
        "GET /v1/models?key=hunter2 HTTP/1.1\r\nx-plain: kept\r\n{secret}: hunter2\r\nconnection: close\r\n\r\n"
    );
    exchange(stub.address, &head);
    let (_, said) = stub.end();
    let log = std::fs::read_to_string(project.path("log.jsonl")).unwrap();
    assert!(log.contains("kept") && log.contains("/v1/models"), "{log}");
    assert!(!log.contains("hunter2") && !said.contains("hunter2"), "{log}\n{said}");
}

/// A scenario comes from anywhere, and what it plays goes to whoever asks.
#[test]
fn a_scenario_plays_files_beside_it_and_no_others() {
    let project = Project::new();
    project.write("secret.sse", "data: {}\n\n");
    project.write("s/a/answer.sse", "data: {}\n\n");
    let outside = project.path("secret.sse").display().to_string();
    let mut cases =
        vec![("a/answer.sse", None), ("./a/answer.sse", None), ("a", Some("it is no regular file"))];
    cases.extend([
        ("../secret.sse", Some("beside the scenario")),
        (outside.as_str(), Some("beside the scenario")),
    ]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, project.path("s/link.sse")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", project.path("s/endless.sse")).unwrap();
        cases.extend([
            ("link.sse", Some("beside the scenario")),
            ("endless.sse", Some("beside the scenario")),
        ]);
    }
    for (file, wrong) in cases {
        project.write("s/s.eld", format!("(defscenario :name \"a\" (play \"{file}\"))"));
        let ended = project.run(&["stub", "s/s.eld", "--quiet", "--", "true"]);
        // A scenario that nobody plays is no test that passed.
        assert_eq!(ended.code, Some(if wrong.is_some() { 2 } else { 1 }), "{file}: {ended:?}");
        assert!(ended.stderr.contains(wrong.unwrap_or("no request came")), "{file}: {ended:?}");
    }
}

#[test]
fn a_file_that_is_no_log_is_kept() {
    let project = Project::new();
    project.write("mine.txt", "precious");
    let ended = project.run(&["stub", "--log", "mine.txt", "--", "true"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no log of the stub, and is kept"), "{ended:?}");
    assert_eq!(std::fs::read_to_string(project.path("mine.txt")).unwrap(), "precious");
}

/// A log holds conversations.
#[cfg(unix)]
#[test]
fn a_log_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.write("old.jsonl", "{\"at_ms\":5,\"older\":true}\n");
    let mode = |name: &str| std::fs::metadata(project.path(name)).unwrap().permissions().mode() & 0o777;
    assert_ne!(mode("old.jsonl"), 0o600);
    for name in ["new.jsonl", "old.jsonl"] {
        let ended = project.run(&["stub", "--log", name, "--", "true"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(
            (mode(name), std::fs::read_to_string(project.path(name)).unwrap().as_str()),
            (0o600, ""),
            "{name}"
        );
    }
    let ended = project.run(&["stub", "--log", "/dev/null", "--", "true"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A signal that reaches the stub alone ends all that it was run for, grandchildren and those that hid in a session.
#[cfg(target_os = "linux")]
#[test]
fn nothing_outlives_a_stub_that_is_told_to_end() {
    let project = Project::new();
    let script =
        "(trap '' TERM INT; sleep 600 & echo $! > one; wait) & setsid sleep 600 & echo $! > two; wait";
    let mut command = project.command(&["stub", "--quiet", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ids = ["one", "two"].map(|name| id_in(&project, name));
    // Who asks twice does not wait for last words.
    for signal in ["-TERM", "-INT"] {
        kill(signal, &child.id().to_string());
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!ids.into_iter().any(is_alive));
}

/// As `server & exec deftool stub -- command` in a script: the stub is the shell, and `server` none of its command's.
#[cfg(target_os = "linux")]
#[test]
fn what_ran_before_a_stub_goes_on_after_it() {
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
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let before = id_in(&project, "before");
    let lives = is_alive(before);
    kill("-KILL", &before.to_string());
    assert!(lives && !is_alive(own));
}

/// The command ends at once, as npm does, and what it started has its last words nevertheless.
#[cfg(target_os = "linux")]
#[test]
fn what_a_command_started_has_last_words_too() {
    use std::os::unix::process::CommandExt;
    let script =
        "(trap 'sleep 0.3; echo bye > words; exit' TERM; echo $$ > ready; while :; do sleep 1; done) & wait";
    // Two seconds are little on a machine that is busy.
    let has_them = (0..5).any(|_| {
        let project = Project::new();
        let mut command = project.command(&["stub", "--quiet", "--", "sh", "-c", script]);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        id_in(&project, "ready");
        kill("-TERM", &format!("-{}", child.id()));
        assert_eq!(child.wait().unwrap().code(), Some(130));
        project.path("words").exists()
    });
    assert!(has_them);
}

/// The number of a process that a script writes into a file.
#[cfg(target_os = "linux")]
fn id_in(project: &Project, name: &str) -> u32 {
    let started = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(project.path(name)).unwrap_or_default();
        if let Some(id) = text.strip_suffix('\n') {
            return id.parse().unwrap();
        }
        assert!(started.elapsed().as_secs() < 60, "it does not start");
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
fn a_signal_ends_it_well() {
    let project = Project::new();
    for signal in ["-INT", "-TERM"] {
        let stub = Running::start(&project, &[]);
        kill(signal, &stub.child.id().to_string());
        assert_eq!(stub.end().0, Some(0), "{signal}");
    }
}

#[test]
fn a_command_runs_with_the_stub_and_ends_it() {
    let project = Project::new();
    project.write("s.eld", WEATHER);
    let binary = env!("CARGO_BIN_EXE_deftool");
    let ended = project.run(&["stub", "s.eld", "--quiet", "--", binary, "run", "how long is abc?"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Let me count. Three.\n"), "{ended:?}");
    assert!(!ended.stderr.contains("POST"), "{ended:?}");
    // What the agent did not do as expected fails the stub, though the agent itself is content.
    project.write("t.eld", "(defscenario :name \"a\" (reply \"x\") (reply (expect :turn 9) \"y\"))");
    let twice = format!("{binary} run one && {binary} run two; true");
    let ended = project.run(&["stub", "t.eld", "--quiet", "--", "sh", "-c", &twice]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("expected turn `9`, found `1`"), "{ended:?}");
    let ended = project.run(&["stub", "--quiet", "--", "sh", "-c", "exit 3"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("`sh` ended with exit status: 3"), "{ended:?}");
}

/// Ctrl-C on a terminal is for both of them: the command says its last words, and neither is left.
#[test]
fn an_interrupted_command_ends_by_itself_and_the_stub_with_it() {
    let project = Project::new();
    let binary = env!("CARGO_BIN_EXE_deftool");
    let arguments = ["stub", "s.eld", "--quiet", "--", binary, "run", "tell me a story"];
    let mut told = Vec::new();
    // A busy machine may have the text before it has drawn anything, and say its last words too late.
    let is_told = ["1s", "3s", "9s"].into_iter().any(|every| {
        let reply =
            format!("(reply :text \"Once upon a time there was a stub.\" :chunk 4 :every \"{every}\")");
        project.write("s.eld", format!("(defscenario :name \"a\" {reply})"));
        let mut terminal = Terminal::start(&project, &arguments, Piped::Nothing);
        terminal.wait_for("Once");
        terminal.type_text("\u{3}");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let (before, after) = ended.stderr.split_once("Once").unwrap();
        // Whoever waits says for what, from the first moment on.
        assert!(!before.contains("  0s"), "{ended:?}");
        let is_well =
            before.contains("waiting for the model") && after.contains("canceled; the text so far is kept");
        told.push(ended.stderr);
        is_well
    });
    assert!(is_told, "{told:?}");
}

/// A handful through the whole of it: exit codes and what people read.
#[test]
fn run_says_what_a_misbehaving_server_did() {
    let project = Project::new();
    let cases: &[(&str, i32, &str, &str)] = &[
        ("index-always-zero", 0, "", ""),
        ("retry-after-ms", 0, "This is what the stub says", ""),
        (
            "rst-mid-stream",
            1,
            "This is what the stub says, word for word, ",
            "error[stream_incomplete]: the reply was cut off",
        ),
        ("http-502-html", 1, "", "HTTP 502: 502 Bad Gateway; the server's log may say more"),
        ("http-401", 1, "", "HTTP 401: invalid key; set the right key in OPENAI_API_KEY"),
        ("html-200", 1, "", "something that is no reply: Sign in; is the endpoint right?"),
        ("gzip", 0, "This is what the stub says, word for word, so that", ""),
        ("retry-after-absurd", 1, "", "HTTP 429: slow down; the server asks to wait 86400 s"),
        ("context-overflow", 1, "", "error[context_overflow]"),
        ("line-repeated", 1, "This is what", "times in a row"),
        ("arguments-not-json", 1, "", "error[invalid_arguments]"),
        ("error-in-stream", 1, "This is what", "error[server_error]: 500: out of memory"),
        ("http-204", 1, "", "answered 204 without a body"),
        ("prompt-cut-unsaid", 0, "This is what", "the prompt does not fit the context of 4096 tokens"),
    ];
    let binary = env!("CARGO_BIN_EXE_deftool");
    std::thread::scope(|scope| {
        for (name, code, text, says) in cases {
            let project = &project;
            scope.spawn(move || {
                let arguments = ["stub", "--quiet", "--misbehave", name, "--every", "5ms", "--"];
                let ended: Ended = project.run(&[&arguments[..], &[binary, "run", "hello"]].concat());
                assert_eq!(ended.code, Some(*code), "{name}: {ended:?}");
                assert!(ended.stdout.starts_with(text) && ended.stderr.contains(says), "{name}: {ended:?}");
            });
        }
    });
}

#[test]
fn wrong_usage_is_told_and_nothing_is_served() {
    let project = Project::new();
    project.write(
        "two.eld",
        "(defscenario :name \"a\" (reply \"x\"))\n(defscenario :name \"b\" (reply \"y\"))\n",
    );
    project.write("wrong.eld", "(defscenario :name \"a\"\n (reply :txt \"x\"))\n");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["two.eld"], "two.eld has several scenarios: a, b; choose one with --scenario"),
        (&["two.eld", "--scenario", "c"], "two.eld has no scenario `c`; there are a, b"),
        (&["wrong.eld"], "wrong.eld:2:9: error: unknown key of a reply `:txt`; did you mean `:text`?"),
        (&["specs/tools.eld"], "is a spec, which `deftool check` reads and the agent is given"),
        (&["gone.eld"], "gone.eld: error: cannot be read: No such file"),
        (&["--misbehave", "gzipp"], "no misbehaviour is called `gzipp`; did you mean `gzip`?"),
        (&["--address", "192.0.2.1"], "; take an --address of this machine, or none"),
        (&["--port", &taken], "; take another --port, or none for a free one"),
        (&["specs"], "specs: error: is a folder; name the file of scenarios that lies in it"),
        (&["--log", "no/such/folder.jsonl"], "cannot write no/such/folder.jsonl: "),
        (&["--", "no-such-program-at-all"], "cannot run `no-such-program-at-all`: "),
    ];
    for (arguments, message) in cases {
        let ended = project.run(&[&["stub"], *arguments].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(
            ended.stderr.contains(message) && !ended.stdout.contains("READY"),
            "{arguments:?}: {ended:?}"
        );
    }
}

#[test]
fn every_misbehaviour_is_listed() {
    let project = Project::empty();
    let listed = project.run(&["stub", "--list"]);
    let json: Value = serde_json::from_str(&project.run(&["stub", "--list", "--json"]).stdout).unwrap();
    let mut count = 0;
    for misbehaviour in json.as_array().unwrap().iter().flat_map(|group| group["members"].as_array().unwrap())
    {
        let name = misbehaviour["name"].as_str().unwrap();
        assert!(listed.stdout.contains(&format!("\n  {name} ")), "{name}");
        count += 1;
    }
    assert!(count >= 40, "{count}");
    let of_chat = |name: &str| {
        let line = listed.stdout.lines().find(|line| line.contains(&format!("  {name} "))).unwrap();
        line.ends_with("[chat completions only]")
    };
    assert!(of_chat("role-missing") && !of_chat("index-missing"), "{}", listed.stdout);
}
