//! Script tests: `scripts/*_test.lua`, each test in a state of its own.
//!
//! In: a [`TestFile`], whose top level calls `test(name, function)`, and the tools that its tests may load. Out:
//! [`list_tests`], the names; [`run_test`], how one of them ended. A test has a fresh state and a fresh environment: the
//! file's top level runs once to learn the names and once more for every test. The limits of a call hold for each.
//!
//! A test calls a tool as a model would: arguments by name, held against the schema, the script in a state of its own
//! under its own limits and permissions, the result as JSON gives it back. Host tables can be replaced ([`fakes`]).
//!
//! A failing expectation ends its test as failed, even if something on the way catches the error: a tool that calls a
//! fake may. Absent on purpose: hooks before and after (a function does that), nested groups, snapshots.
//!
//! The vocabulary is in `testing.lua`; what Rust does for it, in `state`.

mod bounds;
mod difference;
mod fakes;
mod state;
mod temp;

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::control::{Control, lock};
use super::host::{ScriptEvent, ScriptSink};
use super::vm::Vm;
use super::{DEFAULT_MEMORY, Script};
use crate::tool::{CallContext, ToolError, ToolErrorKind};
use fakes::split_place;
use state::TestState;
pub use temp::remove_test_folders;

/// Most log lines of a test that are kept.
const MAX_LOG: usize = 1_000;

/// A file of tests.
#[derive(Clone)]
pub struct TestFile {
    /// The file, its modules, its root and what the tests themselves may use.
    pub script: Arc<Script>,
    /// The tools that tests may load.
    pub tools: TestTools,
}

impl fmt::Debug for TestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFile").field("file", &self.script.file).finish_non_exhaustive()
    }
}

/// Finds a tool by its name.
pub type TestTools = Arc<dyn Fn(&str) -> Result<TestSubject, ToolError> + Send + Sync>;

/// What holds arguments against a schema.
type Accept = Arc<dyn Fn(Value) -> Result<Map<String, Value>, ToolError> + Send + Sync>;

/// Says why a script may not run with its permissions.
type Permit = Arc<dyn Fn(&Script) -> Result<(), ToolError> + Send + Sync>;

/// A tool under test.
#[derive(Clone)]
pub struct TestSubject {
    /// Its script.
    pub script: Arc<Script>,
    /// Holds arguments against its schema; the error is what a model would be told.
    pub accept: Accept,
    /// Whether the script may run with the permissions that it has. Those of tables that a test replaces, and those of
    /// the test's own folder, are not asked for.
    pub permit: Permit,
}

impl fmt::Debug for TestSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSubject").field("script", &self.script).finish_non_exhaustive()
    }
}

/// The limits of one test.
#[derive(Debug, Clone, Copy)]
pub struct TestLimits {
    /// Its time, waiting included.
    pub timeout: Duration,
    /// The memory of its own state, in bytes; the tools that it calls have their own.
    pub memory: u64,
}

impl Default for TestLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), memory: DEFAULT_MEMORY }
    }
}

/// A test, as its file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestName {
    /// What it is called.
    pub name: String,
    /// The line of its `test(…)`, from 1.
    pub line: usize,
}

/// How a test ended.
#[derive(Debug)]
pub struct TestEnd {
    /// Why it failed; `None`: it passed.
    pub failure: Option<TestFailure>,
    /// What it and the tools that it called logged.
    pub log: Vec<ScriptEvent>,
    /// The tools that it called.
    pub tools: BTreeSet<String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why a test failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFailure {
    /// `expectation`, or what sort of error ended it, as in `timeout`.
    pub kind: &'static str,
    /// The line of the test's file where that shows, from 1.
    pub line: Option<usize>,
    /// One clause.
    pub message: String,
    /// More lines: further differences, a traceback.
    pub details: Vec<String>,
}

/// The tests of `file`, in order. Runs its top level.
///
/// # Errors
/// When it does not compile, or its top level fails.
pub fn list_tests(file: &TestFile) -> Result<Vec<TestName>, TestFailure> {
    let (answer, state, _) = play(file, None, &TestLimits::default());
    match answer {
        Ok(()) => Ok(state.names.take()),
        Err(error) => Err(failure(file, error, &TestLimits::default())),
    }
}

/// Runs the test that [`list_tests`] gives at `index`.
pub fn run_test(file: &TestFile, index: usize, limits: &TestLimits) -> TestEnd {
    let started = Instant::now();
    let (answer, state, log) = play(file, Some(index), limits);
    let failure = match (state.failure.take(), answer) {
        (Some(failure), _) => Some(failure),
        (None, Err(error)) => Some(failure(file, error, limits)),
        (None, Ok(())) => state.unasked(),
    };
    TestEnd { failure, log, tools: state.called.take(), elapsed: started.elapsed() }
}

/// Runs the top level and, then, the test that is `wanted`.
fn play(
    file: &TestFile,
    wanted: Option<usize>,
    limits: &TestLimits,
) -> (Result<(), ToolError>, Rc<TestState>, Vec<ScriptEvent>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&log);
    let sink = ScriptSink::new(move |event| {
        let mut log = lock(&heard);
        if log.len() < MAX_LOG {
            log.push(event);
        }
    });
    let state = Rc::new(TestState::new(file, wanted, sink.clone()));
    let answer = play_in(file, &state, sink, limits);
    let log = std::mem::take(&mut *lock(&log));
    (answer, state, log)
}

fn play_in(
    file: &TestFile,
    state: &Rc<TestState>,
    sink: ScriptSink,
    limits: &TestLimits,
) -> Result<(), ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| ToolError::new(ToolErrorKind::Internal, format!("no timers: {error}")))?;
    let mut vm = Vm::extended(&file.script, sink, limits.memory, &|lua, host, marks| {
        state::install(state, lua, host, marks)
    })?;
    let control = Control::new(limits.timeout, None);
    let (answer, _) = runtime.block_on(vm.call(&Map::new(), CallContext::default(), &control));
    drop(vm);
    // A file operation of a tool that was stopped is not waited for.
    runtime.shutdown_background();
    answer.map(drop)
}

/// An error that ended a test, or the file's top level.
fn failure(file: &TestFile, error: ToolError, limits: &TestLimits) -> TestFailure {
    let name = file.script.file.as_str();
    let details: Vec<String> =
        error.details.iter().flat_map(|details| details.lines()).map(str::to_owned).collect();
    let in_details = || {
        let line = details.iter().find_map(|frame| frame.strip_prefix(name)?.strip_prefix(':'))?;
        line.split(' ').next()?.parse().ok()
    };
    let (line, message) = match (split_place(&error.message, name), error.kind) {
        (_, ToolErrorKind::Timeout) => {
            let seconds = limits.timeout.as_secs_f64();
            (in_details(), format!("the test was stopped at its time limit of {seconds} s"))
        }
        (_, ToolErrorKind::Memory) => {
            let mib = limits.memory >> 20;
            (in_details(), format!("the test was stopped at its memory limit of {mib} MiB"))
        }
        (Some((line, message)), _) => (Some(line), message.to_owned()),
        (None, _) => (in_details(), error.message),
    };
    // One frame is where the failure shows; more say how it came there.
    let details = if details.len() == 1 && line.is_some() { Vec::new() } else { details };
    TestFailure { kind: error.kind.as_str(), line, message, details }
}
