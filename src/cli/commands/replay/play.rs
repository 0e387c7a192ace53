//! Replays recordings with their tool results, and reports one line per recording.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::spec::WorkerSpec;
use deftool_lang::text::{count, one_line};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner};
use deftool_process::files::replace_text;
use deftool_project::{Generation, find_root};
use deftool_record::{RecordedRequest, Recording, ReplayDifference, ReplayOptions, Secrets};
use deftool_worker::{ReplayTransport, SubmitRequest, Toolbox, Worker, WorkerConfig};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::ReplayOptions as Options;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::project::trust::{bios_permission_request, missing_permissions};
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, eprint_progress, paint, print_json, print_styled};
use crate::cli::worker::secrets;
use crate::cli::worker::{api_key, choose_worker, eprint_errors, eprint_omitted_tools, recordings};

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReplayState {
    /// No differences.
    Ok,
    /// The replay differs from the recording.
    Differs,
    /// The replay did not reach the end of the recording.
    Failed,
    /// The recording could not be read.
    #[serde(rename = "failed")]
    Unreadable,
    /// The replay differed, and the recorded request bodies were updated.
    Updated,
}

/// A replayed recording in the output of `--json`.
#[derive(Debug, Serialize)]
struct ReplayedRecording {
    file: String,
    state: ReplayState,
    requests: usize,
    /// HTTP requests, including retries.
    exchanges: usize,
    tool_calls: usize,
    differences: Vec<ReplayDifference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    recordings: usize,
    ok: usize,
    differs: usize,
    /// Includes unreadable recordings.
    failed: usize,
    updated: usize,
    #[serde(skip)]
    unreadable: usize,
}

#[derive(Serialize)]
struct Report<'r> {
    summary: &'r Summary,
    recordings: &'r [ReplayedRecording],
}

/// The project and settings of the replays.
struct Replayer<'o> {
    options: &'o Options,
    root: PathBuf,
    generation: Generation,
    /// The worker of `--worker`; `None` uses the recorded worker of each recording.
    worker: Option<WorkerSpec>,
    /// Secrets that are redacted in reported differences.
    secrets: Secrets,
}

pub(super) fn run(options: &Options) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let files = recordings::find(&options.paths)?;
    let replayer = Replayer::open(options, &dirs)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let mut played = Vec::new();
    let ended = runtime.block_on(async {
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        for file in files {
            let one = tokio::select! {
                one = replayer.replay(&file) => one,
                () = interrupts.next() => return Ok(false),
            };
            if !options.format.is_json() {
                print_styled(&one.describe());
            }
            played.push(one);
        }
        Ok::<bool, CliError>(true)
    });
    // Do not wait for the remaining work of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let is_complete = ended?;
    let summary = Summary::of(&played);
    if options.format.is_json() {
        print_json(&Report { summary: &summary, recordings: &played }, true);
    } else if !played.is_empty() {
        eprint_progress(&summary.describe());
    }
    Ok(match is_complete {
        false => Exit::Interrupted,
        // Nothing was replayed.
        true if summary.unreadable == summary.recordings => Exit::NotAttempted,
        true if summary.failed > 0 || (summary.differs > 0 && !options.lenient) => Exit::Failed,
        true => Exit::Clean,
    })
}

impl<'o> Replayer<'o> {
    fn open(options: &'o Options, dirs: &CommandDirs) -> Result<Self, CliError> {
        let root = find_root(&dirs.project)?;
        let generation = Generation::load(&root, &dirs.current, None)?;
        eprint_errors(&generation);
        eprint_omitted_tools(&generation);
        let named = options.worker.as_deref();
        let worker = named.map(|name| choose_worker(Some(name), None, &generation)).transpose()?;
        let secrets = secrets(&options.redact, &generation)?;
        Ok(Self { options, root, generation, worker, secrets })
    }

    /// Replays one recording.
    async fn replay(&self, file: &Path) -> ReplayedRecording {
        let mut played = ReplayedRecording {
            file: file.display().to_string(),
            state: ReplayState::Failed,
            requests: 0,
            exchanges: 0,
            tool_calls: 0,
            differences: Vec::new(),
            error: None,
        };
        if let Some(reason) = recordings::other_format(file) {
            played.error = Some(reason);
            played.state = ReplayState::Unreadable;
            return played;
        }
        let recording = match Recording::read(file) {
            Ok(recording) => recording,
            Err(error) => {
                played.error = Some(error.without_path() + recordings::creation_hint(&error));
                played.state = ReplayState::Unreadable;
                return played;
            }
        };
        let requests = recording.requests();
        played.requests = requests.len();
        played.exchanges = requests.iter().map(RecordedRequest::exchanges).sum();
        played.tool_calls = requests.iter().map(RecordedRequest::tool_calls).sum();
        let is_whole = requests.iter().all(RecordedRequest::is_whole);
        let spec = match self.worker_of(requests) {
            // The descriptions of tools may depend on the API.
            Ok(spec) => WorkerSpec { api: requests.first().map(|request| request.session.api), ..spec },
            Err(error) => {
                played.error = Some(error.to_string());
                return played;
            }
        };
        let config = match self.config_of(&spec) {
            Ok(config) => config,
            Err(why) => {
                played.error = Some(why);
                return played;
            }
        };
        let replay = Arc::new(ReplayTransport::with(recording, self.replay_options(&spec)));
        let is_cut = self.submit_all(&spec, config, &replay).await;
        played.differences = replay.differences();
        played.state = match (is_whole && !is_cut, played.differences.is_empty()) {
            (_, false) => ReplayState::Differs,
            (true, true) => ReplayState::Ok,
            (false, true) => {
                played.error = Some(String::from("the recording ends before its last request"));
                ReplayState::Failed
            }
        };
        if self.options.update && played.state == ReplayState::Differs {
            match update(file, &replay) {
                Ok(()) => played.state = ReplayState::Updated,
                Err(why) => played.error = Some(format!("not updated: {why}")),
            }
        }
        played
    }

    /// Returns the configuration of the worker.
    ///
    /// # Errors
    /// If its BIOS cannot be read, or is outside of the project and not trusted.
    fn config_of(&self, spec: &WorkerSpec) -> Result<WorkerConfig, String> {
        let bios = bios_permission_request(&self.generation.load, spec).into_iter().collect();
        if let Some(missing) = missing_permissions(&self.generation, bios).first() {
            return Err(format!("not trusted: {missing}; review the spec, then run `deftool trust grant`"));
        }
        WorkerConfig::of_project(&self.root, spec, &self.generation.load.dialects, &[])
    }

    /// Returns the worker of `--worker`, or the recorded worker.
    fn worker_of(&self, requests: &[RecordedRequest]) -> Result<WorkerSpec, CliError> {
        if let Some(worker) = &self.worker {
            return Ok(worker.clone());
        }
        let recorded = requests.first().map(|request| request.session.worker.as_str());
        choose_worker(None, recorded, &self.generation)
    }

    /// Replays all requests. Returns whether the recording ended within a reply.
    async fn submit_all(
        &self,
        spec: &WorkerSpec,
        config: WorkerConfig,
        replay: &Arc<ReplayTransport>,
    ) -> bool {
        let tools = Toolbox {
            generation: self.generation.number,
            tools: self.generation.tool_set(spec),
            runner: Arc::new(NoTools),
        };
        let worker = Worker::replay(config, Arc::new(tools), Arc::clone(replay));
        let mut is_cut = false;
        for _ in 0..replay.requests() {
            let Ok(id) = worker.submit(SubmitRequest::default()) else { break };
            if let Ok(outcome) = worker.wait(&id).await {
                is_cut |=
                    outcome.detail.as_ref().is_some_and(|detail| detail.ends_with("the recording ends here"));
            }
        }
        is_cut
    }

    fn replay_options(&self, spec: &WorkerSpec) -> ReplayOptions {
        let options = self.options;
        let mut secrets = self.secrets.clone();
        if let Some(key) = api_key(spec) {
            secrets.add_value(&key);
        }
        ReplayOptions { lenient: options.lenient || options.update, recorded_tools: true, secrets }
    }
}

/// Runs no tool.
struct NoTools;

impl ToolRunner for NoTools {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let message = "`deftool replay` runs no tools";
        std::future::ready(Err(ToolError::new(ToolErrorKind::Internal, message))).boxed()
    }
}

/// Replaces the recorded request bodies with the current bodies and marks them as updated.
///
/// # Errors
/// If anything except request bodies differs, or if a recorded body contains redacted text.
fn update(file: &Path, replay: &ReplayTransport) -> Result<(), String> {
    let differences = replay.differences();
    if let Some(other) = differences.iter().find(|difference| !difference.is_of_a_body()) {
        return Err(format!("there are differences outside of request bodies ({other}); record it again"));
    }
    let before = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let bodies: std::collections::HashMap<usize, Value> = replay.bodies().into_iter().collect();
    let mut after = String::with_capacity(before.len());
    for (index, line) in before.split_inclusive('\n').enumerate() {
        let Some(body) = bodies.get(&(index + 1)) else {
            after.push_str(line);
            continue;
        };
        let mut request: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let recorded = request.get("body").unwrap_or(&Value::Null);
        if recorded == body {
            after.push_str(line);
            continue;
        }
        if recorded.to_string().contains("[redacted") {
            return Err(format!("line {} contains redacted text; record it again", index + 1));
        }
        if let Some(members) = request.as_object_mut() {
            members.insert(String::from("body"), body.clone());
            members.insert(String::from("updated"), Value::Bool(true));
        }
        let _ = writeln!(after, "{request}");
    }
    replace_text(&PathBuf::from(file), &before, &after).map_err(|error| error.to_string())
}

impl ReplayedRecording {
    fn describe(&self) -> String {
        use anstyle::AnsiColor::{Green, Red, Yellow};
        let state = match self.state {
            ReplayState::Ok => paint("ok     ", Green),
            ReplayState::Differs => paint("differs", Red),
            ReplayState::Failed | ReplayState::Unreadable => paint("failed ", Red),
            ReplayState::Updated => paint("updated", Yellow),
        };
        let file = clean(&one_line(self.file.clone()));
        let mut text = format!("{state} {file}");
        if self.requests > 0 {
            let parts =
                [(self.requests, "request"), (self.exchanges, "exchange"), (self.tool_calls, "tool call")];
            let parts: Vec<String> = parts.into_iter().map(|(number, what)| count(number, what)).collect();
            let _ = write!(text, ": {}", parts.join(", "));
        }
        text.push('\n');
        for line in self.differences.iter().map(ToString::to_string).chain(self.error.clone()) {
            let _ = writeln!(text, "        {}", clean(&one_line(line)));
        }
        text
    }
}

impl Summary {
    fn of(played: &[ReplayedRecording]) -> Self {
        let count = |state| played.iter().filter(|one| one.state == state).count();
        Self {
            recordings: played.len(),
            ok: count(ReplayState::Ok),
            differs: count(ReplayState::Differs),
            failed: count(ReplayState::Failed) + count(ReplayState::Unreadable),
            updated: count(ReplayState::Updated),
            unreadable: count(ReplayState::Unreadable),
        }
    }

    /// Describes the results, as in `3 recordings: 2 ok, 1 differs`.
    fn describe(&self) -> String {
        let counts =
            [(self.ok, "ok"), (self.differs, "differs"), (self.failed, "failed"), (self.updated, "updated")];
        let parts: Vec<String> = counts
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| match (number, what) {
                (2.., "differs") => format!("{number} differ"),
                _ => format!("{number} {what}"),
            })
            .collect();
        format!("{}: {}", count(self.recordings, "recording"), parts.join(", "))
    }
}
