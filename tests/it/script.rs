//! The script runtime: attack scripts from `tests/attacks`, each with its expected end, and ordinary behaviour.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use deftool::script::{
    Parameter, PathGrant, Returned, RunnerOptions, Script, ScriptEvent, ScriptRunner, ScriptSink,
    check_script,
};
use deftool::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_millis(200);
const MEMORY: u64 = 16 << 20;
/// How often a measured time is taken, to be in time once.
const ATTEMPTS: usize = 5;

fn script(source: &str) -> Script {
    Script::new("probe", "scripts/probe.lua", source)
}

fn with_parameters(source: &str, names: &[&str]) -> Script {
    let mut script = script(source);
    script.parameters = names.iter().map(|name| Parameter::new(*name)).collect();
    script
}

fn call(arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments must be an object") };
    ToolCall { id: String::from("call_1"), name: String::from("probe"), arguments }
}

fn runner() -> ScriptRunner {
    ScriptRunner::new(RunnerOptions { threads: 2, ..RunnerOptions::default() })
}

type Events = Arc<Mutex<Vec<ScriptEvent>>>;

fn listening() -> (ScriptRunner, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let sink = ScriptSink::new(move |event| heard.lock().unwrap().push(event));
    (ScriptRunner::new(RunnerOptions { threads: 1, sink, ..RunnerOptions::default() }), events)
}

fn logged(events: &Events) -> Vec<String> {
    events
        .lock()
        .unwrap()
        .iter()
        .map(|event| match event {
            ScriptEvent::Logged { level, text, .. } => format!("{level:?} {text}"),
            ScriptEvent::Progressed { fraction, text, .. } => format!("Progress {fraction:?} {text}"),
        })
        .collect()
}

/// A runner of two threads whose log lines wait, on their scripts' threads, until there are two of them.
fn meeting() -> ScriptRunner {
    let (lines, arrived) = (Mutex::new(0), Condvar::new());
    let sink = ScriptSink::new(move |_| {
        let mut lines = lines.lock().unwrap();
        *lines += 1;
        arrived.notify_all();
        drop(arrived.wait_timeout_while(lines, Duration::from_secs(10), |lines| *lines % 2 == 1).unwrap());
    });
    ScriptRunner::new(RunnerOptions { threads: 2, max_threads: 2, sink, ..RunnerOptions::default() })
}

/// Whether two calls run at once on a [`meeting`] runner: each logs a line and returns how long that took.
async fn two_meet(runner: &ScriptRunner) -> bool {
    let source =
        "return function() local start = time.monotonic() print('here') return time.monotonic() - start end";
    let script = Arc::new(script(source));
    let one = || runner.call(Arc::clone(&script), call(json!({})), CallContext::default());
    let (first, second) = tokio::join!(one(), one());
    [first, second].iter().all(|took| took.as_ref().is_ok_and(|took| took.as_f64().unwrap() < 9.0))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn run(script: Script, arguments: Value) -> Result<Value, ToolError> {
    block_on(runner().call(Arc::new(script), call(arguments), CallContext::default()))
}

fn run_source(source: &str) -> Result<Value, ToolError> {
    run(script(source), json!({}))
}

fn asynchronous(source: &str) -> Script {
    let mut script = script(source);
    script.is_async = true;
    script
}

/// What the leading comments of an attack say.
#[derive(Default)]
struct Expectation {
    ends: Vec<String>,
    says: Vec<String>,
    path: Option<String>,
    is_async: bool,
    twice: bool,
    within: Option<Duration>,
}

fn expectation(source: &str) -> Expectation {
    let mut expected = Expectation::default();
    for line in source.lines() {
        let Some(comment) = line.strip_prefix("-- ") else { break };
        let Some((key, value)) = comment.split_once(": ") else { continue };
        match key {
            "expect" => expected.ends = value.split(" or ").map(str::to_owned).collect(),
            "says" => expected.says.push(value.to_owned()),
            "path" => expected.path = Some(value.to_owned()),
            "async" => expected.is_async = value == "true",
            "twice" => expected.twice = value == "true",
            "within" => expected.within = Some(Duration::from_millis(value.parse().unwrap())),
            _ => {}
        }
    }
    expected
}

/// Adds to `wrong` what is not as `expected` in how an attack `ended`.
fn judge(name: &str, expected: &Expectation, ended: &Result<Value, ToolError>, wrong: &mut Vec<String>) {
    let (end, text) = match ended {
        Ok(value) => (String::from("ok"), value.to_string()),
        Err(error) => (error.kind.to_string(), error.message.clone()),
    };
    if !expected.ends.contains(&end) {
        wrong.push(format!("{name}: expected {:?}, ended with {ended:?}", expected.ends));
    }
    for says in &expected.says {
        if !text.contains(says.as_str()) {
            wrong.push(format!("{name}: {text:?} does not say {says:?}"));
        }
    }
    if let (Some(path), Err(error)) = (&expected.path, ended)
        && error.path.as_ref() != Some(path)
    {
        wrong.push(format!("{name}: path {:?}", error.path));
    }
    if text.chars().any(|character| character.is_control() && character != '\n' && character != '\t') {
        wrong.push(format!("{name}: control characters in {text:?}"));
    }
}

#[test]
fn every_attack_ends_as_expected_and_the_runner_lives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 40, "{} attacks", files.len());
    // One thread: the normal call after an attack shows that the attack has left it.
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let normal = Arc::new(script("return function() return 'alive' end"));
    let mut wrong = Vec::new();
    let mut slowest = Duration::ZERO;
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&file).unwrap();
        let expected = expectation(&String::from_utf8_lossy(&bytes));
        let mut attack = Script::new("attack", format!("attacks/{name}"), &bytes);
        attack.is_async = expected.is_async;
        attack.memory = Some(MEMORY);
        attack.parameters = vec![Parameter::new("word")];
        let attack = Arc::new(attack);
        let limit = expected.within.unwrap_or(DEADLINE * 2 + Duration::from_millis(150));
        // A loaded machine may be slow once: the best time of a few counts.
        let mut late = Vec::new();
        for _ in 0..ATTEMPTS {
            late.clear();
            for _ in 0..if expected.twice { 2 } else { 1 } {
                let context = CallContext { timeout: Some(DEADLINE), ..CallContext::default() };
                let arguments = call(json!({"word": "hello"}));
                let started = Instant::now();
                let ended = block_on(runner.call(Arc::clone(&attack), arguments, context));
                let took = started.elapsed();
                if !matches!(&ended, Err(error) if error.kind == ToolErrorKind::Load) {
                    slowest = slowest.max(took);
                }
                if took > limit {
                    late.push(format!("{name}: took {took:?}: {ended:?}"));
                }
                let timed_out = matches!(&ended, Err(error) if error.kind == ToolErrorKind::Timeout);
                let slow = timed_out && !expected.ends.iter().any(|end| end == "timeout");
                judge(&name, &expected, &ended, if slow { &mut late } else { &mut wrong });
            }
            let started = Instant::now();
            let alive = block_on(runner.call(Arc::clone(&normal), call(json!({})), CallContext::default()));
            if alive != Ok(json!("alive")) {
                wrong.push(format!("{name}: afterwards {alive:?}"));
            }
            if started.elapsed() > Duration::from_millis(250) {
                late.push(format!("{name}: afterwards in {:?}", started.elapsed()));
            }
            if late.is_empty() {
                break;
            }
        }
        wrong.append(&mut late);
    }
    println!("slowest attack: {slowest:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arguments_come_in_order_and_a_missing_one_is_nil() {
    let source = "return function(a, b, c) return { a = a, b = b == nil, c = c } end";
    let ended =
        run(with_parameters(source, &["a", "b", "c"]), json!({"c": [1, 2.5, {"x": null}], "a": "first"}));
    assert_eq!(ended.unwrap(), json!({"a": "first", "b": true, "c": [1, 2.5, {"x": null}]}));
}

#[test]
fn json_survives_the_way_through_lua() {
    let value = json!({
        "array": [], "object": {}, "null": null, "nested": [[[]], {"k": [true, false]}],
        "big": 9_007_199_254_740_992_i64, "negative": -9_007_199_254_740_992_i64, "float": 1.5e300, "text": "é日\u{0}x"
    });
    let ended = run(with_parameters("return function(v) return v end", &["v"]), json!({"v": value}));
    let ended = ended.unwrap();
    assert_eq!(ended, value);
    let keys: Vec<&String> = ended.as_object().unwrap().keys().collect();
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn an_integer_beyond_exactness_is_refused_by_name() {
    let source = "return function(v) return v end";
    for (value, path) in [
        (json!(9_007_199_254_740_993_i64), ".v"),
        (json!(u64::MAX), ".v"),
        (json!({"items": [1, -9_007_199_254_740_993_i64]}), ".v.items[1]"),
    ] {
        let error = run(with_parameters(source, &["v"]), json!({"v": value})).unwrap_err();
        assert_eq!((error.kind, error.path.as_deref()), (ToolErrorKind::InvalidArguments, Some(path)));
        assert!(error.message.contains("2^53"), "{error}");
    }
    let mut integer = script(source);
    integer.parameters = vec![Parameter { name: String::from("v"), integer: true }];
    assert_eq!(run(integer, json!({"v": 1e20})).unwrap_err().kind, ToolErrorKind::InvalidArguments);
}

#[test]
fn an_error_names_file_and_line_and_has_a_traceback() {
    let source = "local function inner()\n  local t = nil\n  return t.x\nend\n\nreturn function()\n  return (inner())\nend\n";
    let error = run_source(source).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Script);
    assert!(error.message.starts_with("scripts/probe.lua:3: attempt to index nil"), "{error}");
    assert_eq!(
        error.details.as_deref(),
        Some("scripts/probe.lua:3 in inner\nscripts/probe.lua:7 in the script")
    );
    let error = run_source("return function() error({ message = 'from a table' }) end").unwrap_err();
    assert_eq!(error.message, "scripts/probe.lua:1: from a table");
    let error = run_source("return function()\n json.decode('{') end").unwrap_err();
    assert!(error.message.starts_with("scripts/probe.lua:2: json.decode: EOF"), "{error}");
    let caught = run_source("return function() local _, e = pcall(json.decode, '{') return e end").unwrap();
    assert!(caught.as_str().unwrap().starts_with("scripts/probe.lua:1: json.decode: EOF"), "{caught}");
}

#[test]
fn a_failure_is_worded_for_the_model() {
    let error = run_source("return function() error(tool.failure('no such town')) end").unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ToolErrorKind::Failure, "no such town"));
    let kept = "return function() local ok, e = pcall(error, tool.failure('later')) return tostring(e) .. e.message end";
    assert_eq!(run_source(kept).unwrap(), json!("laterlater"));
}

#[test]
fn loading_fails_by_name() {
    for (source, says) in [
        ("return function( end", "scripts/probe.lua:1:"),
        ("\n\nlocal x = = 1", "scripts/probe.lua:3:"),
        ("return 5", "scripts/probe.lua: the script must return a function, it returned number"),
        ("local x = 1", "it returned nothing"),
        ("error('at top')", "scripts/probe.lua:1: at top"),
        ("fs.read('x') return print", "fs.read is not available while the script loads"),
        ("task.wait(1) return print", "task.wait is not available while the script loads"),
        ("coroutine.yield() return print", "scripts/probe.lua:1: "),
        ("local m = require('m') return print", "require is not available yet"),
        ("\u{1}\u{2}", "bytecode"),
    ] {
        let error = run_source(source).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Load, "{source}: {error}");
        assert!(error.message.contains(says), "{source}: {error}");
    }
}

#[test]
fn nothing_of_a_call_is_left_for_the_next() {
    let source = "counter = (counter or 0) + 1\nlocal kept = 0\nreturn function() kept += 1 total = (total or 0) + 1 \
                  return { counter, kept, total, tool.request_id } end";
    let script = Arc::new(script(source));
    let (runner, _) = listening();
    for request in ["one", "two", "three"] {
        let context = CallContext { request_id: request.to_owned(), ..CallContext::default() };
        let ended = block_on(runner.call(Arc::clone(&script), call(json!({})), context));
        assert_eq!(ended.unwrap(), json!([1, 1, 1, request]));
    }
}

#[test]
fn a_script_waits_without_its_thread() {
    let source = "return function() task.wait(0.5) return 'waited' end";
    let script = Arc::new(script(source));
    let (runner, _) = listening();
    let started = Instant::now();
    let ended = block_on(futures_util::future::join_all(
        (0..20).map(|_| runner.call(Arc::clone(&script), call(json!({})), CallContext::default())),
    ));
    assert!(ended.iter().all(|ended| *ended == Ok(json!("waited"))), "{ended:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn waiting_works_in_coroutines_and_not_in_comparators() {
    let source = "return function()
        local seen = {}
        local co = coroutine.create(function(x) task.wait(0.01) local y = coroutine.yield(x + 1) task.wait(0) return y end)
        table.insert(seen, select(2, coroutine.resume(co, 1)))
        table.insert(seen, select(2, coroutine.resume(co, 'end')))
        table.insert(seen, coroutine.status(co))
        for value in coroutine.wrap(function() for i = 1, 2 do task.wait(0.001) coroutine.yield(i) end end) do
          table.insert(seen, value)
        end
        local ok, message = pcall(function() task.wait(0.001) error('after waiting') end)
        table.insert(seen, message)
        return seen
      end";
    assert_eq!(
        run_source(source).unwrap(),
        json!([2, "end", "dead", 1, 2, "scripts/probe.lua:10: after waiting"])
    );
    let sorting =
        "return function() table.sort({3, 1, 2}, function(a, b) task.wait(0.01) return a < b end) end";
    let error = run_source(sorting).unwrap_err();
    assert!(error.message.contains("cannot wait inside a sort comparator"), "{error}");
}

#[test]
fn a_waiting_script_stops_at_its_deadline() {
    let mut script = script("return function() pcall(task.wait, 60) return 'late' end");
    script.timeout = Some(Duration::from_millis(100));
    let started = Instant::now();
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert!(error.message.contains("100 ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[test]
fn the_callback_takes_the_result() {
    let (runner, events) = listening();
    let ended = |source: &str| {
        let script = Arc::new(asynchronous(source));
        block_on(runner.call(script, call(json!({})), CallContext::default()))
    };
    assert_eq!(ended("return function(done) done({ at = 'once' }) end").unwrap(), json!({"at": "once"}));
    assert_eq!(ended("return function(done) task.delay(0.02, done, 7) end").unwrap(), json!(7));
    assert_eq!(
        ended("return function(done) task.spawn(function() task.wait() done(nil) end) end").unwrap(),
        Value::Null
    );
    assert!(logged(&events).is_empty());

    assert_eq!(ended("return function(done) done(1) done(2) end").unwrap(), json!(1));
    assert_eq!(logged(&events), ["Warn the callback was called again; the first result counts"]);
    events.lock().unwrap().clear();

    assert_eq!(ended("return function(done) done(1) error('after') end").unwrap(), json!(1));
    assert_eq!(logged(&events), ["Error after the callback was called: scripts/probe.lua:1: after"]);

    let started = Instant::now();
    let error = ended("return function(done) task.spawn(function() task.wait(0.01) end) end").unwrap_err();
    assert!(error.message.contains("without calling its callback"), "{error}");
    let error = ended("return function(done) return 5 end").unwrap_err();
    assert!(error.message.contains("without calling its callback"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
    let error =
        ended("return function(done) task.spawn(error, 'in a task') task.wait(1) done(1) end").unwrap_err();
    assert!(error.message.contains("in a task"), "{error}");
    let error = ended("return function(done) done(print) end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unserialisable);
}

#[test]
fn dropping_the_future_stops_a_spinning_script() {
    let (runner, _) = listening();
    let script = Arc::new(script("return function() while true do end end"));
    block_on(async {
        let spinning = runner.call(script, call(json!({})), CallContext::default());
        assert!(tokio::time::timeout(Duration::from_millis(60), spinning).await.is_err());
    });
    let normal = Arc::new(self::script("return function() return 'next' end"));
    let started = Instant::now();
    let ended = block_on(runner.call(normal, call(json!({})), CallContext::default()));
    assert_eq!(ended, Ok(json!("next")));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_spinning_script_does_not_hold_up_others() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, ..RunnerOptions::default() });
    let spinner = Arc::new(script("return function() while true do end end"));
    let normal = Arc::new(script("return function() return 1 end"));
    let sleeper = Arc::new(script("return function() task.wait(0.05) return 2 end"));
    block_on(async {
        let context = CallContext { timeout: Some(Duration::from_secs(3)), ..CallContext::default() };
        let waiting = runner.call(sleeper, call(json!({})), CallContext::default());
        let spinning = runner.call(spinner, call(json!({})), context);
        let others = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let started = Instant::now();
                let ended = runner.call(Arc::clone(&normal), call(json!({})), CallContext::default()).await;
                assert_eq!(ended, Ok(json!(1)));
                slowest = slowest.max(started.elapsed());
            }
            slowest
        };
        let (spun, slowest, waited) = tokio::join!(spinning, others, waiting);
        assert_eq!(spun.unwrap_err().kind, ToolErrorKind::Timeout);
        assert_eq!(waited, Ok(json!(2)));
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    });
}

#[test]
fn calls_run_on_two_threads() {
    let runner = meeting();
    assert!(block_on(two_meet(&runner)), "the calls ran one after the other");
}

#[test]
fn the_context_is_there() {
    let source = "return function()
        log.debug('a', 1, true, nil) print({}) tool.log('warn', 'careful\\27[31m') tool.progress(0.5, 'half')
        return { tool.name, tool.request_id, tool.job_name, tool.worker, tool.deadline > 29 and tool.deadline <= 30 }
      end";
    let (runner, events) = listening();
    let context = CallContext {
        request_id: String::from("r1"),
        job_name: String::from("job"),
        worker: String::from("w"),
        timeout: Some(Duration::from_secs(30)),
    };
    let ended = block_on(runner.call(Arc::new(script(source)), call(json!({})), context));
    assert_eq!(ended.unwrap(), json!(["probe", "r1", "job", "w", true]));
    assert_eq!(
        logged(&events),
        ["Debug a\t1\ttrue\tnil", "Info a table", "Warn careful\u{FFFD}[31m", "Progress Some(0.5) half"]
    );
}

#[test]
fn log_lines_are_bounded() {
    let (runner, events) = listening();
    let source = "return function() for i = 1, 5000 do print(string.rep('x', 100000)) end end";
    block_on(runner.call(Arc::new(script(source)), call(json!({})), CallContext::default())).unwrap();
    let lines = logged(&events);
    assert!(lines.len() <= 1_002, "{}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() < 2_100));
}

#[test]
fn files_are_read_under_a_grant_only() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir_all(notes.join("deep")).unwrap();
    std::fs::write(notes.join("today.md"), "# Today\n").unwrap();
    std::fs::write(notes.join("deep/bytes.bin"), [0xFF, 0xFE]).unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::fs::write(folder.path().join("one.txt"), "one").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", notes.join("link.txt")).unwrap();
    let read = |function: &str, path: &str| {
        let source = format!("return function(path) return fs.{function}(path) end");
        let mut script = with_parameters(&source, &["path"]);
        script.permissions.read =
            vec![PathGrant::new("notes/", &notes), PathGrant::new("one.txt", folder.path().join("one.txt"))];
        run(script, json!({"path": path}))
    };
    assert_eq!(read("read", "notes/today.md").unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "./notes//deep/../today.md").unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "other/../one.txt").unwrap(), json!("one"));
    assert_eq!(read("read", notes.join("today.md").to_str().unwrap()).unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "one.txt").unwrap(), json!("one"));
    let names: Vec<String> = read("list", "notes")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(names, ["deep directory", "link.txt symlink", "today.md file"]);
    for escape in
        ["secret.txt", "notes/../secret.txt", "/etc/passwd", "notes/link.txt", "../x", "one.txt/x", ""]
    {
        let error = read("read", escape).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{escape}: {error}");
        assert!(error.message.contains(":allow (:read ["), "{error}");
        assert!(error.message.starts_with("scripts/probe.lua:1: fs.read: "), "{error}");
    }
    assert!(read("read", "notes/deep/bytes.bin").unwrap_err().message.contains("not UTF-8"));
    assert!(read("read", "notes/absent").unwrap_err().message.contains("No such file"));
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo").arg(notes.join("pipe")).status().unwrap();
        assert!(made.success());
        assert!(read("read", "notes/pipe").unwrap_err().message.contains("not a regular file"));
    }
    assert!(read("read", "notes/deep").unwrap_err().message.contains("not a regular file"));
    let error = run_source("return function() return fs.list('.') end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert!(error.message.contains("may read nothing"), "{error}");
}

#[test]
fn a_grant_may_lead_up_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    for name in ["project/notes", "other/deep", "beside"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    for name in ["top.txt", "other/x", "other/deep/y", "beside/z", "project/secret.txt", "project/notes/n"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("../beside/z", folder.path().join("other/link")).unwrap();
    // As the layer above joins names to the project's root.
    let read = |grants: &[&str], path: &str| {
        let mut script = with_parameters("return function(path) return fs.read(path) end", &["path"]);
        script.permissions.read =
            grants.iter().map(|name| PathGrant::new(*name, project.join(name))).collect();
        run(script, json!({"path": path}))
    };
    for (grant, path, expected) in [
        ("../other/", "../other/x", "other/x"),
        ("../other/", "./notes/../../other//deep/y", "other/deep/y"),
        ("../other/", "../other/deep/../x", "other/x"),
        ("../other/x", "../other/x", "other/x"),
        ("notes/../../other", "../other/x", "other/x"),
        ("..", "../top.txt", "top.txt"),
        ("../", "../other/x", "other/x"),
        (".", "notes/../secret.txt", "project/secret.txt"),
        ("notes/..", "secret.txt", "project/secret.txt"),
    ] {
        assert_eq!(read(&[grant], path), Ok(json!(expected)), "{grant} {path}");
    }
    let full = folder.path().join("project/notes/../../other/x");
    assert_eq!(read(&["../other/"], full.to_str().unwrap()), Ok(json!("other/x")));

    for (grant, path, advised) in [
        ("notes/", "notes/../secret.txt", Some("secret.txt")),
        ("../other/", "../other/../beside/z", Some("../beside/z")),
        (".", "../other/x", Some("../other/x")),
        ("..", "../../x", None),
        ("../other/", "../other/link", None),
    ] {
        let error = read(&[grant], path).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{grant} {path}: {error}");
        assert!(error.message.contains(":allow (:read ["), "{error}");
        if let Some(advised) = advised {
            assert!(error.message.contains(&format!(":allow (:read [\"{advised}\"])")), "{error}");
            assert!(read(&[grant, advised], path).is_ok(), "{grant} {path}");
        }
    }
    let error = read(&["notes/"], "").unwrap_err();
    assert!(error.message.contains(":allow (:read [\".\"])"), "{error}");
    let error = read(&["notes/"], "a\"b\\c").unwrap_err();
    assert!(error.message.contains(r#":allow (:read ["a\"b\\c"])"#), "{error}");
}

/// What was listed waits outside the memory limit: a call has few such lists at a time.
#[test]
fn a_call_lists_few_folders_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old"), "").unwrap();
    let added = folder.path().join("new");
    // Every listing that may run does so while the script is held here; then the folder changes.
    let sink = ScriptSink::new(move |_| {
        std::thread::sleep(Duration::from_millis(500));
        std::fs::write(&added, "").unwrap();
    });
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, sink, ..RunnerOptions::default() });
    let source = "return function()
        local early, late = 0, 0
        for i = 1, 50 do
          task.spawn(function()
            if #fs.list('.') == 1 then early += 1 else late += 1 end
          end)
        end
        task.spawn(print, 'all have started')
        repeat task.wait(0.01) until early + late == 50
        return { early, late }
      end";
    let mut script = script(source);
    script.permissions.read = vec![PathGrant::new(".", folder.path())];
    let ended = block_on(runner.call(Arc::new(script), call(json!({})), CallContext::default())).unwrap();
    let late = ended[1].as_i64().unwrap();
    assert!(late >= 25, "early and late: {ended}");
}

#[test]
fn time_and_json_are_there() {
    let source = "return function()
        return {
          iso = time.iso(0), day = time.format('%A', 86400), paris = time.format('%H:%M', 0, 'Europe/Paris'),
          now = time.now() > 1.7e9, mono = time.monotonic() >= 0,
          text = json.encode({ b = json.null, a = json.array{} }),
          back = json.decode('[1, null, {\"x\": 2.5}]')[2] == json.null,
          big = json.decode('{\"id\": 9007199254740993}', { big_integers = 'string' }).id,
          refused = select(2, pcall(json.decode, '{\"a\": [9007199254740993]}')),
        }
      end";
    assert_eq!(
        run_source(source).unwrap(),
        json!({
            "iso": "1970-01-01T00:00:00Z", "day": "Friday", "paris": "01:00", "now": true, "mono": true,
            "text": "{\"a\":[],\"b\":null}", "back": true, "big": "9007199254740993",
            "refused": "scripts/probe.lua:8: json.decode: cannot decode at .a[0]: the integer 9007199254740993 is \
                        beyond 2^53, where a Lua number is no longer exact"
        })
    );
}

#[test]
fn a_contract_is_read_without_running() {
    let returned = |source: &str| check_script(&script(source)).map(|contract| contract.returned);
    let function = |parameters: &[&str], is_vararg, line| {
        let parameters = parameters.iter().map(ToString::to_string).collect();
        Ok(Returned::Function { parameters, is_vararg, line })
    };
    assert_eq!(
        returned("error('never run')\nreturn function(a, b) return a end"),
        function(&["a", "b"], false, 2)
    );
    assert_eq!(
        returned(
            "local x = 1\nlocal function run(callback, place, ...)\n x += 1 return place, ... end\nreturn run"
        ),
        function(&["callback", "place"], true, 2)
    );
    assert_eq!(returned("return 5"), Ok(Returned::NoFunction(String::from("a number"))));
    assert_eq!(returned("return {}"), Ok(Returned::NoFunction(String::from("a table"))));
    assert_eq!(returned("local x = 1"), Ok(Returned::NoFunction(String::from("nothing"))));
    assert_eq!(returned("return make()"), Ok(Returned::Unknown));
    assert_eq!(
        returned("if a then return function(x) end end return function(x, y) end"),
        Ok(Returned::Unknown)
    );
    let problem = returned("local x\nlocal y = = 2").unwrap_err();
    assert_eq!(problem.line, Some(2), "{problem}");
    assert!(problem.to_string().starts_with("scripts/probe.lua:2: "), "{problem}");
    assert!(returned(&"x".repeat(2 << 20)).unwrap_err().message.contains("1024 KiB"));
}

#[test]
fn a_hostile_source_does_not_crash_the_compiler() {
    let many = |piece: &str, most: usize| piece.repeat(most.min((1 << 20) / piece.len() - 10));
    let sources = [
        ("parentheses", format!("return {}", many("(", 200_000))),
        ("closed parentheses", format!("return {}1{}", many("(", 200_000), many(")", 200_000))),
        ("tables", format!("return {}{}", many("{", 200_000), many("}", 200_000))),
        ("functions", format!("return {}", many("function() return ", 40_000))),
        (
            "closed functions",
            format!("return {} 1 {}", many("function() return ", 30_000), many(" end", 30_000)),
        ),
        ("ifs", format!("{}{}", many("if x then ", 50_000), many("end ", 50_000))),
        ("elseifs", format!("if x then {}end", many("elseif x then ", 60_000))),
        ("unary", format!("return {}1", many("not ", 200_000))),
        ("minus", format!("return {}1", many("- ", 400_000))),
        ("concat", format!("return {}'a'", many("'a'..", 150_000))),
        ("sum", format!("return {}1", many("1+", 400_000))),
        ("sum of names", format!("return {}a", many("a+", 400_000))),
        ("and", format!("return {}a", many("a and ", 150_000))),
        ("power", format!("return {}a", many("a^", 400_000))),
        ("calls", format!("return f{}", many("()", 400_000))),
        ("string calls", format!("return f{}", many("''", 400_000))),
        ("indices", format!("return f{}", many(".a", 400_000))),
        ("methods", format!("return f{}", many(":a()", 200_000))),
        ("locals", many("local a\n", 120_000)),
        ("locals in one", format!("local a{}", many(",a", 400_000))),
        ("assignments", format!("a{} = 1", many(",a", 400_000))),
        ("returns", format!("return a{}", many(",a", 400_000))),
        ("parameters", format!("return function(a{}) end", many(",a", 400_000))),
        ("arguments", format!("return f(1{})", many(",1", 400_000))),
        ("items", format!("return {{1{}}}", many(",1", 400_000))),
        ("empty tables", format!("return {{{}}}", many("{},", 300_000))),
        ("keys", format!("return {{{}}}", many("a=1,", 250_000))),
        ("globals", many("a=b ", 250_000)),
        ("blocks", format!("{}{}", many("do ", 120_000), many("end ", 120_000))),
        ("loops", format!("{}{}", many("while x do ", 60_000), many("end ", 60_000))),
        ("repeats", many("repeat ", 140_000)),
        ("types", format!("local x: {}", many("{", 200_000))),
        ("type functions", format!("local x: {}", many("(", 200_000))),
        ("type unions", format!("local x: a{}", many("|a", 200_000))),
        ("optional types", format!("local x: a{}", many("?", 400_000))),
        ("generic types", format!("local x: {}", many("a<", 200_000))),
        ("if expressions", format!("return {}", many("if x then ", 100_000))),
        ("else expressions", format!("return {} 1", many("if x then 1 else ", 60_000))),
        ("interpolation", format!("return {}", many("`{", 200_000))),
        ("long bracket", format!("return [{}[", many("=", 500_000))),
        ("casts", format!("return a{}", many("::a", 200_000))),
        ("labels", many("::a:: ", 100_000)),
        ("function statements", many("function f() end ", 60_000)),
        ("captures", format!("local a {}", many("function f() return a end ", 30_000))),
        ("attributes", format!("{}function f() end", many("@native ", 100_000))),
        ("nulls", "\0".repeat(1000)),
        ("long name", format!("return {}", many("a", 1_000_000))),
        ("long number", format!("return {}", many("9", 1_000_000))),
        ("long string", format!("return '{}'", many("a", 1_000_000))),
        ("escapes", format!("return '{}'", many("\\u{10FFFF}", 100_000))),
        ("broken bytes", String::from("return '\u{FFFD}'")),
    ];
    for (name, source) in sources {
        let started = Instant::now();
        let contract = check_script(&script(&source));
        let took = started.elapsed();
        println!(
            "{name}: {took:?} {}",
            match &contract {
                Ok(contract) => format!("{contract:?}").chars().take(100).collect::<String>(),
                Err(problem) => problem.to_string(),
            }
        );
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}

#[test]
fn the_top_level_has_a_limit_of_its_own() {
    let started = Instant::now();
    let error = run_source("pcall(function() while true do end end) while true do end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Load);
    assert!(error.message.contains("250 ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_timeout_tells_where_the_script_was() {
    let mut script = script("return function()\n  while true do\n  end\nend");
    script.timeout = Some(Duration::from_millis(250));
    let error = run(script, json!({})).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert_eq!(error.details.as_deref(), Some("scripts/probe.lua:2 in the script"));
}

#[test]
fn a_waiting_call_beside_a_spinning_one_is_answered_in_time() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let waiter = Arc::new(script("return function() task.wait(0.05) while true do task.wait(0.01) end end"));
    let spinner = Arc::new(script("return function() while true do end end"));
    block_on(async {
        let limit = |limit| CallContext { timeout: Some(limit), ..CallContext::default() };
        let waiting = async {
            let started = Instant::now();
            let ended = runner.call(waiter, call(json!({})), limit(Duration::from_millis(200))).await;
            (ended, started.elapsed())
        };
        let spinning = runner.call(spinner, call(json!({})), limit(Duration::from_secs(10)));
        tokio::select! {
            // The waiting call comes first: the only thread is free for it.
            biased;
            (ended, took) = waiting => {
                assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Timeout);
                assert!(took < Duration::from_secs(5), "{took:?}");
            }
            spun = spinning => panic!("the spinning call ended first: {spun:?}"),
        }
    });
}

#[test]
fn dropping_the_runner_ends_its_calls() {
    let runner = runner();
    let spinning = runner.call(
        Arc::new(script("return function() while true do end end")),
        call(json!({})),
        CallContext::default(),
    );
    block_on(async {
        let (ended, ()) = tokio::join!(spinning, async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(runner);
        });
        assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Canceled);
    });
}

#[test]
fn a_changed_script_is_another_script() {
    let runner = runner();
    let ended = |version: &str| {
        let script = script(&format!("return function() return '{version}' end"));
        block_on(runner.call(Arc::new(script), call(json!({})), CallContext::default()))
    };
    for version in ["one", "two", "three"] {
        assert_eq!(ended(version), Ok(json!(version)));
    }
}

#[test]
fn more_calls_than_a_thread_takes_all_end() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let waiter = Arc::new(script("return function() task.wait(0.01) return 1 end"));
    let ended = block_on(futures_util::future::join_all(
        (0..600).map(|_| runner.call(Arc::clone(&waiter), call(json!({})), CallContext::default())),
    ));
    assert!(ended.iter().all(|ended| *ended == Ok(json!(1))));
}

/// Deadlines and dropped futures that strike at every moment of a call, on several threads.
#[test]
fn stops_at_any_moment_do_no_harm() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runner = Arc::new(runner());
    let sources = [
        "return function() while true do end end",
        "return function() while true do pcall(task.wait, 0.001) end end",
        "return function() local t = {} for i = 1, 300 do t[i] = { i } end return t end",
        "return function() task.spawn(function() while true do task.wait() end end) task.wait(0.002) return 1 end",
        "return function() return coroutine.wrap(function() task.wait(0.001) return json.decode('[1]') end)() end",
        "local n = 0 for i = 1, 20000 do n += i end return function() return n end",
    ];
    let scripts: Vec<Arc<Script>> = sources.iter().map(|source| Arc::new(script(source))).collect();
    let finished: Vec<_> = (0..8_u64)
        .map(|worker| {
            let (runner, scripts) = (Arc::clone(&runner), scripts.clone());
            runtime.spawn(async move {
                for round in 0..150_u64 {
                    let mixed = (worker * 7_919 + round * 104_729) % 1_000;
                    let script = Arc::clone(&scripts[(mixed % 6) as usize]);
                    let context = CallContext {
                        timeout: Some(Duration::from_micros(200 + mixed * 5)),
                        ..CallContext::default()
                    };
                    let ended = runner.call(script, call(json!({})), context);
                    drop(tokio::time::timeout(Duration::from_micros(mixed * 10), ended).await);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for worker in finished {
            worker.await.unwrap();
        }
        let normal = Arc::new(script("return function() return 'alive' end"));
        assert_eq!(runner.call(normal, call(json!({})), CallContext::default()).await, Ok(json!("alive")));
    });
}

/// A stop may come while a state is being made or a source compiled, before there is anything to interrupt.
#[test]
fn a_call_dropped_while_its_script_compiles_frees_its_thread() {
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let source = format!("while true do end {}", "local function f(a) return a end f(1) ".repeat(100));
    let slow = format!("while true do end {}", "x = {1, 2, 3} ".repeat(70_000));
    let normal = Arc::new(script("return function() return 'alive' end"));
    block_on(async {
        for (source, patience) in [(&slow, 3), (&slow, 20), (&source, 0), (&source, 1)] {
            let spinning = runner.call(Arc::new(script(source)), call(json!({})), CallContext::default());
            drop(tokio::time::timeout(Duration::from_millis(patience), spinning).await);
            let alive = runner.call(Arc::clone(&normal), call(json!({})), CallContext::default());
            let alive = tokio::time::timeout(Duration::from_secs(10), alive).await;
            assert_eq!(alive.expect("the thread is held"), Ok(json!("alive")));
        }
    });
}

/// Spinning top levels dropped at every moment of their start.
#[test]
fn dropped_top_levels_free_their_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runner = Arc::new(meeting());
    let workers: Vec<_> = (0..4_u64)
        .map(|worker| {
            let runner = Arc::clone(&runner);
            runtime.spawn(async move {
                let pooled = Arc::new(script("while true do end"));
                for round in 0..250_u64 {
                    let mixed = (worker * 7_919 + round * 104_729) % 1_000;
                    let script = if mixed % 4 == 0 {
                        Arc::clone(&pooled)
                    } else {
                        Arc::new(script("while true do end"))
                    };
                    let ended = runner.call(script, call(json!({})), CallContext::default());
                    drop(tokio::time::timeout(Duration::from_micros(mixed * 5), ended).await);
                }
            })
        })
        .collect();
    let ends = async {
        for worker in workers {
            worker.await.unwrap();
        }
        two_meet(&runner).await
    };
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), ends).await });
    assert_eq!(ended, Ok(true), "a dropped call holds its thread");
}
