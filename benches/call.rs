//! What a tool call costs on the script's thread: arguments as JSON text, parsed, validated, the script called, the
//! result as JSON text. `cargo bench --bench call`.

// A benchmark that cannot go on ends.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use deftool::schema::ArgumentValidator;
use deftool::script::{LocalVm, Parameter, RunnerOptions, Script, ScriptRunner, ScriptSink, check_script};
use deftool::tool::{CallContext, ToolCall};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

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
    divan::main();
}

/// JSON text → validate → call → JSON text.
#[divan::bench(sample_size = 100)]
fn json_to_json(bencher: Bencher) {
    let mut vm = LocalVm::new(weather(), ScriptSink::default()).unwrap();
    let validator = validator();
    bencher.bench_local(|| {
        let arguments: Value = serde_json::from_str(black_box(ARGUMENTS)).unwrap();
        assert!(validator.is_valid(&arguments));
        let result = vm.call(arguments.as_object().unwrap(), CallContext::default()).unwrap();
        result.to_string()
    });
}

/// The call alone, with nothing to convert.
#[divan::bench(sample_size = 100)]
fn empty_call(bencher: Bencher) {
    let script = Arc::new(Script::new("nothing", "scripts/nothing.lua", "return function() end"));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    let arguments = serde_json::Map::new();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

/// A state made, used once and dropped.
#[divan::bench]
fn fresh_state(bencher: Bencher) {
    let script = weather();
    let arguments = serde_json::from_str::<Value>(ARGUMENTS).unwrap();
    bencher.bench_local(|| {
        let mut vm = LocalVm::new(Arc::clone(&script), ScriptSink::default()).unwrap();
        vm.call(arguments.as_object().unwrap(), CallContext::default()).unwrap()
    });
}

/// A loop of a million additions: what the parked interrupt leaves of Luau's speed.
#[divan::bench(sample_count = 20)]
fn tight_loop(bencher: Bencher) {
    let source = "return function() local n = 0 for i = 1, 1000000 do n += i end return n end";
    let mut vm =
        LocalVm::new(Arc::new(Script::new("loop", "scripts/loop.lua", source)), ScriptSink::default())
            .unwrap();
    let arguments = serde_json::Map::new();
    bencher.bench_local(|| vm.call(&arguments, CallContext::default()).unwrap());
}

/// Compiling and reading the contract of a script.
#[divan::bench]
fn check(bencher: Bencher) {
    bencher.bench_local(|| check_script(&Script::new("t", "t.lua", black_box(WEATHER))).unwrap());
}

/// Through the runner's threads, one call after another.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn through_the_runner(bencher: Bencher) {
    run_batch(bencher, 1);
}

/// Through the runner's threads, 64 calls at a time; the figure is for 64.
#[divan::bench(sample_count = 20, sample_size = 20)]
fn through_the_runner_64(bencher: Bencher) {
    run_batch(bencher, 64);
}

fn run_batch(bencher: Bencher, at_a_time: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runner = ScriptRunner::new(RunnerOptions::default());
    let script = weather();
    let arguments = serde_json::from_str::<Value>(ARGUMENTS).unwrap();
    let call = || {
        let arguments = arguments.as_object().cloned().unwrap();
        let call = ToolCall { id: String::new(), name: String::from("get_weather"), arguments };
        runner.call(Arc::clone(&script), call, CallContext::default())
    };
    bencher.bench_local(|| runtime.block_on(futures_util::future::join_all((0..at_a_time).map(|_| call()))));
}
