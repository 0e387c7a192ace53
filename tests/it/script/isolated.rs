//! Calls in child processes: the same answers, and whatever becomes of a child, its own call alone feels it.

use super::*;

use std::process::Command;

use deftool::script::{Isolation, ProcessOptions};
use deftool::tool::Meter;

/// Children that are the real binary.
pub(super) fn processes() -> Isolation {
    Isolation::Processes(ProcessOptions {
        program: PathBuf::from(env!("CARGO_BIN_EXE_deftool")),
        arguments: vec!["script-host".into()],
    })
}

/// Has the programs that scripts run on threads of this process guarded by the real binary.
pub(super) fn guard_programs() {
    let Isolation::Processes(program) = processes() else { unreachable!() };
    deftool::script::guard_programs(program);
}

/// Children that are what `/bin/sh` makes of `text`, `$0` being the binary and `$1` an `argument`.
fn shell(text: &str, argument: &Path) -> Isolation {
    Isolation::Processes(ProcessOptions {
        program: PathBuf::from("/bin/sh"),
        arguments: ["-c".into(), text.into(), env!("CARGO_BIN_EXE_deftool").into(), argument.into()].into(),
    })
}

fn isolated(isolation: Isolation) -> (ScriptRunner, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let sink = ScriptSink::new(move |event| heard.lock().unwrap().push(event));
    let options = RunnerOptions { threads: 1, max_threads: 1, sink, isolation, ..RunnerOptions::default() };
    (ScriptRunner::new(options), events)
}

fn answer(runner: &ScriptRunner, script: &Arc<Script>) -> Result<Value, ToolError> {
    block_on(runner.call(Arc::clone(script), call(json!({})), CallContext::default()))
}

/// A runner of one child at a time, whose ids the file lists.
struct Watched {
    runner: ScriptRunner,
    folder: tempfile::TempDir,
    events: Events,
}

impl Watched {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"echo $$ >> "$1"; exec "$0" script-host"#;
        let (runner, events) = isolated(shell(text, &folder.path().join("ids")));
        Self { runner, folder, events }
    }

    /// The ids of the children so far.
    fn ids(&self) -> Vec<u32> {
        let ids = std::fs::read_to_string(self.folder.path().join("ids")).unwrap_or_default();
        ids.lines().map(|id| id.parse().unwrap()).collect()
    }

    fn signal(&self, signal: &str) {
        let id = self.ids().pop().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Runs a script that spins, and `meanwhile` once it does, if it comes to that.
    fn spin(&self, limit: Duration, meanwhile: impl FnOnce(&Self)) -> Result<Value, ToolError> {
        self.events.lock().unwrap().clear();
        let spinning = Arc::new(script("return function() print('spinning') while true do end end"));
        let context = CallContext { timeout: Some(limit), ..CallContext::default() };
        let mut spinning = Box::pin(self.runner.call(spinning, call(json!({})), context));
        block_on(async {
            tokio::select! {
                ended = &mut spinning => return ended,
                () = self.hears() => {}
            }
            meanwhile(self);
            spinning.await
        })
    }

    /// Until a script has said something.
    async fn hears(&self) {
        while self.events.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether a child that runs calls still does after `ends`, at least once: a busy machine may take longer than the
    /// grace now and then.
    fn stays_warm(&self, ends: impl Fn()) -> bool {
        (0..5).any(|_| {
            assert_eq!(answer(&self.runner, &alive()), Ok(json!("alive")));
            let before = self.ids().len();
            ends();
            assert_eq!(answer(&self.runner, &alive()), Ok(json!("alive")));
            self.ids().len() == before
        })
    }
}

fn alive() -> Arc<Script> {
    Arc::new(script("return function() return 'alive' end"))
}

fn runs(id: u32) -> bool {
    // One that is dead may not be buried yet, and one whose first thread is dead not dead yet.
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).map_or(0, Iterator::count);
    let about = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    threads > 1 || !(about.is_empty() || about.contains(") Z "))
}

/// Whether `done` within a minute.
fn soon(mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn answers_errors_and_events_are_those_of_a_thread() {
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
    let (apart, heard_apart) = isolated(processes());
    let (here, heard_here) = listening();
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
                request_id: String::from("r_1"),
                job_name: String::from("job"),
                worker: String::from("worker"),
                timeout: Some(Duration::from_secs(10)),
            };
            let one = block_on(apart.call(Arc::clone(&script), call(arguments.clone()), context(&meters[0])));
            let other = block_on(here.call(Arc::clone(&script), call(arguments), context(&meters[1])));
            assert_eq!(one, other, "{source}");
            let [apart, here] = meters.map(|meter| meter.usage().is_some());
            assert_eq!(apart, here, "{source}");
        }
    }
    assert_eq!(*heard_apart.lock().unwrap(), *heard_here.lock().unwrap());
    assert!(heard_here.lock().unwrap().len() >= 8);
}

#[test]
fn a_child_that_is_killed_fails_its_call_alone() {
    for (signal, number) in [("-KILL", 9), ("-SEGV", 11), ("-ABRT", 6)] {
        let watched = Watched::new();
        let strike = |watched: &Watched| {
            watched.signal(signal);
            let id = watched.ids()[0];
            // The handler that looks for overflown stacks lets the next one through.
            let is_gone = || {
                let _ = Command::new("kill").args([signal, &id.to_string()]).output();
                !runs(id)
            };
            assert!(signal != "-SEGV" || soon(is_gone), "the child lives");
        };
        let error = watched.spin(Duration::from_secs(30), strike).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Internal);
        assert_eq!(
            error.message,
            format!(
                "the process that ran the script died (signal {number}); the engine and other calls are not affected"
            )
        );
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        assert_eq!(watched.ids().len(), 2);
        // And one that dies while it has nothing to do is not noticed.
        watched.signal("-KILL");
        let id = watched.ids()[1];
        assert!(soon(|| !runs(id)));
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    }
}

#[test]
fn a_child_that_does_not_stop_is_killed_at_the_deadline() {
    // On a busy machine the deadline may come before the signal, and then the child has stopped by itself.
    let is_tried = [(300, "300 ms"), (3_000, "3 s"), (12_000, "12 s")].into_iter().any(|(limit, shown)| {
        let (watched, limit) = (Watched::new(), Duration::from_millis(limit));
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        let (started, mut struck) = (Instant::now(), None);
        let strike = |watched: &Watched| {
            watched.signal("-STOP");
            struck = Some(started.elapsed());
        };
        let error = watched.spin(limit, strike).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout, "{error}");
        assert!(error.message.contains(&format!("time limit of {shown}")), "{error}");
        assert!(started.elapsed() < limit + Duration::from_secs(10), "{:?}", started.elapsed());
        if struck.is_none_or(|struck| struck > limit / 2) {
            return false;
        }
        let id = watched.ids()[0];
        assert!(soon(|| !runs(id)), "the child lives");
        assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
        true
    });
    assert!(is_tried);
}

#[test]
fn a_call_that_ends_at_its_deadline_or_is_dropped_leaves_its_child_warm() {
    let watched = Watched::new();
    assert!(watched.stays_warm(|| {
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
                    ended = watched.runner.call(Arc::clone(&script), call(json!({})), CallContext::default()) => {
                        panic!("{body}: {ended:?}")
                    }
                    // Long enough to be in the midst of it.
                    () = async { watched.hears().await; tokio::time::sleep(Duration::from_millis(20)).await } => {}
                }
            });
        };
        assert!(watched.stays_warm(dropped), "{body}");
    }
}

#[test]
fn children_end_with_their_runner() {
    let watched = Watched::new();
    assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    let id = watched.ids()[0];
    assert!(runs(id));
    drop(watched.runner);
    assert!(soon(|| !runs(id)));

    let watched = Watched::new();
    assert_eq!(answer(&watched.runner, &alive()), Ok(json!("alive")));
    let Watched { runner, folder, .. } = watched;
    let spinning = Arc::new(script("return function() while true do end end"));
    let spinning = runner.call(spinning, call(json!({})), CallContext::default());
    let ended = block_on(async {
        let (ended, ()) = tokio::join!(spinning, async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(runner);
        });
        ended
    });
    assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Canceled);
    let ids = std::fs::read_to_string(folder.path().join("ids")).unwrap();
    let id = ids.trim().parse().unwrap();
    assert!(soon(|| !runs(id)));
}

/// A frame as a child would write it, for `printf`.
fn frame(body: &str) -> String {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    let [a, b, c, d] = length;
    format!("printf '\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}{}'", body.replace('\\', r"\\"))
}

#[test]
fn a_child_that_lies_is_told_and_ended() {
    let greeting = frame(&format!("{{\"Ready\":\"deftool script host {}\"}}", env!("CARGO_PKG_VERSION")));
    let after = |words: &str| format!("{greeting}; {words}; read x");
    let loaded = frame("{\"Loaded\":1}");
    let cases = [
        (String::from("exit 3"), "ended at once (exit code 3)"),
        (String::from("kill -9 $$"), "ended at once (signal 9)"),
        (String::from("exec cat /dev/zero"), "is no script host"),
        (String::from("echo Hello, world; read x"), "is no script host"),
        (frame("{\"Ready\":\"deftool script host 0.0\"}"), "is of another version"),
        (frame("{\"Loaded\":1}"), "is no script host"),
        (greeting.clone(), "died (exit code 0)"),
        (after("exec 1>&-"), "closed its output"),
        (after("printf '\\377\\377\\377\\377'"), "more than 67108864"),
        (after("printf '\\004\\000\\000\\000null'"), "makes no sense"),
        (after(&frame("{\"Returned\":1}5")), "out of turn"),
        (after(&frame("{\"Loaded\":2}")), "out of turn"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":2}5"))), "out of turn"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":1}"))), "makes no sense"),
        (after(&format!("{loaded}; {}", frame("{\"Returned\":1}[5"))), "makes no sense"),
        (
            after(&format!("{loaded}; {}", frame(&format!("{{\"Returned\":1}}{}", "[".repeat(5000))))),
            "makes no sense",
        ),
        (
            after(&format!("{loaded}; while {}; do :; done", frame("{\"Logged\":[\"Info\",\"storm\"]}"))),
            "out of turn",
        ),
        (
            after(&format!(
                "{loaded}; {}",
                frame(r#"{"Failed":[1,{"kind":"script","message":"red \u001b[31m \u202e"}]}"#)
            )),
            "red \u{FFFD}[31m \u{FFFD}",
        ),
    ];
    for (text, says) in cases {
        let (runner, events) = isolated(shell(&text, Path::new("")));
        let error = answer(&runner, &alive()).unwrap_err();
        assert!(error.message.contains(says), "{text}: {error}");
        assert!(events.lock().unwrap().len() <= 1010);
    }
    let missing = ProcessOptions { program: PathBuf::from("/nowhere/deftool"), arguments: Vec::new() };
    let (runner, _) = isolated(Isolation::Processes(missing));
    let error = answer(&runner, &alive()).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Internal);
    assert!(error.message.contains("/nowhere/deftool, cannot be started: No such file"), "{error}");
}

#[test]
fn a_silent_child_is_killed_at_the_deadline() {
    let greeting = frame(&format!("{{\"Ready\":\"deftool script host {}\"}}", env!("CARGO_PKG_VERSION")));
    let loaded = frame("{\"Loaded\":1}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let (runner, _) =
        isolated(shell(&format!("echo $$ > $1; {greeting}; {loaded}; read x; read y; read z"), &file));
    let context = CallContext { timeout: Some(Duration::from_millis(100)), ..CallContext::default() };
    let error = block_on(runner.call(alive(), call(json!({})), context)).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout, "{error}");
    let id = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    assert!(soon(|| !runs(id)));
}

#[test]
fn calls_that_wait_get_children_of_their_own() {
    let options =
        RunnerOptions { threads: 2, max_threads: 4, isolation: processes(), ..RunnerOptions::default() };
    let runner = ScriptRunner::new(options);
    let waiter = Arc::new(script("return function() task.wait(0.2) return 1 end"));
    let ended = block_on(futures_util::future::join_all(
        (0..8).map(|_| runner.call(Arc::clone(&waiter), call(json!({})), CallContext::default())),
    ));
    assert!(ended.iter().all(|ended| *ended == Ok(json!(1))), "{ended:?}");
}

/// The process that was started with these arguments.
#[cfg(target_os = "linux")]
fn started_with(arguments: &[&str]) -> Option<u32> {
    let wanted: String = arguments.iter().flat_map(|argument| [*argument, "\0"]).collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_script_started_ends_with_its_call_however_that_ends() {
    for (how, seconds) in
        [("dropped", "3031.5"), ("killed", "3032.5"), ("late", "3033.5"), ("closed", "3034.5")]
    {
        let watched = Watched::new();
        let mut script = script(&format!("return function() process.run({{ 'sleep', '{seconds}' }}) end"));
        script.permissions.run = vec![String::from("sleep")];
        let started = || started_with(&["sleep", seconds]);
        let limit = Duration::from_secs(if how == "late" { 3 } else { 60 });
        let context = CallContext { timeout: Some(limit), ..CallContext::default() };
        let calling = watched.runner.call(Arc::new(script), call(json!({})), context);
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
        assert!(soon(|| started().is_none()), "{how}: it runs");
    }
}

/// What the kernel says of a child.
#[cfg(target_os = "linux")]
#[test]
fn a_child_has_nothing_it_does_not_need() {
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
        // What every child has, and what the shell adds.
        .filter(|name| !["TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"].contains(&name.as_str()))
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
    // What this process got from its own parent, open for all that it starts, is not the engine's.
    let inherited = |number: &Path, target: &Path| {
        std::fs::read_link(Path::new("/proc/self/fd").join(number)).is_ok_and(|own| own == target)
    };
    let open = std::fs::read_dir(about("fd")).unwrap().flatten();
    let open = open.filter_map(|entry| Some((entry.file_name(), std::fs::read_link(entry.path()).ok()?)));
    let open: Vec<_> = open.filter(|(number, target)| !inherited(Path::new(number), target)).collect();
    let nothing = |target: &Path| target == Path::new("/dev/null");
    let pipes = open.iter().filter(|(_, target)| !nothing(target)).count();
    assert_eq!(pipes, 2, "the two to its parent, in {open:?}");
    // Another environment is another child; without one it is shared.
    for source in ["return function() return 2 end", "return function() return 3 end"] {
        answer(&watched.runner, &Arc::new(self::script(source))).unwrap();
    }
    assert_eq!(watched.ids().len(), 2);
}
