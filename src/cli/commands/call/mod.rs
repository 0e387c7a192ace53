//! `deftool call`: validates and runs one tool call without a model.

mod arguments;
mod help;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use deftool_engine::ProjectRoots;
use deftool_lang::tool::{
    Attachment, CallContext, Meter, ToolCall, ToolError, ToolOutput, ToolRunner, Usage,
};
use deftool_process::files::Readers;
use deftool_project::{
    Generation, GenerationRunner, Load, LoadOptions, ScriptState, ToolOrigin, permission_requests,
};
use deftool_script::DEFAULT_MEMORY;
use deftool_worker::TrustSource;
use serde::Serialize;
use serde_json::Value;

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine;
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::outputs::write_output;
use crate::cli::project::rerun::Rerun;
use crate::cli::project::trust::resolve;
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::{
    bytes, clean, eprint_error, eprint_failure, eprint_line, eprint_progress, notices, print_json,
    print_styled,
};
use crate::cli::worker::trace;
use arguments::ArgumentInput;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  deftool call word_count text=\"one two three\"
  deftool call word_count --help
  deftool call word_count '{\"text\": \"one\"}' --watch
  deftool call screenshot -o screen.png
  echo '{\"text\": \"one\"}' | deftool call word_count - --json"
)]
pub(in crate::cli) struct CallOptions {
    /// Name of the tool
    #[arg(required_unless_present = "help")]
    pub(in crate::cli) tool: Option<String>,
    /// Arguments: KEY=VALUE pairs, or one JSON object; `-` reads an object from stdin
    #[arg(value_name = "ARGUMENT")]
    pub(in crate::cli) arguments: Vec<String>,
    /// Print help (all options with `--help`); after the name of a tool, the help of the tool
    #[arg(short, long)]
    pub(in crate::cli) help: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    /// Write the image or audio of the result to this file
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Print the duration and the memory use
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) time: bool,
    /// Call again after each change
    #[arg(short, long)]
    pub(in crate::cli) watch: bool,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
    /// Total time, including loading the project.
    elapsed_ms: f64,
    timing: Timing,
    /// Absent if no script ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

/// The time of each phase.
#[allow(clippy::struct_field_names)] // the unit is part of the format
#[derive(Serialize)]
struct Timing {
    /// Loading and checking the project.
    project_ms: f64,
    /// Validating the arguments.
    validation_ms: f64,
    /// Running the script's top level.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_ms: Option<f64>,
    /// Running the script's function, including waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ms: Option<f64>,
}

/// Memory use of the script's Lua state.
#[derive(Serialize)]
struct Memory {
    /// Peak memory, sampled every millisecond. 0 if the values fit into the memory of a new state.
    peak_bytes: u64,
    limit_bytes: u64,
}

/// The result of a call and its resource use.
struct CallResult {
    outcome: Result<ToolOutput, ToolError>,
    elapsed: Duration,
    project: Duration,
    validation: Duration,
    usage: Option<Usage>,
    limit: u64,
}

pub(in crate::cli) fn run(options: &CallOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let Some(tool) = options.tool.as_deref() else {
        print_styled(&help::of_command("call", std::env::args_os().any(|word| word == "--help")));
        return Ok(Exit::Clean);
    };
    if options.help {
        return help::print(tool, &dirs);
    }
    let input = match arguments::read_input(tool, &options.arguments) {
        Ok(input) => input,
        Err(error) => return Ok(print_failure(options, error)),
    };
    if options.watch {
        return watch(options, &dirs, tool, input);
    }
    let roots = ProjectRoots::find(&dirs.project, &notices())?;
    let (root, generation) = (roots.trusted_folder(), roots.load_tool(&dirs.current, tool)?);
    let Some(called) = call(options, (tool, &input), root, generation)? else {
        return Ok(Exit::Interrupted);
    };
    Ok(report(&called, options, options.time))
}

/// Writes the image or audio of the result to the file of the options, if they have one, and prints the rest.
fn report(called: &CallResult, options: &CallOptions, time: bool) -> Exit {
    let json = options.format.is_json();
    let (Ok(output), Some(file)) = (&called.outcome, &options.output) else {
        print_result(called, json, time);
        return if called.outcome.is_ok() { Exit::Clean } else { Exit::Failed };
    };
    let written = write_media(output, file);
    let is_whole = written.as_ref().is_ok_and(|media| output.value == media.line());
    if json || !is_whole {
        print_result(called, json, time);
    } else if time {
        eprint_line(&describe(called));
    }
    match written {
        Ok(media) => {
            let (name, line) = (clean(&file.display().to_string()), media.line());
            let rest = if is_whole { "" } else { "; the rest of the result is on stdout" };
            eprint_progress(&format!("wrote {name} ({}){rest}", line.trim_matches(['[', ']'])));
            Exit::Clean
        }
        Err(message) => {
            eprint_error(&message);
            Exit::Failed
        }
    }
}

/// Writes the only image or audio of a result. The error is a message.
fn write_media<'o>(output: &'o ToolOutput, file: &Path) -> Result<&'o Attachment, String> {
    let media = output.attachments.as_slice();
    if media.len() > 1 {
        return Err(format!("--output takes one image or audio, and the result has {}", media.len()));
    }
    let only = media.first().and_then(|only| Some((only, only.bytes()?)));
    let (only, bytes) = only.ok_or("--output: the result has no image or audio")?;
    write_output(file, bytes, Readers::Default)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(only)
}

/// Prints the failure of a call that did not run.
fn print_failure(options: &CallOptions, error: ToolError) -> Exit {
    let none = Duration::ZERO;
    let (outcome, usage) = (Err(error), None);
    let called = CallResult { outcome, elapsed: none, project: none, validation: none, usage, limit: 0 };
    print_result(&called, options.format.is_json(), options.time);
    Exit::Failed
}

/// Repeats the call after each change of the project.
fn watch(
    options: &CallOptions,
    dirs: &CommandDirs,
    tool: &str,
    input: ArgumentInput,
) -> Result<Exit, CliError> {
    let roots = ProjectRoots::find(&dirs.project, &notices())?;
    let (options, tool) = (options.clone(), tool.to_owned());
    let json = options.format.is_json();
    let generation = roots.load_tool(&dirs.current, &tool)?;
    let is_user = generation.tool(&tool).is_some_and(|loaded| loaded.origin == ToolOrigin::User);
    let root = if is_user { roots.user() } else { None }.unwrap_or(roots.main_root()).to_owned();
    let (paths, current, folder) = ([root], dirs.current.clone(), roots.trusted_folder().to_owned());
    let user = roots.current();
    let load_options =
        LoadOptions { with_scripts: true, user: is_user.then(|| user.clone()), ..LoadOptions::default() };
    let report = move |load: Load, started| {
        let loaded = Generation::first(load, started);
        let generation = if is_user {
            Generation::empty().beside(Arc::new(loaded))
        } else {
            roots.join(loaded, |root| Generation::load_tool(root, &current, &tool, Some(&user)))
        };
        match call(&options, (&tool, &input), &folder, generation) {
            Ok(Some(called)) => {
                report(&called, &options, true);
            }
            // Ctrl-C also ends the watch.
            Ok(None) => {}
            Err(error) => eprint_error(&error.to_string()),
        }
        String::new()
    };
    Rerun { options: load_options, clears_screen: !json, report }.watch(&paths, dirs)
}

/// Runs one call. `folder`: the folder whose trust applies. Returns `None` if it was interrupted.
fn call(
    options: &CallOptions,
    (tool, input): (&str, &ArgumentInput),
    folder: &Path,
    generation: Generation,
) -> Result<Option<CallResult>, CliError> {
    let started = Instant::now();
    let project = generation.took;
    let mut called = CallResult {
        outcome: Ok(ToolOutput::default()),
        elapsed: project,
        project,
        validation: Duration::ZERO,
        usage: None,
        limit: DEFAULT_MEMORY,
    };
    let prepared = generation.find_tool(tool).and_then(|loaded| {
        if let ScriptState::Ready(script) = &loaded.script {
            called.limit = script.memory.unwrap_or(DEFAULT_MEMORY);
        }
        // Compile the schema before the measurement.
        loaded.entry();
        let before = Instant::now();
        let arguments = arguments::parse_input(loaded, input);
        called.validation = before.elapsed();
        arguments
    });
    let arguments = match prepared {
        Ok(arguments) => arguments,
        Err(error) => {
            let (outcome, elapsed) = (Err(error), project + started.elapsed());
            return Ok(Some(CallResult { outcome, elapsed, ..called }));
        }
    };
    let runnable = generation.tool(tool).filter(|loaded| matches!(loaded.script, ScriptState::Ready(_)));
    let wanted = permission_requests(&generation.load, runnable);
    let trust = resolve(folder, wanted, options.scripts.trust)?.of(&generation);
    let scripts = engine::start(&options.scripts)?;
    let runner = GenerationRunner { generation: Arc::new(generation), scripts, trust };
    let call = ToolCall { id: String::from("call"), name: tool.to_owned(), arguments };
    let meter = Arc::new(Meter::default());
    let context =
        CallContext { meter: Some(Arc::clone(&meter)), trace: trace::caller(), ..CallContext::default() };
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        // Listen before the script starts, so that a signal cannot leave its programs behind.
        let mut signals = Signals::listen()?;
        Ok(tokio::select! {
            outcome = runner.run(call, context) => Some(outcome),
            () = signals.next() => None,
        })
    });
    let outcome = outcome.map_err(CliError::Runtime)?;
    // Do not wait for file operations of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let (elapsed, usage) = (project + started.elapsed(), meter.usage());
    Ok(outcome.map(|outcome| CallResult { outcome, elapsed, usage, ..called }))
}

/// Prints the result; on failure, the error goes to stderr.
fn print_result(called: &CallResult, json: bool, time: bool) {
    let CallResult { outcome, usage, .. } = called;
    if json {
        let report = Report {
            ok: outcome.is_ok(),
            result: outcome.as_ref().ok().map(|output| &output.value),
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
        Ok(output) => print_json(&output.value, true),
        Err(error) => {
            eprint_failure(error.kind.as_str(), &error.message);
            if let Some(details) = &error.details {
                eprint_line(&clean(details));
            }
        }
    }
    if time {
        eprint_line(&describe(called));
    }
}

/// Describes time and memory, as in `time   12.3 ms: project 11.9, validation 0.1, top level 0.05, function 0.2`.
fn describe(called: &CallResult) -> String {
    let mut text = format!(
        "time   {} ms: project {}, validation {}",
        millis(called.elapsed),
        millis(called.project),
        millis(called.validation)
    );
    if let Some(usage) = called.usage {
        let _ = write!(
            text,
            ", top level {}, function {}\nmemory {} peak, limit {}",
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

/// Formats the peak memory of a call. Values below one page are not measurable.
pub(in crate::cli) fn peak(number: u64) -> String {
    if number < PAGE { format!("less than {}", bytes(PAGE)) } else { bytes(number) }
}

/// Allocation unit for small values, in bytes.
const PAGE: u64 = 16 << 10;
