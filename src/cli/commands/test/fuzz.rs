//! `deftool test --fuzz`: calls tools with arguments generated from their schemas.
//!
//! The schema must reject invalid arguments. For valid arguments, the script must return JSON or end with
//! `tool.failure`; missing permissions and integers beyond 2^53 are not failures either. A failure is shrunk to the
//! smallest arguments that cause it and reported with a command that reproduces it. The arguments depend only on the
//! seed and the tool's name, so they do not change with a filter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use deftool_lang::schema::{Fuzzer, ToolEntry, shrink};
use deftool_lang::text::{Location, one_line};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, check_result};
use deftool_project::{Load, LoadedTool, ScriptState, Trust, load, permission_requests, resolve_inputs};
use deftool_script::{DEFAULT_TIMEOUT, Script, ScriptRunner};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use super::TestOptions;
use super::report::print_results;
use super::run::{Failure, FuzzSummary, Kind, SourceRange, TestResult, TestRun};
use crate::cli::options::parse_duration;
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine;
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::permissions::effects;
use crate::cli::project::trust::ProjectTrust;
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::eprint_line;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fuzzing")]
pub(in crate::cli) struct FuzzOptions {
    /// Call tools with arguments generated from their schemas, instead of running examples and tests; skips tools that
    /// may write, run programs or use the network
    #[arg(long, conflicts_with = "watch")]
    pub(in crate::cli) fuzz: bool,
    /// Also fuzz tools that may write, run programs or use the network
    #[arg(long, requires = "fuzz")]
    pub(in crate::cli) fuzz_all: bool,
    /// Number of generated calls per tool
    #[arg(long, value_name = "N", requires = "fuzz", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) cases: u32,
    /// Seed of the generated arguments; the same seed generates the same arguments [default: random]
    #[arg(long, value_name = "N", requires = "fuzz")]
    pub(in crate::cli) seed: Option<u64>,
    /// Time limit per tool
    #[arg(long, value_name = "DURATION", requires = "fuzz", default_value = "30s", value_parser = parse_duration)]
    pub(in crate::cli) fuzz_time: Duration,
}

/// Time limit of a call; the tool's own limit may be shorter.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of different failures per tool.
const MAX_FAILURES: usize = 5;
/// Maximum number of timeouts per tool.
const MAX_TIMEOUTS: usize = 3;
/// Number of valid arguments that invalid arguments are derived from.
const INVALID_SOURCES: usize = 20;
/// Maximum number of calls to shrink one failure.
const MAX_SHRINK_CALLS: usize = 500;
/// Time limit to shrink one failure.
const SHRINK_TIME: Duration = Duration::from_secs(10);

pub(super) fn run(options: &TestOptions, dirs: &CommandDirs) -> Result<Exit, CliError> {
    let loaded = load(&resolve_inputs(&options.paths, &dirs.project)?, &dirs.current)?;
    let filter = options.filter.as_deref();
    // Report errors of the specs as without --fuzz.
    let mut run = TestRun::of(&loaded, filter, false);
    run.results.clear();
    let is_selected =
        |tool: &&LoadedTool| filter.is_none_or(|part| tool.tool.name.value.contains(part)) && tool.tool.valid;
    let selected: Vec<&LoadedTool> = loaded.tools.iter().map(AsRef::as_ref).filter(is_selected).collect();
    if !run.has_tools {
        let message = filter.map_or_else(
            || String::from("no tools to fuzz"),
            |filter| format!("no tool name contains `{filter}`"),
        );
        return Err(CliError::Usage(message));
    }
    let seed = options.fuzzing.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
    let runtime = runtime()?;
    let is_run = |tool: &&LoadedTool| options.fuzzing.fuzz_all || effects(&tool.tool.permissions).is_empty();
    let trusted = resolve_trust(&loaded, selected.iter().copied().filter(is_run), options.scripts.trust)?;
    let scripts = engine::start_quiet(&options.scripts)?;
    let signals = {
        let _entered = runtime.enter();
        Signals::listen().map_err(CliError::Runtime)?
    };
    let mut fuzzing = Fuzzing {
        options: &options.fuzzing,
        seed,
        scripts: &scripts,
        runtime: &runtime,
        loaded: &loaded,
        trusted,
        summary: FuzzSummary { seed, ..FuzzSummary::default() },
        signals,
        is_interrupted: false,
        stopped_early: 0,
    };
    for tool in selected {
        let effects = effects(&tool.tool.permissions);
        if !effects.is_empty() && !options.fuzzing.fuzz_all {
            fuzzing.summary.left_out += 1;
            let name = &tool.tool.name.value;
            eprint_line(&format!("skipped: {name} {effects}; use --fuzz-all to include it"));
            continue;
        }
        run.results.extend(fuzzing.fuzz(tool));
        if fuzzing.is_interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    run.summary.fuzz = Some(fuzzing.summary);
    run.summary.tools = 0;
    run.count();
    print_results(&run, &loaded.sources, options.format.value);
    // Do not wait for the remaining work of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(if run.summary.fails() { Exit::Failed } else { Exit::Clean })
}

/// Resolves the granted permissions of each project of `tools`.
fn resolve_trust<'l>(
    loaded: &'l Load,
    tools: impl Iterator<Item = &'l LoadedTool>,
    trusts_all: bool,
) -> Result<BTreeMap<&'l Path, Trust>, CliError> {
    let mut of_project: BTreeMap<&Path, Vec<&LoadedTool>> = BTreeMap::new();
    for tool in tools {
        // Tools outside of projects have no scripts.
        if let Some(root) = loaded.root_of(tool.tool.source) {
            of_project.entry(root).or_default().push(tool);
        }
    }
    let resolved = of_project.into_iter().map(|(root, tools)| {
        Ok((root, ProjectTrust::resolve(root, permission_requests(loaded, tools), trusts_all)?.current()))
    });
    resolved.collect()
}

/// The state of a fuzzing run.
struct Fuzzing<'f> {
    options: &'f FuzzOptions,
    seed: u64,
    scripts: &'f ScriptRunner,
    runtime: &'f Runtime,
    loaded: &'f Load,
    /// The granted permissions by project root.
    trusted: BTreeMap<&'f Path, Trust>,
    summary: FuzzSummary,
    /// Also checked between calls.
    signals: Signals,
    is_interrupted: bool,
    /// Calls of the current tool that exceeded [`CALL_LIMIT`], which is shorter than the tool's own limit.
    stopped_early: usize,
}

/// A failure found by fuzzing.
struct FuzzFailure {
    kind: &'static str,
    message: String,
    arguments: Value,
    details: Vec<String>,
}

impl Fuzzing<'_> {
    /// Fuzzes one tool. Returns one result, or one per failure.
    fn fuzz(&mut self, tool: &LoadedTool) -> Vec<TestResult> {
        let started = Instant::now();
        let name = &tool.tool.name.value;
        let at = SourceRange::of(
            Location { source: tool.tool.source, span: tool.tool.name.span },
            &self.loaded.sources,
        );
        let found = self.find(tool);
        self.summary.tools += 1;
        self.summary.failed += usize::from(!found.is_empty());
        let result = |index: usize| TestResult {
            tool: Some(name.clone()),
            elapsed: Some(started.elapsed()),
            ..TestResult::new(
                Kind::Fuzz,
                if index == 0 { String::from("fuzz") } else { format!("fuzz {}", index + 1) },
                at.clone(),
            )
        };
        if found.is_empty() {
            return vec![result(0)];
        }
        let results = found.into_iter().enumerate().map(|(index, found)| {
            let command = format!("deftool call {name} {}", shell_quote(&found.arguments));
            let details = [command, format!("seed {}", self.seed)].into_iter().chain(found.details).collect();
            let failure = Failure { kind: found.kind, at: at.clone(), message: found.message, details };
            TestResult { failure: Some(failure), ..result(index) }
        });
        results.collect()
    }

    /// Calls a tool with generated arguments and returns its failures.
    fn find(&mut self, tool: &LoadedTool) -> Vec<FuzzFailure> {
        let entry = tool.entry();
        let empty = Value::Object(Map::new());
        let parameters = entry.definition.pointer("/function/parameters").unwrap_or(&empty);
        let seed = tool
            .tool
            .name
            .value
            .bytes()
            .fold(self.seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut fuzzer = Fuzzer::new(parameters, &entry.validator, seed);
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        let script = match &tool.script {
            ScriptState::Ready(script) => Some((script, self.trust_of(tool))),
            // An exit tool has no script, only a schema.
            ScriptState::None => None,
            ScriptState::Broken(error) => {
                return vec![FuzzFailure {
                    kind: error.kind.as_str(),
                    message: error.message.clone(),
                    arguments: empty,
                    details: Vec::new(),
                }];
            }
        };
        let deadline = Instant::now() + self.options.fuzz_time;
        let mut timeouts = 0;
        self.stopped_early = 0;
        for number in 0..self.options.cases as usize {
            let is_enough = found.len() >= MAX_FAILURES || timeouts + self.stopped_early >= MAX_TIMEOUTS;
            self.check_interrupt();
            if Instant::now() >= deadline || is_enough || self.is_interrupted {
                break;
            }
            let Some(arguments) = fuzzer.valid(number) else {
                if number == 0 {
                    let name = &tool.tool.name.value;
                    eprint_line(&format!("skipped: {name}: cannot generate valid arguments from its schema"));
                }
                break;
            };
            if number < INVALID_SOURCES {
                for wrong in fuzzer.invalid(&arguments) {
                    self.summary.wrong += 1;
                    if entry.validator.is_valid(&wrong.value) && known.insert(without_indices(&wrong.reason))
                    {
                        let message =
                            format!("the schema accepts invalid arguments: {}", one_line(wrong.reason));
                        found.push(FuzzFailure {
                            kind: "schema",
                            message,
                            arguments: wrong.value,
                            details: Vec::new(),
                        });
                    }
                }
            }
            let Some((script, trust)) = &script else { continue };
            let Some(error) = self.call(script, entry, trust, &arguments) else { continue };
            let key = signature(&error);
            timeouts += usize::from(error.kind == ToolErrorKind::Timeout);
            if self.is_interrupted || !known.insert(key.clone()) {
                continue;
            }
            let enough = Instant::now() + SHRINK_TIME;
            let smallest = shrink(arguments, MAX_SHRINK_CALLS, |smaller| {
                Instant::now() < enough
                    && entry.validator.is_valid(&Value::Object(smaller.clone()))
                    && self.call(script, entry, trust, smaller).is_some_and(|error| signature(&error) == key)
            });
            // Report the error of the smallest arguments.
            let error = self.call(script, entry, trust, &smallest).unwrap_or(error);
            let lines = error.details.iter().flat_map(|details| details.lines());
            found.push(FuzzFailure {
                kind: error.kind.as_str(),
                message: format!("{}: {}", error.kind, one_line(error.message.clone())),
                arguments: Value::Object(smallest),
                details: lines.skip(1).map(str::to_owned).collect(),
            });
        }
        if self.stopped_early > 0 {
            let (name, calls) =
                (&tool.tool.name.value, deftool_lang::text::count(self.stopped_early, "call"));
            let seconds = CALL_LIMIT.as_secs();
            eprint_line(&format!("note: {name}: {calls} exceeded {seconds} s, the time limit of fuzzing"));
        }
        found
    }

    /// Checks for a signal between calls. Exit tools are only validated, so they have no call to interrupt.
    fn check_interrupt(&mut self) {
        self.is_interrupted |= self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.signals.next() => true,
                () = tokio::task::yield_now() => false,
            }
        });
    }

    fn trust_of(&self, tool: &LoadedTool) -> Trust {
        let root = self.loaded.root_of(tool.tool.source);
        let nothing = || Trust::Only(Arc::default());
        root.and_then(|root| self.trusted.get(root)).cloned().unwrap_or_else(nothing)
    }

    /// Calls the script and returns the error, unless the error is permitted.
    fn call(
        &mut self,
        script: &Arc<Script>,
        entry: &ToolEntry,
        trust: &Trust,
        arguments: &Map<String, Value>,
    ) -> Option<ToolError> {
        if self.is_interrupted {
            return None;
        }
        // A granted path may resolve to a different file now.
        if let Err(error) = trust.allow(script) {
            return Some(error);
        }
        self.summary.calls += 1;
        let arguments = arguments.clone().into();
        let call = ToolCall { id: String::from("fuzz"), name: script.tool.clone(), arguments };
        let own = script.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let limit = own.min(CALL_LIMIT);
        let context = CallContext { timeout: Some(limit), ..CallContext::default() };
        let ended = self.runtime.block_on(async {
            tokio::select! {
                ended = self.scripts.call(Arc::clone(script), call, context) => Some(ended),
                () = self.signals.next() => None,
            }
        });
        let Some(ended) = ended else {
            self.is_interrupted = true;
            return None;
        };
        if limit < own && ended.as_ref().is_err_and(|error| error.kind == ToolErrorKind::Timeout) {
            self.stopped_early += 1;
            return None;
        }
        ended.and_then(|result| check_result(entry, result)).err().filter(|error| match error.kind {
            // Intended by the script, or raised by the runtime before it ran.
            ToolErrorKind::Failure
            | ToolErrorKind::ErrorResult
            | ToolErrorKind::InvalidArguments
            | ToolErrorKind::Permission => false,
            ToolErrorKind::UnknownTool
            | ToolErrorKind::Load
            | ToolErrorKind::Script
            | ToolErrorKind::Timeout
            | ToolErrorKind::Memory
            | ToolErrorKind::Unserialisable
            | ToolErrorKind::InvalidResult
            | ToolErrorKind::Canceled
            | ToolErrorKind::Interrupted
            | ToolErrorKind::Internal => true,
        })
    }
}

/// Returns a key that failures with the same cause share: the kind and the line.
fn signature(error: &ToolError) -> String {
    let location = error.message.split(": ").next().unwrap_or_default();
    match error.kind {
        ToolErrorKind::Timeout | ToolErrorKind::Memory => error.kind.to_string(),
        ToolErrorKind::Unserialisable | ToolErrorKind::InvalidResult => {
            format!("{} {}", error.kind, without_indices(error.path.as_deref().unwrap_or_default()))
        }
        ToolErrorKind::Script
        | ToolErrorKind::Load
        | ToolErrorKind::UnknownTool
        | ToolErrorKind::Canceled
        | ToolErrorKind::Interrupted
        | ToolErrorKind::Internal
        | ToolErrorKind::Failure
        | ToolErrorKind::ErrorResult
        | ToolErrorKind::InvalidArguments
        | ToolErrorKind::Permission => format!("{} {location}", error.kind),
    }
}

/// Removes the array indices from a path: `.items[3].name` becomes `.items[].name`.
fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('[');
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// Quotes arguments for a shell. Hidden characters are escaped.
fn shell_quote(arguments: &Value) -> String {
    let json = arguments.to_string();
    let mut text = String::from("'");
    for character in json.chars() {
        match character {
            '\'' => text.push_str("'\\''"),
            _ if !deftool_lang::text::is_readable(character) => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            other => text.push(other),
        }
    }
    text.push('\'');
    text
}
