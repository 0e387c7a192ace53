//! The cost of a tool call on the script thread: parsing and validating JSON arguments, calling the script, and
//! serialising the result. Run with `cargo bench --bench call`.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};

use deftool_lang::schema::{ArgumentValidator, Arguments};
use deftool_lang::tool::{CallContext, ToolCall};
use deftool_process::HelperProgram;
use deftool_script::{
    Isolation, LocalVm, Parameter, RunnerOptions, Script, ScriptRunner, ScriptSink, check_script,
};
use divan::{Bencher, black_box};
use serde_json::json;

const WEATHER: &str = "
return function(location, unit)
  return { location = location, unit = unit or 'celsius', temperature = 21.5, sky = 'clear' }
end";

const ARGUMENTS: &str = r#"{"location": "Paris", "unit": "celsius"}"#;

fn weather() -> Arc<Script> {
    let mut script = Script::new("get_weather", "scripts/get_weather.lua", WEATHER);
    script.parameters = vec![Parameter::new("location"), Parameter::new("unit")];
    Arc::new(script)
}

fn validator() -> ArgumentValidator {
    let schema = json!({
        "type": "object",
        "properties": {"location": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "farenheit"]}},
        "required": ["location"],
        "additionalProperties": false
    });
    ArgumentValidator::compile("get_weather", &schema).unwrap()
}

fn main() {
    // The child process of `through_a_process`.
    if std::env::args().nth(1).as_deref() == Some(CHILD) {
        deftool_script::serve_isolated().unwrap();
        return;
    }
    divan::main();
}

const CHILD: &str = "script-host";

/// JSON text → validate → call → JSON text.
#[divan::bench(sample_size = 100)]
fn json_to_json(bencher: Bencher) {
    let mut vm = LocalVm::new(weather(), ScriptSink::default()).unwrap();
    let validator = validator();
    bencher.bench_local(|| {
        let arguments: Arguments = serde_json::from_str(black_box(ARGUMENTS)).unwrap();
        assert!(validator.is_valid(&arguments));
        let result = vm.call(&arguments, CallContext::default()).unwrap();
        result.value.to_string()
    });
}

/// The call only, without conversions.
#[divan::bench(sample_size = 100)]
fn empty_call(bencher: Bencher) {
    let script = Arc::new(Script::new("nothing", "scripts/nothing.lua", "return function() end"));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    let arguments = Arguments::default();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

/// A Lua state that is created, used once and dropped.
#[divan::bench]
fn fresh_state(bencher: Bencher) {
    let script = weather();
    let arguments = serde_json::from_str::<Arguments>(ARGUMENTS).unwrap();
    bencher.bench_local(|| {
        let mut vm = LocalVm::new(Arc::clone(&script), ScriptSink::default()).unwrap();
        vm.call(&arguments, CallContext::default()).unwrap()
    });
}

/// A loop of a million additions: the speed of Luau with an idle interrupt.
#[divan::bench(sample_count = 20)]
fn tight_loop(bencher: Bencher) {
    let source = "return function() local n = 0 for i = 1, 1000000 do n += i end return n end";
    let mut vm =
        LocalVm::new(Arc::new(Script::new("loop", "scripts/loop.lua", source)), ScriptSink::default())
            .unwrap();
    let arguments = Arguments::default();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

/// 200,000 random numbers, or strings, in a table that is sorted without a comparator.
#[divan::bench(args = ["math.random()", "tostring(math.random())"], sample_count = 20)]
fn sort(bencher: Bencher, value: &str) {
    let source = format!(
        "return function() local t = table.create(200000, 0) for i = 1, 200000 do t[i] = {value} end table.sort(t) end"
    );
    let script = Arc::new(Script::new("sort", "scripts/sort.lua", source));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    let arguments = Arguments::default();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

/// Compiling a script and reading its contract.
#[divan::bench]
fn check(bencher: Bencher) {
    bencher.bench_local(|| check_script(&Script::new("t", "t.lua", black_box(WEATHER))).unwrap());
}

/// A thousand zero-length waits in a script; compare with the same waits in the runtime only.
#[divan::bench(sample_count = 20)]
fn a_thousand_waits(bencher: Bencher) {
    let source = "return function() for i = 1, 1000 do task.wait(0) end end";
    let script = Arc::new(Script::new("waits", "scripts/waits.lua", source));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    let arguments = Arguments::default();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

#[divan::bench(sample_count = 20)]
fn a_thousand_waits_without_a_script(bencher: Bencher) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    bencher.bench_local(|| {
        runtime.block_on(async {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        });
    });
}

/// Sequential calls on the runner's threads.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn through_the_runner(bencher: Bencher) {
    run_batch(bencher, 1, RunnerOptions::default(), weather());
}

/// 64 concurrent calls on the runner's threads. The throughput is in calls.
#[divan::bench(sample_count = 20, sample_size = 20)]
fn through_the_runner_64(bencher: Bencher) {
    run_batch(bencher, 64, RunnerOptions::default(), weather());
}

/// CPU-bound calls on `threads` threads. The throughput is in calls.
#[divan::bench(args = [1, 2], sample_count = 20, sample_size = 2)]
fn computing_on_threads(bencher: Bencher, threads: usize) {
    run_batch(
        bencher,
        64,
        RunnerOptions { threads, max_threads: threads, ..RunnerOptions::default() },
        computing(),
    );
}

/// Sequential calls in a warm child process.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn through_a_process(bencher: Bencher) {
    run_batch(bencher, 1, in_processes(), weather());
}

/// 64 concurrent calls in warm child processes. The throughput is in calls.
#[divan::bench(sample_count = 20, sample_size = 20)]
fn through_processes_64(bencher: Bencher) {
    run_batch(bencher, 64, in_processes(), weather());
}

/// A child process that is started for one call and then stopped.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn a_new_process(bencher: Bencher) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = weather();
    bencher.bench_local(|| {
        let runner = ScriptRunner::new(in_processes());
        runtime.block_on(runner.call(Arc::clone(&script), call_of_weather(), CallContext::default())).unwrap()
    });
}

/// Calls that request a page of a local server, which is in this process too. The throughput is in calls.
#[divan::bench(args = [1, 8, 64], sample_count = 20, sample_size = 20)]
fn http_get(bencher: Bencher, at_a_time: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|connection| drop(std::thread::spawn(|| serve(connection))));
    });
    let source = format!("return function() return http.get('http://{host}/').body end");
    let mut script = Script::new("get", "scripts/get.lua", source);
    script.permissions.net = vec![host];
    run_batch(bencher, at_a_time, RunnerOptions::default(), Arc::new(script));
}

/// Answers the requests of a connection. Each arrives in one piece.
fn serve(mut connection: TcpStream) {
    connection.set_nodelay(true).unwrap();
    let mut request = [0; 1024];
    while connection.read(&mut request).is_ok_and(|length| length > 0) {
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
    }
}

/// 64 concurrent first calls. Each starts a child process, because each waits for 0.3 s, and 62 of them also wait 50 ms
/// in the queue.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn through_new_processes_64(bencher: Bencher) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let source = "return function() task.wait(0.3) end";
    let script = Arc::new(Script::new("wait", "scripts/wait.lua", source));
    bencher.with_inputs(|| ScriptRunner::new(in_processes())).bench_local_refs(|runner| {
        let call = || runner.call(Arc::clone(&script), call_of_weather(), CallContext::default());
        runtime.block_on(futures_util::future::join_all((0..64).map(|_| call())))
    });
}

/// A script that loops for about 100 µs.
fn computing() -> Arc<Script> {
    let source = "return function() local n = 0 for i = 1, 20000 do n += i % 7 end return n end";
    Arc::new(Script::new("compute", "scripts/compute.lua", source))
}

fn in_processes() -> RunnerOptions {
    let isolation = Isolation::Processes(HelperProgram::this_program([CHILD]).unwrap());
    RunnerOptions { isolation, ..RunnerOptions::default() }
}

fn call_of_weather() -> ToolCall {
    static CALL: LazyLock<ToolCall> = LazyLock::new(|| {
        let arguments = serde_json::from_str(ARGUMENTS).unwrap();
        ToolCall { id: String::new(), name: String::from("get_weather"), arguments }
    });
    CALL.clone()
}

fn run_batch(bencher: Bencher, at_a_time: usize, options: RunnerOptions, script: Arc<Script>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runner = ScriptRunner::new(options);
    let call = || runner.call(Arc::clone(&script), call_of_weather(), CallContext::default());
    let batch = || runtime.block_on(futures_util::future::join_all((0..at_a_time).map(|_| call())));
    assert!(batch().iter().all(Result::is_ok));
    bencher.counter(divan::counter::ItemsCount::new(at_a_time)).bench_local(batch);
}
