//! `deftool test --fuzz`: the tools called with arguments made from their schemas.
//!
//! Wrong arguments must be refused by the schema; on valid ones a script must end: with a result that is JSON, or with
//! `tool.failure`. What does not is a failure, shrunk to the smallest arguments that do it still, with the command that
//! shows it. What the spec does not allow, and an integer beyond 2^53, a script may refuse. The seed and the tool's name
//! say what is made, so that a filter changes nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use super::super::args::{FuzzOptions, TestOptions};
use super::super::interrupt::Signals;
use super::super::output::say;
use super::super::trust::ProjectTrust;
use super::super::{CliError, Exit, Place as Start, engine};
use super::report::print_results;
use super::run::{Failure, FuzzSummary, Kind, Place, TestResult, TestRun};
use crate::project::{Load, LoadedTool, ScriptState, Trust, load, resolve_inputs, wishes};
use crate::schema::{Fuzzer, shrink};
use crate::script::{DEFAULT_TIMEOUT, Script, ScriptRunner};
use crate::spec::Permissions;
use crate::text::{Location, one_line};
use crate::tool::{CallContext, ToolCall, ToolError, ToolErrorKind};

/// The longest a call may take; a tool's own limit may be shorter.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Most different failures of one tool.
const MAX_FAILURES: usize = 5;
/// So many calls that do not end are enough of a tool: each takes as long as it may.
const MAX_TIMEOUTS: usize = 3;
/// Of how many valid arguments wrong ones are made.
const WRONG_FROM: usize = 20;
/// Most calls to shrink one failure, and the most time for it.
const SHRINKING: usize = 500;
const SHRINKING_TIME: Duration = Duration::from_secs(10);

pub(super) fn run(options: &TestOptions, place: &Start) -> Result<Exit, CliError> {
    let loaded = load(&resolve_inputs(&options.paths, &place.folder)?, &place.current)?;
    let filter = options.filter.as_deref();
    // What is wrong in the specs is told as without --fuzz.
    let mut run = TestRun::of(&loaded, filter);
    run.results.clear();
    let is_chosen =
        |tool: &&LoadedTool| filter.is_none_or(|part| tool.tool.name.value.contains(part)) && tool.tool.valid;
    let chosen: Vec<&LoadedTool> = loaded.tools.iter().filter(is_chosen).collect();
    if !run.is_about_a_tool {
        let message = filter.map_or_else(
            || String::from("there is no tool to fuzz"),
            |filter| format!("no tool has `{filter}` in its name"),
        );
        return Err(CliError::Usage(message));
    }
    let seed = options.fuzzing.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let is_run = |tool: &&LoadedTool| options.fuzzing.fuzz_all || effects(&tool.tool.permissions).is_empty();
    let trusted = settle(&loaded, chosen.iter().copied().filter(is_run), options.scripts.trust)?;
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
        unended: 0,
    };
    for tool in chosen {
        let effects = effects(&tool.tool.permissions);
        if !effects.is_empty() && !options.fuzzing.fuzz_all {
            fuzzing.summary.left_out += 1;
            let name = &tool.tool.name.value;
            say(&format!("left out: {name} {effects}; --fuzz-all calls it all the same"));
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
    print_results(&run, &loaded.sources, options.format);
    // What a stopped script left behind is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(if run.summary.fails() { Exit::Failed } else { Exit::Clean })
}

/// What the projects of `tools` are trusted with, each settled by itself.
fn settle<'l>(
    loaded: &'l Load,
    tools: impl Iterator<Item = &'l LoadedTool>,
    trusts_all: bool,
) -> Result<BTreeMap<&'l Path, Trust>, CliError> {
    let mut of_project: BTreeMap<&Path, Vec<&LoadedTool>> = BTreeMap::new();
    for tool in tools {
        // Outside of a project there are no scripts.
        if let Some(root) = loaded.root_of(tool.tool.source) {
            of_project.entry(root).or_default().push(tool);
        }
    }
    let settled = of_project.into_iter().map(|(root, tools)| {
        Ok((root, ProjectTrust::settle(root, wishes(loaded, tools), trusts_all)?.settled()))
    });
    settled.collect()
}

/// What a tool may do to the world, as in `may write and run programs`; empty: nothing.
pub(in crate::cli) fn effects(permissions: &Permissions) -> String {
    let mut may = Vec::new();
    for (list, what) in [
        (&permissions.write, "write"),
        (&permissions.run, "run programs"),
        (&permissions.net, "reach the network"),
    ] {
        if !list.is_empty() {
            may.push(what);
        }
    }
    if may.is_empty() { String::new() } else { format!("may {}", may.join(" and ")) }
}

struct Fuzzing<'f> {
    options: &'f FuzzOptions,
    seed: u64,
    scripts: &'f ScriptRunner,
    runtime: &'f Runtime,
    loaded: &'f Load,
    /// By the folders of the projects.
    trusted: BTreeMap<&'f Path, Trust>,
    summary: FuzzSummary,
    /// Heard between calls, too.
    signals: Signals,
    is_interrupted: bool,
    /// Calls of this tool that did not end in the time that they have here, and have more elsewhere.
    unended: usize,
}

/// What was found.
struct Found {
    kind: &'static str,
    message: String,
    arguments: Value,
    details: Vec<String>,
}

impl Fuzzing<'_> {
    /// What came of one tool: one result, or one for each failure.
    fn fuzz(&mut self, tool: &LoadedTool) -> Vec<TestResult> {
        let started = Instant::now();
        let name = &tool.tool.name.value;
        let at =
            Place::of(Location { source: tool.tool.source, span: tool.tool.name.span }, &self.loaded.sources);
        let found = self.find(tool);
        self.summary.tools += 1;
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
            let again = format!("deftool call {name} {}", quoted(&found.arguments));
            let details = [again, format!("seed {}", self.seed)].into_iter().chain(found.details).collect();
            let failure = Failure { kind: found.kind, at: at.clone(), message: found.message, details };
            TestResult { failure: Some(failure), ..result(index) }
        });
        results.collect()
    }

    fn find(&mut self, tool: &LoadedTool) -> Vec<Found> {
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
                return vec![Found {
                    kind: error.kind.as_str(),
                    message: error.message.clone(),
                    arguments: empty,
                    details: Vec::new(),
                }];
            }
        };
        let deadline = Instant::now() + self.options.fuzz_time;
        let mut timeouts = 0;
        self.unended = 0;
        for number in 0..self.options.cases as usize {
            let is_enough = found.len() >= MAX_FAILURES || timeouts + self.unended >= MAX_TIMEOUTS;
            self.look_for_interrupts();
            if Instant::now() >= deadline || is_enough || self.is_interrupted {
                break;
            }
            let Some(arguments) = fuzzer.valid(number) else {
                if number == 0 {
                    let name = &tool.tool.name.value;
                    say(&format!("left out: {name}: no valid arguments could be made of its schema"));
                }
                break;
            };
            if number < WRONG_FROM {
                for wrong in fuzzer.wrong(&arguments) {
                    self.summary.wrong += 1;
                    if entry.validator.is_valid(&wrong.value) && known.insert(wrong.why.clone()) {
                        let message =
                            format!("the schema takes what it should refuse: {}", one_line(wrong.why));
                        found.push(Found {
                            kind: "schema",
                            message,
                            arguments: wrong.value,
                            details: Vec::new(),
                        });
                    }
                }
            }
            let Some((script, trust)) = &script else { continue };
            let Some(error) = self.call(script, trust, &arguments) else { continue };
            let sign = signature(&error);
            timeouts += usize::from(error.kind == ToolErrorKind::Timeout);
            if self.is_interrupted || !known.insert(sign.clone()) {
                continue;
            }
            let enough = Instant::now() + SHRINKING_TIME;
            let smallest = shrink(arguments, SHRINKING, |smaller| {
                Instant::now() < enough
                    && entry.validator.is_valid(&Value::Object(smaller.clone()))
                    && self.call(script, trust, smaller).is_some_and(|error| signature(&error) == sign)
            });
            // What is told is of the smallest.
            let error = self.call(script, trust, &smallest).unwrap_or(error);
            let lines = error.details.iter().flat_map(|details| details.lines());
            found.push(Found {
                kind: error.kind.as_str(),
                message: format!("{}: {}", error.kind, one_line(error.message.clone())),
                arguments: Value::Object(smallest),
                details: lines.skip(1).map(str::to_owned).collect(),
            });
        }
        if self.unended > 0 {
            let (name, calls) = (&tool.tool.name.value, crate::text::count(self.unended, "call"));
            let seconds = CALL_LIMIT.as_secs();
            say(&format!(
                "note: {name}: {calls} did not end within {seconds} s, the most that each has here"
            ));
        }
        found
    }

    /// An exit tool is held against its schema alone, without a call that would be waited for.
    fn look_for_interrupts(&mut self) {
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

    /// How a call failed that should not.
    fn call(
        &mut self,
        script: &Arc<Script>,
        trust: &Trust,
        arguments: &Map<String, Value>,
    ) -> Option<ToolError> {
        if self.is_interrupted {
            return None;
        }
        // What was settled may lead elsewhere by now.
        if let Err(error) = trust.allow(script) {
            return Some(error);
        }
        self.summary.calls += 1;
        let call =
            ToolCall { id: String::from("fuzz"), name: script.tool.clone(), arguments: arguments.clone() };
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
            self.unended += 1;
            return None;
        }
        ended.err().filter(|error| match error.kind {
            // Said on purpose, or by the engine before and beside the script.
            ToolErrorKind::Failure | ToolErrorKind::InvalidArguments | ToolErrorKind::Permission => false,
            ToolErrorKind::UnknownTool
            | ToolErrorKind::Load
            | ToolErrorKind::Script
            | ToolErrorKind::Timeout
            | ToolErrorKind::Memory
            | ToolErrorKind::Unserialisable
            | ToolErrorKind::Canceled
            | ToolErrorKind::Internal => true,
        })
    }
}

/// What failures of one cause share: the kind and the line.
fn signature(error: &ToolError) -> String {
    let place = error.message.split(": ").next().unwrap_or_default();
    match error.kind {
        ToolErrorKind::Timeout | ToolErrorKind::Memory => error.kind.to_string(),
        ToolErrorKind::Unserialisable => {
            format!("{} {}", error.kind, error.path.as_deref().unwrap_or_default())
        }
        ToolErrorKind::Script
        | ToolErrorKind::Load
        | ToolErrorKind::UnknownTool
        | ToolErrorKind::Canceled
        | ToolErrorKind::Internal
        | ToolErrorKind::Failure
        | ToolErrorKind::InvalidArguments
        | ToolErrorKind::Permission => format!("{} {place}", error.kind),
    }
}

/// Arguments as a shell takes them: quoted, and without a character that a terminal obeys.
fn quoted(arguments: &Value) -> String {
    let json = arguments.to_string();
    let mut text = String::from("'");
    for character in json.chars() {
        match character {
            '\'' => text.push_str("'\\''"),
            _ if crate::text::is_control(character) || character == '\u{feff}' => {
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
