//! Script tests: runs the tests of all files in parallel and returns the results in order.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_engine::{ProjectTrust, script_line};
use deftool_lang::tool::{ToolError, ToolErrorKind, accept_arguments};
use deftool_process::files::remove_leftover_test_folders;
use deftool_process::kill_programs;
use deftool_project::{Generation, ScriptState, TestScript, Trust};
use deftool_script::{
    Script, TestFailure, TestFile, TestName, TestSubject, TestTools, list_tests, remove_test_folders,
    run_test,
};
use deftool_worker::TrustSource;

use super::TestOptions;
use super::run::{Failure, Kind, Sample, SourceRange, TestResult, TestRun};
use crate::cli::outcome::{CliError, runtime};
use crate::cli::terminal::interrupt;
use crate::cli::terminal::interrupt::Signals;

/// Stack size of test threads. Tools run on the stack of the calling test, and fakes may be recursive.
const STACK: usize = 32 << 20;

/// Runs or lists the tests in `files` of the project at `root`.
pub(super) fn run(
    run: &mut TestRun,
    root: &Path,
    from: &Path,
    files: &[TestScript],
    options: &TestOptions,
) -> Result<(), CliError> {
    if files.is_empty() {
        return Ok(());
    }
    remove_leftover_test_folders();
    let find = tools_of(root, from, options)?;
    let files: Vec<TestFile> = files
        .iter()
        .map(|file| TestFile { script: Arc::clone(&file.script), tools: Arc::clone(&find) })
        .collect();
    let listed = in_parallel(&files, list_tests)?;
    let mut jobs = Vec::new();
    for (file, listed) in files.iter().zip(listed) {
        jobs.extend(jobs_of(file, listed, options.filter.as_deref()));
    }
    if options.list {
        run.results.extend(jobs.iter().map(Job::not_run));
        return Ok(());
    }
    run.results.extend(in_parallel(&jobs, |job| job.run(options.timeout))?);
    Ok(())
}

/// Returns the tools of the project at `root`, for tests.
fn tools_of(root: &Path, from: &Path, options: &TestOptions) -> Result<TestTools, CliError> {
    let generation = Arc::new(Generation::load(root, from, None)?);
    // Do not prompt for trust: most tests fake all access outside of the project.
    let trust = ProjectTrust::stored(root, options.trust).of(&generation);
    Ok(Arc::new(move |name: &str| subject(name, &generation, &trust)))
}

/// Calls the tools of the examples that have a result, each in a generated script test, and compares the results.
pub(super) fn run_samples(run: &mut TestRun, from: &Path, options: &TestOptions) -> Result<(), CliError> {
    let samples = std::mem::take(&mut run.samples);
    if samples.is_empty() {
        return Ok(());
    }
    let mut tools: HashMap<&Path, Result<TestTools, String>> = HashMap::new();
    let mut jobs = Vec::new();
    for sample in &samples {
        let find = match &sample.root {
            Some(root) => tools
                .entry(root)
                .or_insert_with(|| tools_of(root, from, options).map_err(|error| error.to_string()))
                .clone(),
            None => Err(String::from("a tool outside of a project has no script to call")),
        };
        let find = match find {
            Ok(find) => find,
            Err(message) => {
                let failure = Failure { kind: "load", at: sample.at.clone(), message, details: Vec::new() };
                set_failure(run, sample, failure);
                continue;
            }
        };
        let source = format!(
            "local call = tool.load({})\ntest(\"example\", function()\n  expect(call(json.decode({}))).equals(json.decode({}))\nend)\n",
            lua_string(&sample.tool),
            lua_string(&sample.arguments.to_string()),
            lua_string(&sample.returns.to_string()),
        );
        let mut script = Script::new(sample.tool.clone(), "example", source);
        script.root.clone_from(&sample.root);
        jobs.push((sample, TestFile { script: Arc::new(script), tools: find }));
    }
    let outcomes = in_parallel(&jobs, |(_, file)| run_test(file, 0, options.timeout))?;
    for ((sample, _), outcome) in jobs.iter().zip(outcomes) {
        if let Some(TestFailure { kind, message, details, .. }) = outcome.failure {
            set_failure(run, sample, Failure { kind, at: sample.at.clone(), message, details });
        }
        if let Some(result) = run.results.get_mut(sample.index) {
            result.log = outcome.log.iter().map(script_line).collect();
            result.elapsed = Some(outcome.elapsed);
            result.called = outcome.tools;
        }
    }
    Ok(())
}

fn set_failure(run: &mut TestRun, sample: &Sample, failure: Failure) {
    if let Some(result) = run.results.get_mut(sample.index) {
        result.failure = Some(failure);
    }
}

/// Returns a Luau string literal without escapes.
fn lua_string(text: &str) -> String {
    let mut level = String::new();
    while text.contains(&format!("]{level}]")) || text.ends_with(&format!("]{level}")) {
        level.push('=');
    }
    format!("[{level}[{text}]{level}]")
}

/// Returns a tool that a test loads.
fn subject(name: &str, generation: &Arc<Generation>, trust: &Trust) -> Result<TestSubject, ToolError> {
    let loaded = generation.find_tool(name)?;
    let script = match &loaded.script {
        ScriptState::Ready(script) => Arc::clone(script),
        ScriptState::Broken(error) => return Err(error.clone()),
        ScriptState::None => {
            let message = format!("`{name}` is an exit tool and cannot be called");
            return Err(ToolError::new(ToolErrorKind::UnknownTool, message));
        }
    };
    let entry = Arc::clone(loaded.entry());
    let validating = Arc::clone(&entry);
    // Put all violations in the message, because tests compare it.
    let validate = move |value| {
        accept_arguments(&validating, value).map_err(|error| match error.details.as_deref() {
            Some(more) => {
                let message = format!("{}; {}", error.message, more.replace('\n', "; "));
                ToolError { message, details: None, ..error }
            }
            None => error,
        })
    };
    let trust = trust.clone();
    Ok(TestSubject {
        script,
        entry,
        validate: Arc::new(validate),
        authorize: Arc::new(move |script| trust.allow(script)),
    })
}

/// The work for one result.
enum Job<'f> {
    Test {
        file: &'f TestFile,
        index: usize,
        test: TestName,
    },
    /// A file or test that cannot run.
    Failed {
        file: &'f TestFile,
        test: TestName,
        failure: TestFailure,
    },
}

fn jobs_of<'f>(
    file: &'f TestFile,
    listed: Result<Vec<TestName>, TestFailure>,
    filter: Option<&str>,
) -> Vec<Job<'f>> {
    let whole = |name: &str| TestName { name: String::from(name), line: 1 };
    let tests = match listed {
        Ok(tests) => tests,
        Err(failure) => return vec![Job::Failed { file, test: whole("loads"), failure }],
    };
    let name_of_file =
        Path::new(&file.script.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_selected =
        |name: &str| filter.is_none_or(|part| name.contains(part) || name_of_file.contains(part));
    if tests.is_empty() {
        let message = "no test in this file; write test(\"name\", function() … end)";
        let failure = failed(message, 1);
        let test = whole("has tests");
        return if is_selected("") { vec![Job::Failed { file, test, failure }] } else { Vec::new() };
    }
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut jobs = Vec::new();
    for (index, test) in tests.into_iter().enumerate() {
        let earlier = first.get(&test.name).copied();
        first.entry(test.name.clone()).or_insert(test.line);
        if !is_selected(&test.name) {
            continue;
        }
        jobs.push(match earlier {
            Some(line) => {
                let message = format!("duplicate test name, first used in line {line}; the test was not run");
                let failure = failed(&message, test.line);
                Job::Failed { file, test, failure }
            }
            None => Job::Test { file, index, test },
        });
    }
    jobs
}

fn failed(message: &str, line: usize) -> TestFailure {
    TestFailure { kind: "load", line: Some(line), message: String::from(message), details: Vec::new() }
}

impl Job<'_> {
    /// Returns a result without an outcome.
    fn not_run(&self) -> TestResult {
        match self {
            Self::Test { file, test, .. } | Self::Failed { file, test, .. } => result(file, test, None),
        }
    }

    fn run(&self, timeout: Duration) -> TestResult {
        match self {
            Self::Test { file, index, test } => {
                let end = run_test(file, *index, timeout);
                TestResult {
                    called: end.tools,
                    log: end.log.iter().map(script_line).collect(),
                    elapsed: Some(end.elapsed),
                    ..result(file, test, end.failure.as_ref())
                }
            }
            Self::Failed { file, test, failure } => result(file, test, Some(failure)),
        }
    }
}

fn result(file: &TestFile, test: &TestName, failure: Option<&TestFailure>) -> TestResult {
    let source = String::from_utf8_lossy(&file.script.source);
    let range = |line| SourceRange::of_line(&file.script.file, &source, line);
    let failure = failure.map(|failure| Failure {
        kind: failure.kind,
        at: range(failure.line.unwrap_or(test.line)),
        message: failure.message.clone(),
        details: failure.details.clone(),
    });
    TestResult { failure, ..TestResult::new(Kind::Script, &test.name, range(test.line)) }
}

/// Runs `work` for each item on all cores and returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Result<Vec<R>, CliError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::default();
    let take = || {
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    let runtime = runtime()?;
    // Listen before any test runs, so that a signal cannot leave programs behind.
    let mut signals = {
        let _entered = runtime.enter();
        Signals::listen().map_err(CliError::Runtime)?
    };
    std::thread::scope(|scope| {
        let (ended, mut end) = tokio::sync::mpsc::channel::<()>(1);
        for number in 0..threads {
            let ended = ended.clone();
            let work = || {
                take();
                drop(ended);
            };
            std::thread::Builder::new()
                .name(format!("deftool-test-{number}"))
                .stack_size(STACK)
                .spawn_scoped(scope, work)
                .map_err(CliError::Runtime)?;
        }
        drop(ended);
        runtime.block_on(async {
            tokio::select! {
                // Nothing is sent: the channel closes when the last thread ends.
                _ = end.recv() => {}
                () = signals.next() => {
                    // Remove the files of running tests without waiting for them.
                    kill_programs();
                    remove_test_folders();
                    std::process::exit(i32::from(interrupt::exit_code()));
                }
            }
        });
        Ok::<(), CliError>(())
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
