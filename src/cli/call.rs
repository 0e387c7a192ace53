//! `deftool call`: one validated call of one tool, no model.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::args::CallOptions;
use super::interrupt::Signals;
use super::output::{clean, print_json, say, say_error, say_kind};
use super::rerun::Rerun;
use super::trust::ProjectTrust;
use super::{CliError, Exit, Place, arguments, engine, locate};
use crate::project::{Generation, GenerationRunner, Load, LoadOptions, ScriptState, find_root, wishes};
use crate::script::DEFAULT_MEMORY;
use crate::tool::{CallContext, Meter, ToolCall, ToolError, ToolRunner, Usage};

/// The contract of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
    /// All of it, from reading the project on.
    elapsed_ms: f64,
    timing: Timing,
    /// Absent where no script ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

/// Where the time went.
#[allow(clippy::struct_field_names)] // the unit is part of the contract
#[derive(Serialize)]
struct Timing {
    /// Reading and checking the project.
    project_ms: f64,
    /// Holding the arguments against the schema.
    validation_ms: f64,
    /// The script's top level.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_ms: Option<f64>,
    /// Its function, waiting included.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ms: Option<f64>,
}

/// Of the script's state.
#[derive(Serialize)]
struct Memory {
    /// The most that it was seen to hold, looked at every millisecond; small values fit into what a new state has
    /// already, and are 0.
    peak_bytes: u64,
    limit_bytes: u64,
}

/// One call and what it took.
struct Called {
    outcome: Result<Value, ToolError>,
    elapsed: Duration,
    project: Duration,
    validation: Duration,
    usage: Option<Usage>,
    limit: u64,
}

pub(super) fn run(options: &CallOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let text = match arguments::read_text(&options.tool, &options.arguments) {
        Ok(text) => text,
        Err(error) => {
            let none = Duration::ZERO;
            let called = Called {
                outcome: Err(error),
                elapsed: none,
                project: none,
                validation: none,
                usage: None,
                limit: 0,
            };
            tell(&called, options.json, options.time);
            return Ok(Exit::Failed);
        }
    };
    if options.watch {
        return watch(options, &place, text);
    }
    let root = find_root(&place.folder)?;
    let generation = Generation::load(&root, &place.current, None)?;
    let Some(called) = call(options, &text, &root, generation)? else { return Ok(Exit::Interrupted) };
    tell(&called, options.json, options.time);
    Ok(if called.outcome.is_ok() { Exit::Clean } else { Exit::Failed })
}

/// The same call on every save, each on the project as it is then.
fn watch(options: &CallOptions, place: &Place, text: String) -> Result<Exit, CliError> {
    let root = find_root(&place.folder)?;
    let options = options.clone();
    let json = options.json;
    let paths = [root.clone()];
    let report = move |load: Load, started| {
        match call(&options, &text, &root, Generation::first(load, started)) {
            Ok(Some(called)) => tell(&called, options.json, true),
            // Ctrl-C ends the watch as well.
            Ok(None) => {}
            Err(error) => say_error(&error.to_string()),
        }
        String::new()
    };
    let how = LoadOptions { with_scripts: true, ..LoadOptions::default() };
    Rerun { how, clears_screen: !json, report }.watch(&paths, place)
}

/// `None`: interrupted.
fn call(
    options: &CallOptions,
    text: &str,
    root: &Path,
    generation: Generation,
) -> Result<Option<Called>, CliError> {
    let started = Instant::now();
    let project = generation.took;
    let mut called = Called {
        outcome: Ok(Value::Null),
        elapsed: project,
        project,
        validation: Duration::ZERO,
        usage: None,
        limit: DEFAULT_MEMORY,
    };
    let prepared = arguments::find_tool(&options.tool, &generation).and_then(|loaded| {
        if let ScriptState::Ready(script) = &loaded.script {
            called.limit = script.memory.unwrap_or(DEFAULT_MEMORY);
        }
        let entry = loaded.entry();
        let before = Instant::now();
        let arguments = arguments::parse(entry, text);
        called.validation = before.elapsed();
        arguments
    });
    let arguments = match prepared {
        Ok(arguments) => arguments,
        Err(error) => {
            let (outcome, elapsed) = (Err(error), project + started.elapsed());
            return Ok(Some(Called { outcome, elapsed, ..called }));
        }
    };
    let runnable =
        generation.tool(&options.tool).filter(|loaded| matches!(loaded.script, ScriptState::Ready(_)));
    let wanted = wishes(&generation.load, runnable);
    let trust = ProjectTrust::settle(root, wanted, options.scripts.trust)?.of(&generation);
    let scripts = engine::start(&options.scripts)?;
    let runner = GenerationRunner { generation: Arc::new(generation), scripts, trust };
    let call = ToolCall { id: String::from("call"), name: options.tool.clone(), arguments };
    let meter = Arc::new(Meter::default());
    let context = CallContext { meter: Some(Arc::clone(&meter)), ..CallContext::default() };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(async {
        // Before anything runs that a signal must not leave behind.
        let mut signals = Signals::listen()?;
        Ok(tokio::select! {
            outcome = runner.run(call, context) => Some(outcome),
            () = signals.next() => None,
        })
    });
    let outcome = outcome.map_err(CliError::Runtime)?;
    // A file operation of a script that was stopped is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let (elapsed, usage) = (project + started.elapsed(), meter.usage());
    Ok(outcome.map(|outcome| Called { outcome, elapsed, usage, ..called }))
}

fn tell(called: &Called, json: bool, time: bool) {
    let Called { outcome, usage, .. } = called;
    if json {
        let report = Report {
            ok: outcome.is_ok(),
            result: outcome.as_ref().ok(),
            error: outcome.as_ref().err(),
            elapsed_ms: millis(called.elapsed),
            timing: Timing {
                project_ms: millis(called.project),
                validation_ms: millis(called.validation),
                load_ms: usage.map(|usage| millis(usage.load)),
                run_ms: usage.map(|usage| millis(usage.run)),
            },
            memory: usage.map(|usage| Memory { peak_bytes: usage.memory, limit_bytes: called.limit }),
        };
        print_json(&report, false);
        return;
    }
    match outcome {
        Ok(result) => print_json(result, true),
        Err(error) => {
            say_kind(error.kind.as_str(), &error.message);
            if let Some(details) = &error.details {
                say(&clean(details));
            }
        }
    }
    if time {
        say(&describe(called));
    }
}

/// `time   12.3 ms: project 11.9, validation 0.1, top level 0.05, function 0.2`, and the memory below it.
fn describe(called: &Called) -> String {
    let mut text = format!(
        "time   {} ms: project {}, validation {}",
        millis(called.elapsed),
        millis(called.project),
        millis(called.validation)
    );
    if let Some(usage) = called.usage {
        let _ = write!(
            text,
            ", top level {}, function {}\nmemory {} at most, of {}",
            millis(usage.load),
            millis(usage.run),
            peak(usage.memory),
            bytes(called.limit)
        );
    }
    text
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// What a call held at most: small values fit into memory that the state has already.
pub(super) fn peak(number: u64) -> String {
    if number < PAGE { format!("less than {}", bytes(PAGE)) } else { bytes(number) }
}

/// What the allocator takes at a time for small values, in bytes.
const PAGE: u64 = 16 << 10;

/// `12.3 KiB`.
#[allow(clippy::cast_precision_loss)] // three digits are shown
pub(super) fn bytes(number: u64) -> String {
    let number = number as f64;
    match number {
        _ if number >= 1_048_576.0 => format!("{:.1} MiB", number / 1_048_576.0),
        _ if number >= 1024.0 => format!("{:.1} KiB", number / 1024.0),
        _ => format!("{number} B"),
    }
}
