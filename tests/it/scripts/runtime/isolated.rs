//! Calls in child processes: the answers are the same as on threads, and a failure of a child affects only its own
//! call.

use deftool_lang::tool::Meter;
use deftool_process::HelperProgram;
use deftool_script::Isolation;

use super::*;

use std::process::Command;

/// Returns the isolation in child processes that run the real binary.
pub(super) fn processes() -> Isolation {
    Isolation::Processes(HelperProgram {
        program: PathBuf::from(env!("CARGO_BIN_EXE_deftool")),
        arguments: vec!["script-host".into()],
    })
}

/// Returns the isolation in child processes that run `text` in `/bin/sh`. `$0` is the binary and `$1` is `argument`.
fn shell(text: &str, argument: &Path) -> Isolation {
    Isolation::Processes(HelperProgram {
        program: PathBuf::from("/bin/sh"),
        arguments: ["-c".into(), text.into(), env!("CARGO_BIN_EXE_deftool").into(), argument.into()].into(),
    })
}

fn isolated(isolation: Isolation, max_threads: usize) -> (ScriptRunner, Events) {
    let events = Events::default();
    let shared = Arc::clone(&events);
    let sink = ScriptSink::new(move |event| shared.lock().unwrap().push(event));
    let options = RunnerOptions { threads: 1, max_threads, sink, isolation, ..RunnerOptions::default() };
    (ScriptRunner::new(options), events)
}

fn answer(runner: &ScriptRunner, script: &Arc<Script>) -> Result<Value, ToolError> {
    block_on(runner.value_of(Arc::clone(script), call(json!({})), CallContext::default()))
}

/// A runner whose children are listed in a file, by process ID.
struct Watched {
    runner: ScriptRunner,
    folder: tempfile::TempDir,
    events: Events,
}

impl Watched {
    /// Creates a runner with one child at a time.
    fn new() -> Self {
        Self::with_children(1)
    }

    fn with_children(most: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"echo $$ >> "$1"; exec "$0" script-host"#;
        let (runner, events) = isolated(shell(text, &folder.path().join("ids")), most);
        Self { runner, folder, events }
    }

    /// Returns the process IDs of all children so far.
    fn ids(&self) -> Vec<u32> {
        let ids = std::fs::read_to_string(self.folder.path().join("ids")).unwrap_or_default();
        ids.lines().map(|id| id.parse().unwrap()).collect()
    }

    fn signal(&self, signal: &str) {
        let id = self.ids().pop().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Runs a spinning script, and `meanwhile` while it spins, unless the call has ended before.
    fn spin(&self, limit: Duration, meanwhile: impl FnOnce(&Self)) -> Result<Value, ToolError> {
        self.events.lock().unwrap().clear();
        let spinning = Arc::new(script("return function() print('spinning') while true do end end"));
        let context = CallContext { timeout: Some(limit), ..CallContext::default() };
        let mut spinning = Box::pin(self.runner.value_of(spinning, call(json!({})), context));
        block_on(async {
            tokio::select! {
                ended = &mut spinning => return ended,
                () = self.next_event() => {}
            }
            meanwhile(self);
            spinning.await
        })
    }

    /// Waits for an event of a script.
    async fn next_event(&self) {
        while self.events.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns whether a child is reused after `end_call` in at least one of several attempts: a busy machine may
    /// exceed the grace period.
    fn reuses_child(&self, end_call: impl Fn()) -> bool {
        (0..5).any(|_| {
            assert_eq!(answer(&self.runner, &alive()), Ok(json!("alive")));
            let before = self.ids().len();
            end_call();
            assert_eq!(answer(&self.runner, &alive()), Ok(json!("alive")));
            self.ids().len() == before
        })
    }
}

fn alive() -> Arc<Script> {
    Arc::new(script("return function() return 'alive' end"))
}

fn runs(id: u32) -> bool {
    // A dead process may not be reaped yet, and threads may outlive the main thread.
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).map_or(0, Iterator::count);
    let about = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    threads > 1 || !(about.is_empty() || about.contains(") Z "))
}

/// Returns whether `done` becomes true within a minute.
fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < deftool_test_support::HANG_LIMIT {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn answers_errors_and_events_are_the_same_as_on_a_thread() {
    let sources = [
        "return function(word) return { word = word, list = json.array{}, nothing = json.null, third = 1 / 3 } end",
        "return function(word) return { tool.name, tool.request_id, tool.job_name, tool.worker } end",
        "local function fail() error('no ' .. 'luck') end\nreturn function() fail() end",
        "return function() error(tool.failure('not today')) end",
        "return function() return { items = { 1, print } } end",
        r"return function() print('a\27[31mb') log.debug('c') tool.progress(0.5, 'half') tool.progress(nil, 'x') end",
        "return function() return 2^53, 0.1 + 0.2, -0.0 end",
        "return function() return { 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 2^53, -0.0, 4.35, 100.0 } end",
        "return function() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end end",
        "return 5",
        "return function(",
        "return function() task.wait(0.01) return coroutine.wrap(function() task.wait() return 'waited' end)() end",
    ];
    let (isolated_runner, isolated_events) = isolated(processes(), 1);
    let (thread_runner, thread_events) = runner_with_events();
    for source in sources {
        let mut script = with_parameters(source, &["word"]);
        script.memory = Some(MEMORY);
        let script = Arc::new(script);
        for arguments in
            [json!({"word": "ü\u{0}"}), json!({"word": {"a": [0.1, 1e300, 12_345_678_901_234.5, null]}})]
        {
            let meters = [Arc::new(Meter::default()), Arc::default()];
            let context = |meter: &Arc<Meter>| CallContext {
                meter: Some(Arc::clone(meter)),
                call_id: String::from("call"),
                request_id: String::from("r_1"),
                job_name: String::from("job"),
                worker: String::from("worker"),
                idempotency_key: String::from("key"),
                effect: Effect::Keyed,
                trace: None,
                timeout: Some(Duration::from_secs(10)),
            };
            let one = block_on(isolated_runner.value_of(
                Arc::clone(&script),
                call(arguments.clone()),
                context(&meters[0]),
            ));
            let other =
                block_on(thread_runner.value_of(Arc::clone(&script), call(arguments), context(&meters[1])));
            assert_eq!(one, other, "{source}");
            let [isolated_usage, thread_usage] = meters.map(|meter| meter.usage().is_some());
            assert_eq!(isolated_usage, thread_usage, "{source}");
        }
    }
    assert_eq!(*isolated_events.lock().unwrap(), *thread_events.lock().unwrap());
    assert!(thread_events.lock().unwrap().len() >= 8);
}

#[test]
fn a_killed_child_fails_only_its_own_call() {
    for (signal, number) in [("-KILL", 9), ("-SEGV", 11), ("-ABRT", 6)] {
        let watched = Watched::new();
        let kill = |watched: &Watched| {
            watched.signal(signal);
            let id = watched.ids()[0];
            // Rust's stack overflow handler restores the default action, so a second signal kills the process.
            let is_gone = || {
                let _ = Command::new("kill").args([signal, &id.to_string()]).output();
                !runs(id)
            };
            assert!(signal != "-SEGV" || eventually(is_gone), "the child is still running");
        };
        let error = watched.spin(Duration::from_secs(30), kill).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Internal);
        assert_eq!(
            error.message,
            format!(
                "the process that ran the script died (signal {number}); the engine and other calls are not affected"
            )
        );
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        assert_eq!(watched.ids().len(), 2);
        // A child that dies while idle has no effect.
        watched.signal("-KILL");
        let id = watched.ids()[1];
        assert!(eventually(|| !runs(id)));
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    }
}

#[test]
fn a_child_that_does_not_stop_is_killed_at_the_deadline() {
    // On a busy machine the deadline may pass before the signal is sent. Then the child stops normally.
    let is_tested = [(300, "300 ms"), (3_000, "3 s"), (12_000, "12 s")].into_iter().any(|(limit, shown)| {
        let (watched, limit) = (Watched::new(), Duration::from_millis(limit));
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        let (started, mut stopped_after) = (Instant::now(), None);
        let suspend = |watched: &Watched| {
            watched.signal("-STOP");
            stopped_after = Some(started.elapsed());
        };
        let error = watched.spin(limit, suspend).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout, "{error}");
        assert!(error.message.contains(&format!("time limit of {shown}")), "{error}");
        if stopped_after.is_none_or(|stopped_after| stopped_after > limit / 2) {
            return false;
        }
        let id = watched.ids()[0];
        assert!(eventually(|| !runs(id)), "the child is still running");
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        true
    });
    assert!(is_tested);
}

#[test]
fn a_child_is_reused_after_a_timeout_or_cancellation() {
    let watched = Watched::new();
    assert!(watched.reuses_child(|| {
        let error = watched.spin(Duration::from_millis(200), |_| {}).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout);
    }));
    for body in [
        "while true do end",
        "while true do pcall(task.wait, 10) end",
        "pcall(function() while true do string.rep('x', 100000):find('.-.-.-y') end end)",
    ] {
        let script = Arc::new(script(&format!("return function() print('here') {body} end")));
        let dropped = || {
            watched.events.lock().unwrap().clear();
            block_on(async {
                tokio::select! {
                    ended = watched.runner.value_of(Arc::clone(&script), call(json!({})), CallContext::default()) => {
                        panic!("{body}: {ended:?}")
                    }
                    // Long enough for the script to spin.
                    () = async { watched.next_event().await; tokio::time::sleep(Duration::from_millis(20)).await } => {}
                }
            });
        };
        assert!(watched.reuses_child(dropped), "{body}");
    }
}

/// A new child costs as much as a hundred calls.
#[test]
fn the_children_of_simultaneous_calls_are_reused() {
    const MOST: usize = 4;
    let watched = Watched::with_children(MOST);
    // Longer than calls wait before further children are started.
    let waiting = Arc::new(script("return function() task.wait(0.3) end"));
    let wait = |_| watched.runner.value_of(Arc::clone(&waiting), call(json!({})), CallContext::default());
    for _ in 0..5 {
        let all = futures_util::future::join_all((0..MOST).map(wait));
        assert!(block_on(all).iter().all(Result::is_ok));
    }
    assert!((2..=MOST).contains(&watched.ids().len()), "{:?}", watched.ids());
}

#[test]
fn children_end_with_their_runner() {
    let watched = Watched::new();
    assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    let id = watched.ids()[0];
    assert!(runs(id));
    drop(watched.runner);
    assert!(eventually(|| !runs(id)));

    let watched = Watched::new();
    assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    let Watched { runner, folder, .. } = watched;
    let spinning = Arc::new(script("return function() while true do end end"));
    let spinning = runner.value_of(spinning, call(json!({})), CallContext::default());
    let ended = block_on(async {
        let (ended, ()) = tokio::join!(spinning, async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(runner);
        });
        ended
    });
    assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Canceled);
    let ids = std::fs::read_to_string(folder.path().join("ids")).unwrap();
    // A busy machine may start another child.
    assert!(ids.lines().all(|id| eventually(|| !runs(id.parse().unwrap()))));
}

/// Returns a shell command that prints a frame.
fn frame(body: &str) -> String {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    let [a, b, c, d] = length;
    format!("printf '\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}{}'", body.replace('\\', r"\\"))
}

#[test]
fn a_child_that_violates_the_protocol_is_killed() {
    let greeting = frame(&format!("{{\"Ready\":\"deftool script host {}\"}}", env!("CARGO_PKG_VERSION")));
    let after = |commands: &str| format!("{greeting}; {commands}; read x");
    let loaded = frame("{\"Loaded\":1}");
    let cases = [
        (String::from("exit 3"), "exited immediately (exit code 3)"),
        (String::from("kill -9 $$"), "exited immediately (signal 9)"),
        (String::from("exec cat /dev/zero"), "is not a script host"),
        (String::from("echo Hello, world; read x"), "is not a script host"),
        (frame("{\"Ready\":\"deftool script host 0.0\"}"), "has a different version"),
        (frame("{\"Loaded\":1}"), "is not a script host"),
        (greeting.clone(), "died (exit code 0)"),
        (after("exec 1>&-"), "closed its output"),
        (after("printf '\\377\\377\\377\\377'"), "exceeds the limit of 67108864 bytes"),
        (after("printf '\\004\\000\\000\\000null'"), "sent an invalid message"),
        (after(&frame("{\"Returned\":[1,[]]}5")), "unexpected message"),
        (after(&frame("{\"Loaded\":2}")), "unexpected message"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":[2,[]]}5"))), "unexpected message"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":[1,[]]}"))), "sent an invalid message"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":[1,[]]}[5"))), "sent an invalid message"),
        (
            after(&format!("{loaded}; {}", frame(&format!("{{\"Returned\":[1,[]]}}{}", "[".repeat(5000))))),
            "sent an invalid message",
        ),
        (
            after(&format!("{loaded}; while {}; do :; done", frame("{\"Logged\":[\"Info\",\"storm\"]}"))),
            "unexpected message",
        ),
        (
            after(&format!(
                "{loaded}; {}",
                frame(r#"{"Failed":[1,{"kind":"script","message":"red \u001b[31m \u202e"}]}"#)
            )),
            "red \u{FFFD}[31m \u{FFFD}",
        ),
    ];
    for (text, fragment) in cases {
        let (runner, events) = isolated(shell(&text, Path::new("")), 1);
        let error = answer(&runner, &alive()).unwrap_err();
        assert!(error.message.contains(fragment), "{text}: {error}");
        assert!(events.lock().unwrap().len() <= 1010);
    }
    let missing = HelperProgram { program: PathBuf::from("/nowhere/deftool"), arguments: Vec::new() };
    let (runner, _) = isolated(Isolation::Processes(missing), 1);
    let error = answer(&runner, &alive()).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Internal);
    assert!(error.message.contains("`/nowhere/deftool` cannot be started: No such file"), "{error}");
}

#[test]
fn a_silent_child_is_killed_at_the_deadline() {
    let greeting = frame(&format!("{{\"Ready\":\"deftool script host {}\"}}", env!("CARGO_PKG_VERSION")));
    let loaded = frame("{\"Loaded\":1}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let (runner, _) =
        isolated(shell(&format!("echo $$ > $1; {greeting}; {loaded}; read x; read y; read z"), &file), 1);
    let context = CallContext { timeout: Some(Duration::from_millis(100)), ..CallContext::default() };
    let error = block_on(runner.value_of(alive(), call(json!({})), context)).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout, "{error}");
    let id = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    assert!(eventually(|| !runs(id)));
}

#[test]
fn waiting_calls_get_additional_children() {
    let options =
        RunnerOptions { threads: 2, max_threads: 4, isolation: processes(), ..RunnerOptions::default() };
    let runner = ScriptRunner::new(options);
    let waiter = Arc::new(script("return function() task.wait(0.2) return 1 end"));
    let ended = block_on(futures_util::future::join_all(
        (0..8).map(|_| runner.value_of(Arc::clone(&waiter), call(json!({})), CallContext::default())),
    ));
    assert!(ended.iter().all(|ended| *ended == Ok(json!(1))), "{ended:?}");
}

/// Returns the process that was started with these arguments.
#[cfg(target_os = "linux")]
fn started_with(arguments: &[&str]) -> Option<u32> {
    let command_line: String = arguments.iter().flat_map(|argument| [*argument, "\0"]).collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line == command_line.as_bytes())
    })
}

#[cfg(target_os = "linux")]
#[test]
fn programs_end_with_their_call() {
    for (how, seconds) in
        [("dropped", "3031.5"), ("killed", "3032.5"), ("late", "3033.5"), ("closed", "3034.5")]
    {
        let watched = Watched::new();
        let mut script = script(&format!("return function() process.run({{ 'sleep', '{seconds}' }}) end"));
        script.permissions.run = vec![String::from("sleep")];
        let started = || started_with(&["sleep", seconds]);
        let limit = Duration::from_secs(if how == "late" { 3 } else { 60 });
        let context = CallContext { timeout: Some(limit), ..CallContext::default() };
        let calling = watched.runner.value_of(Arc::new(script), call(json!({})), context);
        let mut folder = Some(watched);
        block_on(async {
            let meanwhile = async {
                while started().is_none() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                match how {
                    "killed" => folder.as_ref().unwrap().signal("-KILL"),
                    "late" => folder.as_ref().unwrap().signal("-STOP"),
                    "closed" => drop(folder.take()),
                    _ => return,
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = calling => assert!(ended.is_err() && how != "dropped", "{how}: {ended:?}"),
                () = meanwhile => {}
            }
        });
        assert!(eventually(|| started().is_none()), "{how}: the program is still running");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_has_only_the_resources_that_it_needs() {
    let watched = Watched::new();
    let mut script = script("return function() return 1 end");
    script.permissions.env =
        vec![String::from("CARGO_PKG_NAME"), String::from("NOT_SET"), String::from("A=B")];
    let script = Arc::new(script);
    assert_eq!(answer(&watched.runner, &script), Ok(json!(1)));
    let about = |name: &str| PathBuf::from(format!("/proc/{}/{name}", watched.ids()[0]));
    let environment = std::fs::read(about("environ")).unwrap();
    let names: Vec<String> = String::from_utf8(environment)
        .unwrap()
        .split('\0')
        .filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()))
        // The variables that every child has, and those that the shell adds.
        .filter(|name| !["TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HOME"].contains(&name.as_str()))
        .filter(|name| !name.starts_with("XDG_"))
        .filter(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(&name.as_str()))
        .collect();
    assert_eq!(names, ["CARGO_PKG_NAME"]);
    let limits = std::fs::read_to_string(about("limits")).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max core file size"), "0");
    assert_eq!(limit("Max data size"), (4 * (64 << 20) + (512_u64 << 20)).to_string());
    for number in ["0", "1", "2"] {
        let open = std::fs::read_link(about("fd").join(number)).unwrap();
        assert_eq!(open, Path::new("/dev/null"), "{number}");
    }
    // Ignores descriptors that this process inherited from its own parent.
    let inherited = |number: &Path, target: &Path| {
        std::fs::read_link(Path::new("/proc/self/fd").join(number)).is_ok_and(|own| own == target)
    };
    let open = std::fs::read_dir(about("fd")).unwrap().flatten();
    let open = open.filter_map(|entry| Some((entry.file_name(), std::fs::read_link(entry.path()).ok()?)));
    let open: Vec<_> = open.filter(|(number, target)| !inherited(Path::new(number), target)).collect();
    let nothing = |target: &Path| target == Path::new("/dev/null");
    let pipes = open.iter().filter(|(_, target)| !nothing(target)).count();
    assert_eq!(pipes, 2, "expected only the two pipes to the parent, found {open:?}");
    // A different environment requires a different child. Scripts without variables share a child.
    for source in ["return function() return 2 end", "return function() return 3 end"] {
        answer(&watched.runner, &Arc::new(self::script(source))).unwrap();
    }
    assert_eq!(watched.ids().len(), 2);
}
