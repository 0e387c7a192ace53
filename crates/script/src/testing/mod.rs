//! Script tests: `scripts/*_test.lua`. Each test runs in its own Lua state.
//!
//! Input: a [`TestFile`] (its top level calls `test(name, function)`) and the tools that its tests may load. Output:
//! the test names ([`list_tests`]) and the outcome of a test ([`run_test`]). A test has a fresh state and environment:
//! the file's top level runs once to list the tests and again for each test, under the limits of a call.
//!
//! A test calls a tool as a model would: with arguments by name, which are validated against the schema. The script
//! runs in its own state with its own limits and permissions, and its result is converted to JSON and back. Host tables
//! can be replaced ([`fakes`]).
//!
//! A failed expectation fails its test even if the error is caught, for example by a tool that calls a fake. Out of
//! scope: hooks before and after tests (use a function), nested groups, snapshots.
//!
//! The test functions are defined in `testing.lua`, with their Rust parts in `state`.

mod command;
mod difference;
mod fakes;
mod grant_limits;
mod model;
mod state;
mod temp;

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, ToolError, ToolErrorKind};
use deftool_process::lock;

use super::control::Control;
use super::events::{ScriptEvent, ScriptSink};
use super::limits::DEFAULT_MEMORY;
use super::vm::Vm;
use fakes::split_location;
pub use model::{TestFailure, TestFile, TestName, TestOutcome, TestSubject, TestTools};
use state::TestState;
pub use temp::remove_test_folders;

/// Maximum number of log lines to keep per test.
const MAX_LOG: usize = 1_000;

/// Time limit for the top level of a file of tests.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the tests of `file`, in order. Runs its top level.
///
/// # Errors
/// When it does not compile, or its top level fails.
pub fn list_tests(file: &TestFile) -> Result<Vec<TestName>, TestFailure> {
    let (answer, state, _) = run_file(file, None, LIST_TIMEOUT);
    match answer {
        Ok(()) => Ok(state.names.take()),
        Err(error) => Err(failure(file, error, LIST_TIMEOUT)),
    }
}

/// Runs the test at `index` in the list that [`list_tests`] returns. `timeout` includes waiting; the tools that the test
/// calls have their own memory limits.
pub fn run_test(file: &TestFile, index: usize, timeout: Duration) -> TestOutcome {
    let started = Instant::now();
    let (answer, state, log) = run_file(file, Some(index), timeout);
    let failure = match (state.failure.take(), answer) {
        (Some(failure), _) => Some(failure),
        (None, Err(error)) => Some(failure(file, error, timeout)),
        (None, Ok(())) => state.unused_expectation(),
    };
    TestOutcome { failure, log, tools: state.called.take(), elapsed: started.elapsed() }
}

/// Runs the top level and then the `selected` test, if any.
fn run_file(
    file: &TestFile,
    selected: Option<usize>,
    timeout: Duration,
) -> (Result<(), ToolError>, Rc<TestState>, Vec<ScriptEvent>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let shared_log = Arc::clone(&log);
    let sink = ScriptSink::new(move |event| {
        let mut log = lock(&shared_log);
        if log.len() < MAX_LOG {
            log.push(event);
        }
    });
    let state = Rc::new(TestState::new(file, selected, sink.clone()));
    let answer = run_in_state(file, &state, sink, timeout);
    let log = std::mem::take(&mut *lock(&log));
    (answer, state, log)
}

fn run_in_state(
    file: &TestFile,
    state: &Rc<TestState>,
    sink: ScriptSink,
    timeout: Duration,
) -> Result<(), ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|error| {
        ToolError::new(ToolErrorKind::Internal, format!("cannot start the async runtime: {error}"))
    })?;
    let mut vm = Vm::with_globals(&file.script, sink, DEFAULT_MEMORY, &|lua, host, marks| {
        state::install(state, lua, host, marks)
    })?;
    let control = Control::new(timeout, None);
    let (answer, _) = runtime.block_on(vm.call(&Arguments::default(), CallContext::default(), &control));
    drop(vm);
    // Does not wait for file operations of stopped tools.
    runtime.shutdown_background();
    answer.map(drop)
}

/// Converts an error that ended a test, or the file's top level.
fn failure(file: &TestFile, error: ToolError, timeout: Duration) -> TestFailure {
    let name = file.script.file.as_str();
    let details: Vec<String> =
        error.details.iter().flat_map(|details| details.lines()).map(str::to_owned).collect();
    let in_details = || {
        let line = details.iter().find_map(|frame| frame.strip_prefix(name)?.strip_prefix(':'))?;
        line.split(' ').next()?.parse().ok()
    };
    let (line, message) = match (split_location(&error.message, name), error.kind) {
        (_, ToolErrorKind::Timeout) => {
            let seconds = timeout.as_secs_f64();
            (in_details(), format!("the test was stopped at its time limit of {seconds} s"))
        }
        (_, ToolErrorKind::Memory) => {
            let mib = DEFAULT_MEMORY >> 20;
            (in_details(), format!("the test was stopped at its memory limit of {mib} MiB"))
        }
        (Some((line, message)), _) => (Some(line), message.to_owned()),
        (None, _) => (in_details(), error.message),
    };
    // A single frame repeats the line of the failure.
    let details = if details.len() == 1 && line.is_some() { Vec::new() } else { details };
    TestFailure { kind: error.kind.as_str(), line, message, details }
}
