//! `deftool run`: sends one request through a worker.

mod prompt;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use deftool_record::{Recorder, Recording, ReplayOptions};
use deftool_worker::{ReplayTransport, SubmitRequest, Worker, WorkerConfig};

use crate::cli::options::{EventFormat, FormatOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, eprint_error, eprint_line, eprint_progress, shows_progress};
use crate::cli::worker;
use crate::cli::worker::approve::Approver;
use crate::cli::worker::options::{RequestOptions, WorkerOptions};
use crate::cli::worker::recordings::parse_pace;
use crate::cli::worker::secrets::secrets;
use crate::cli::worker::show::usage_line;
use crate::cli::worker::{
    FollowResult, Follower, OpenWorker, Source, api_key, close, connect, join, journal, recordings, trace,
};
use prompt::read_prompt;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool run \"What changed since yesterday?\"
  git diff | deftool run \"Review this change.\"
  deftool run \"What does this do?\" -f src/main.rs --param temperature=0
  deftool run \"Hello\" --endpoint http://127.0.0.1:8080/v1 --record hello.jsonl
  deftool run --replay hello.jsonl")]
pub(in crate::cli) struct RunOptions {
    /// Prompt; stdin is added to it, unless it is a terminal [default: stdin; with --replay: the recorded prompt]
    pub(in crate::cli) prompt: Option<String>,
    /// Add a file to the prompt: text, an image or audio; can be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Do not read stdin
    #[arg(long)]
    pub(in crate::cli) no_stdin: bool,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Job name, available in events and to tools
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(in crate::cli) job: String,
    /// Record requests and replies to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Store the request in a journal, so that `deftool journal resume` can continue it after a crash; several
    /// requests can share one file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Replay the replies of a recording; requires no server and no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "model"])]
    pub(in crate::cli) replay: Option<PathBuf>,
    /// Continue if a request differs from the recorded one
    #[arg(long, requires = "replay")]
    pub(in crate::cli) lenient: bool,
    /// Use recorded tool results instead of running tools
    #[arg(long, requires = "replay")]
    pub(in crate::cli) recorded_tools: bool,
    /// Replay with the recorded delays, divided by FACTOR if given
    #[arg(long, requires = "replay", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Redact matches of REGEX, or of its group, in the recording; can be repeated
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<EventFormat>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(in crate::cli) fn run(options: &RunOptions) -> Result<Exit, CliError> {
    let prompt = read_prompt(options)?;
    if !options.redact.is_empty() && options.record.is_none() && options.replay.is_none() {
        let message = "--redact requires --record or --replay";
        return Err(CliError::Usage(String::from(message)));
    }
    let recording = options.replay.as_deref().map(recordings::read).transpose()?;
    let source = recording
        .as_ref()
        .map_or(Source::CommandLine, |recording| Source::Recording { worker: recorded_worker(recording) });
    let open = worker::open(&options.worker, &options.request, &options.scripts, source)?;
    let journal = options.journal.as_deref().map(journal::open).transpose()?;
    let (of_run, params) = (&options.worker, &options.request.params);
    let of_worker = journal.as_ref().map(|journal| journal::of_worker(journal, &open, of_run, params));
    let OpenWorker { spec, tools, config, servers } = open;
    let mut secrets = secrets(&options.redact, &tools.project().current())?;
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let messages = prompt.into_iter().collect();
        let mut submit = SubmitRequest { messages, ..SubmitRequest::default() };
        submit.system_prompt.clone_from(&options.request.system);
        submit.job_name.clone_from(&options.job);
        submit.trace = trace::caller();
        let mut approver = Approver::new(options.request.yes);
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let config = WorkerConfig { approvals: approver.approvals(), journal: of_worker, ..config };
        let remote = tokio::select! {
            connected = servers.connect() => connected?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let tools = join(tools, remote.as_ref());
        let replay = recording.map(|recording| {
            secrets.add_value(&api_key(&spec).unwrap_or_default());
            let options = ReplayOptions {
                lenient: options.lenient,
                recorded_tools: options.recorded_tools,
                pace: options.paced,
                key_order: false,
                secrets: std::mem::take(&mut secrets),
            };
            Arc::new(ReplayTransport::with(recording, options))
        });
        let worker = if let Some(replay) = &replay {
            Worker::replay(config, tools, Arc::clone(replay))
        } else {
            tokio::select! {
                worker = connect(&options.worker, &spec, config, tools, true) => worker?,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        // Create the file only now, so that a failed connection does not overwrite an older recording.
        let recorder = options.record.as_deref().map(Recorder::create).transpose()?;
        let recorder = recorder
            .map(|recorder| Arc::new(recorder.without(api_key(&spec).as_deref()).without_secrets(secrets)));
        submit.recorder.clone_from(&recorder);
        let json = options.format.is_json();
        let mut follower =
            Follower { worker: &worker, json, approver: &mut approver, interrupts: &mut interrupts };
        let followed = follower.follow(submit, |_, _| {}).await;
        let mut followed =
            followed.inspect(|followed| eprint_usage(followed, json)).map(|followed| followed.exit());
        // A recorded chat has several requests.
        for _ in 1..replay.as_ref().map_or(1, |replay| replay.requests()) {
            let Ok(exit @ (Exit::Clean | Exit::Failed)) = followed else { break };
            let next = follower.follow(SubmitRequest::default(), |_, _| {}).await;
            let next = next.inspect(|next| eprint_usage(next, json));
            followed = next.map(|next| if exit == Exit::Clean { next.exit() } else { exit });
        }
        close(&worker, &mut interrupts).await;
        if let Some(remote) = remote {
            remote.close().await;
        }
        let mut exit = followed?;
        if let Some(Err(error)) = recorder.map(|recorder| recorder.close()) {
            eprint_error(&format!("{error}; the recording is incomplete"));
            exit = if exit == Exit::Clean { Exit::Failed } else { exit };
        }
        if let Some(Err(message)) = journal.map(|journal| journal::close(&journal)) {
            eprint_error(&message);
            exit = if exit == Exit::Clean { Exit::Failed } else { exit };
        }
        if let Some(replay) = replay {
            eprint_differences(&replay, options.lenient);
            if exit == Exit::Clean && !options.lenient && !replay.differences().is_empty() {
                exit = Exit::Failed;
            }
        }
        Ok(exit)
    });
    // Do not wait for the remaining work of a stopped script.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Prints the usage of a request for a person at a terminal.
fn eprint_usage(followed: &FollowResult, json: bool) {
    if let FollowResult::Ended { outcome, .. } = followed
        && !json
        && shows_progress()
        && let Some(line) = usage_line(outcome)
    {
        eprint_progress(&line);
    }
}

/// Returns the name of the recorded worker; empty if the recording does not contain it.
fn recorded_worker(recording: &Recording) -> &str {
    recording.requests().first().map_or("", |request| &request.session.worker)
}

/// Reports the differences. In a strict replay, differences of bodies were already reported as the failure.
fn eprint_differences(replay: &ReplayTransport, is_lenient: bool) {
    let mut differences = replay.differences();
    differences.retain(|difference| is_lenient || !difference.is_of_a_body());
    if !differences.is_empty() {
        eprint_line("the replay differs from the recording:");
        for line in differences {
            eprint_line(&format!("  {}", clean(&line.to_string())));
        }
    }
}
