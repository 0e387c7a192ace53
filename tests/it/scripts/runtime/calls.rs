//! Arguments, results, errors and log lines of calls.

use super::*;

#[test]
fn arguments_are_passed_in_order_and_a_missing_one_is_nil() {
    let source = "return function(a, b, c) return { a = a, b = b == nil, c = c } end";
    let ended =
        run(with_parameters(source, &["a", "b", "c"]), json!({"c": [1, 2.5, {"x": null}], "a": "first"}));
    assert_eq!(ended.unwrap(), json!({"a": "first", "b": true, "c": [1, 2.5, {"x": null}]}));
}

#[test]
fn json_round_trips_through_lua() {
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
fn an_inexact_integer_is_rejected_with_its_path() {
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
fn an_error_has_file_line_and_traceback() {
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
    let error =
        run_source("return function() json.decode('[' .. string.rep('0,', 100001) .. '0]') end").unwrap_err();
    assert!(error.message.contains("json.decode: more than 100000 values"), "{error}");
    let caught = run_source("return function() local _, e = pcall(json.decode, '{') return e end").unwrap();
    assert!(caught.as_str().unwrap().starts_with("scripts/probe.lua:1: json.decode: EOF"), "{caught}");
}

#[test]
fn a_tool_failure_is_returned_unchanged() {
    let error = run_source("return function() error(tool.failure('no such town')) end").unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ToolErrorKind::Failure, "no such town"));
    let kept = "return function() local ok, e = pcall(error, tool.failure('later')) return tostring(e) .. e.message end";
    assert_eq!(run_source(kept).unwrap(), json!("laterlater"));
}

#[test]
fn load_errors_describe_the_cause() {
    for (source, fragment) in [
        ("return function( end", "scripts/probe.lua:1:"),
        ("\n\nlocal x = = 1", "scripts/probe.lua:3:"),
        ("return 5", "scripts/probe.lua: the script must return a function, but it returned number"),
        ("local x = 1", "it returned nothing"),
        ("error('at top')", "scripts/probe.lua:1: at top"),
        ("fs.read('x') return print", "fs.read is not available while the script loads"),
        ("task.wait(1) return print", "task.wait is not available while the script loads"),
        ("process.run({ 'sh' }) return print", "process.run is not available while the script loads"),
        // Only short texts are searched on the script's thread.
        (
            "text.matches(string.rep('b', 10000), 'c') return print",
            "text.matches is not available while the script loads",
        ),
        ("coroutine.yield() return print", "scripts/probe.lua:1: "),
        ("local m = require('m') return print", "expected a path that starts with `./`"),
        ("\u{1}\u{2}", "bytecode"),
    ] {
        let error = run_source(source).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Load, "{source}: {error}");
        assert!(error.message.contains(fragment), "{source}: {error}");
    }
}

#[test]
fn a_call_does_not_affect_the_next_call() {
    let source = "counter = (counter or 0) + 1\nlocal kept = 0\nreturn function() kept += 1 total = (total or 0) + 1 \
                  return { counter, kept, total, tool.request_id } end";
    let script = Arc::new(script(source));
    let (runner, _) = runner_with_events();
    for request in ["one", "two", "three"] {
        let context = CallContext { request_id: request.to_owned(), ..CallContext::default() };
        let ended = block_on(runner.value_of(Arc::clone(&script), call(json!({})), context));
        assert_eq!(ended.unwrap(), json!([1, 1, 1, request]));
    }
}

#[test]
fn a_waiting_script_does_not_block_its_thread() {
    let waiter = Arc::new(script("return function() while true do task.wait(3600) end end"));
    let normal = Arc::new(script("return function() return 'done' end"));
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, max_threads: 1, ..RunnerOptions::default() });
    let call =
        |script: &Arc<Script>| runner.value_of(Arc::clone(script), call(json!({})), CallContext::default());
    let waiting = futures_util::future::join_all((0..20).map(|_| call(&waiter)));
    let next = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        call(&normal).await
    };
    block_on(async {
        tokio::select! {
            ended = waiting => panic!("{ended:?}"),
            ended = next => assert_eq!(ended, Ok(json!("done"))),
        }
    });
}

#[test]
fn the_callback_returns_the_result() {
    let (runner, events) = runner_with_events();
    let ended = |source: &str| {
        let script = Arc::new(asynchronous(source));
        block_on(runner.value_of(script, call(json!({})), CallContext::default()))
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

    let error = ended("return function(done) task.spawn(function() task.wait(0.01) end) end").unwrap_err();
    assert!(error.message.contains("without calling its callback"), "{error}");
    let error = ended("return function(done) return 5 end").unwrap_err();
    assert!(error.message.contains("without calling its callback"), "{error}");
    let error =
        ended("return function(done) task.spawn(error, 'in a task') task.wait(1) done(1) end").unwrap_err();
    assert!(error.message.contains("in a task"), "{error}");
    let error = ended("return function(done) done(print) end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unserialisable);
}

#[test]
fn scripts_can_read_the_call_context() {
    let source = "return function()
        log.debug('a', 1, true, nil) print({}) tool.log('warn', 'careful\\27[31m') tool.progress(0.5, 'half')
        return { tool.name, tool.request_id, tool.job_name, tool.worker, tool.idempotency_key, tool.deadline > 1700 and tool.deadline <= 1800 }
      end";
    let (runner, events) = runner_with_events();
    let context = CallContext {
        call_id: String::from("c1"),
        request_id: String::from("r1"),
        job_name: String::from("job"),
        worker: String::from("w"),
        idempotency_key: String::from("r1-c1"),
        effect: Effect::Once,
        trace: None,
        timeout: Some(Duration::from_secs(1800)),
        meter: None,
    };
    let ended = block_on(runner.value_of(Arc::new(script(source)), call(json!({})), context));
    assert_eq!(ended.unwrap(), json!(["probe", "r1", "job", "w", "r1-c1", true]));
    assert_eq!(
        logged(&events),
        ["Debug a\t1\ttrue\tnil", "Info a table", "Warn careful\u{FFFD}[31m", "Progress Some(0.5) half"]
    );
}

#[test]
fn log_lines_are_limited() {
    let (runner, events) = runner_with_events();
    let source = "return function() for i = 1, 1500 do print(string.rep('x', 10000)) end end";
    block_on(runner.value_of(Arc::new(script(source)), call(json!({})), CallContext::default())).unwrap();
    let lines = logged(&events);
    assert!(lines.len() <= 1_002, "{}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() < 2_100));
    // The total size is limited too.
    let source = "return function() for i = 1, 200 do print(string.rep('\u{10FFFF}', 5000)) end end";
    let (runner, events) = runner_with_events();
    block_on(runner.value_of(Arc::new(script(source)), call(json!({})), CallContext::default())).unwrap();
    let lines = logged(&events);
    let bytes: usize = lines.iter().map(String::len).sum();
    assert!((1_000_000..1_100_000).contains(&bytes), "{bytes}");
    assert!(lines.last().unwrap().ends_with("further lines of this call were dropped"), "{:?}", lines.last());
}

#[test]
fn a_contract_is_determined_without_running_the_script() {
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

/// A PNG image of eight bytes in a local variable.
const WITH_PNG: &str = "local png = '\\137PNG\\r\\n\\26\\n' return function() ";

/// An image is a line of the value and an attachment, on a thread and in a child process.
#[test]
fn images_are_returned_beside_the_value() {
    let image = "[image: image/png, 8 bytes]";
    let rows = [
        ("return tool.image(png) end", json!(image), 1),
        (
            "return { page = 1, pictures = { tool.image(png), tool.image(png) } } end",
            json!({"page": 1, "pictures": [image, image]}),
            2,
        ),
        ("local one = tool.image(png) return { one, one.bytes == png } end", json!([image, true]), 1),
        ("return tool.audio('ID3\\4') end", json!("[audio: audio/mpeg, 4 bytes]"), 1),
    ];
    let options = RunnerOptions { isolation: isolated::processes(), ..RunnerOptions::default() };
    for runner in [runner(), ScriptRunner::new(options)] {
        for (source, value, count) in &rows {
            let script = Arc::new(script(&format!("{WITH_PNG}{source}")));
            let output = block_on(runner.call(script, call(json!({})), CallContext::default())).unwrap();
            assert_eq!((&output.value, output.attachments.len()), (value, *count), "{source}");
            assert!(output.attachments.iter().all(|attachment| attachment.bytes().is_some()), "{source}");
        }
    }
}

#[test]
fn only_images_are_images() {
    for (source, expected) in [
        ("return tool.image('PNG') end", "tool.image: the bytes are not PNG, JPEG, GIF or WebP"),
        ("return tool.image('') end", "tool.image: the bytes are not PNG, JPEG, GIF or WebP"),
        ("return tool.image('ID3\\4') end", "tool.image: the bytes are not PNG, JPEG, GIF or WebP"),
        ("return tool.audio(png) end", "tool.audio: the bytes are not WAV or MP3"),
        ("return tool.image({}) end", "tool.image: expected a string, got table"),
        (
            "return tool.image(png .. string.rep('x', 20000000)) end",
            "tool.image: 20000008 bytes are more than 20000000",
        ),
        ("tool.image(png).bytes = 'x' end", "attempt to modify a readonly table"),
        (
            "return setmetatable({ bytes = 'x' }, getmetatable(tool.image(png))) end",
            "invalid argument #2 to 'setmetatable'",
        ),
        // Other JSON contains no images.
        (
            "return json.encode(tool.image(png)) end",
            "json.encode: cannot encode at .bytes: a string that is not UTF-8",
        ),
    ] {
        let error = run_source(&format!("{WITH_PNG}{source}")).unwrap_err();
        assert!(error.message.contains(expected), "{source}: {}", error.message);
    }
}
