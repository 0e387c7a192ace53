//! Tests of the script runtime: attack scripts from `tests/attacks` with their expected outcome, and normal use.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use deftool_lang::spec::Effect;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, TraceContext};
use deftool_script::{
    Module, Parameter, PathGrant, Returned, RunnerOptions, Script, ScriptEvent, ScriptRunner, ScriptSink,
    check_script,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use serde_json::{Value, json};

mod attacks;
mod calls;
mod files;
mod fixture;
mod http;
mod isolated;
mod links;
mod modules;
#[cfg(unix)]
mod process;
pub(crate) mod sources;
mod stops;
mod tables;

const DEADLINE: Duration = Duration::from_millis(200);

const MEMORY: u64 = 16 << 20;

fn script(source: &str) -> Script {
    Script::new("probe", "scripts/probe.lua", source)
}

fn with_parameters(source: &str, names: &[&str]) -> Script {
    let mut script = script(source);
    script.parameters = names.iter().map(|name| Parameter::new(*name)).collect();
    script
}

fn call(arguments: Value) -> ToolCall {
    let arguments = arguments.try_into().unwrap();
    ToolCall { id: String::from("call_1"), name: String::from("probe"), arguments }
}

fn runner() -> ScriptRunner {
    ScriptRunner::new(RunnerOptions { threads: 2, ..RunnerOptions::default() })
}

type Events = Arc<Mutex<Vec<ScriptEvent>>>;

fn runner_with_events() -> (ScriptRunner, Events) {
    let events = Events::default();
    let shared = Arc::clone(&events);
    let sink = ScriptSink::new(move |event| shared.lock().unwrap().push(event));
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

/// Returns whether two calls run concurrently on a [`meeting`] runner. Each logs a line and returns how long that took.
async fn two_calls_overlap(runner: &ScriptRunner) -> bool {
    let source =
        "return function() local start = time.monotonic() print('here') return time.monotonic() - start end";
    let script = Arc::new(script(source));
    let one = || runner.value_of(Arc::clone(&script), call(json!({})), CallContext::default());
    let (first, second) = tokio::join!(one(), one());
    [first, second].iter().all(|took| took.as_ref().is_ok_and(|took| took.as_f64().unwrap() < 9.0))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs a call whose result is only a value.
trait ValueOf {
    fn value_of(
        &self,
        script: Arc<Script>,
        call: ToolCall,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>>;
}

impl ValueOf for ScriptRunner {
    fn value_of(
        &self,
        script: Arc<Script>,
        call: ToolCall,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        self.call(script, call, context).map_ok(|output| output.value).boxed()
    }
}

fn run(script: Script, arguments: Value) -> Result<Value, ToolError> {
    block_on(runner().value_of(Arc::new(script), call(arguments), CallContext::default()))
}

fn run_source(source: &str) -> Result<Value, ToolError> {
    run(script(source), json!({}))
}

/// Runs a script with the parameters `names`, for tests of documentation pages.
pub(crate) fn run_script(source: &str, names: &[&str], arguments: Value) -> Result<Value, ToolError> {
    let context = CallContext { timeout: Some(Duration::from_secs(20)), ..CallContext::default() };
    block_on(runner().value_of(Arc::new(with_parameters(source, names)), call(arguments), context))
}

fn asynchronous(source: &str) -> Script {
    let mut script = script(source);
    script.is_async = true;
    script
}
