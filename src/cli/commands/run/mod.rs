//! `deftool run`: sends one request through a worker.

mod batch;
mod prompt;
mod signals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use deftool_chat::request::Outcome;
use deftool_engine::{PreparedWorker, join};
use deftool_record::{Recording, ReplayOptions};
use deftool_worker::{ReplayTransport, SubmitRequest, ToolSource, Worker, WorkerConfig};

use crate::cli::options::{EventFormat, FormatOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{
    clean, cut, eprint_error, eprint_failure, eprint_line, eprint_progress, print_json, shows_progress,
};
use crate::cli::worker;
use crate::cli::worker::approve::Approver;
use crate::cli::worker::options::{RequestOptions, WorkerOptions};
use crate::cli::worker::secrets;
use crate::cli::worker::show::usage_line;
use crate::cli::worker::{
    FollowResult, Follower, Printed, Source, api_key, close, connect, connect_servers, journal, recordings,
    trace,
};
use prompt::read_prompt;
use signals::{MISSING_SIGNAL, SignalOptions};

/// Maximum number of shown characters of a reply that is not on stdout.
const MAX_REPLY: usize = 300;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool run \"What changed since yesterday?\"
  git diff | deftool run \"Review this change.\"
  deftool run \"What does this do?\" -f src/main.rs
  deftool run \"Hello\" --record hello.jsonl
  deftool run \"List the cities.\" --result cities | jq -r '.names[]'
  deftool run --batch jobs.jsonl --journal jobs.journal > results.jsonl
  deftool run --replay hello.jsonl")]
pub(in crate::cli) struct RunOptions {
    /// Prompt; stdin is added to it, unless it is a terminal [default: stdin; with --replay: the recorded prompt]
    pub(in crate::cli) prompt: Option<String>,
    /// Add a text, image or audio file to the prompt; can be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Do not read stdin
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) no_stdin: bool,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Job name, available in events and to tools
    #[arg(long, hide_short_help = true, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(in crate::cli) job: String,
    /// Record requests and replies to FILE, and create missing folders
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Store the request in a journal, to continue it after a crash
    ///
    /// `deftool journal resume` continues it. Several requests can share one file.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Replay the replies of a recording; requires no server and no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "model"])]
    pub(in crate::cli) replay: Option<PathBuf>,
    /// Continue if a request differs from the recorded one
    #[arg(long, hide_short_help = true, requires = "replay")]
    pub(in crate::cli) lenient: bool,
    /// Use recorded tool results instead of running tools
    #[arg(long, hide_short_help = true, requires = "replay")]
    pub(in crate::cli) recorded_tools: bool,
    /// Redact matches of REGEX, or of its group, in the recording; can be repeated
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Run each line of FILE as a job, and print a line of JSON for each
    ///
    /// A job is a JSON object with `prompt` and optionally `job_name`, `params` and `files`. `-` reads stdin.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["prompt", "files", "job", "replay", "format", "json"])]
    pub(in crate::cli) batch: Option<PathBuf>,
    /// With a journal, run the jobs that failed again
    #[arg(long, hide_short_help = true, requires_all = ["batch", "journal"])]
    pub(in crate::cli) retry_failed: bool,
    #[command(flatten)]
    pub(in crate::cli) signals: SignalOptions,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<EventFormat>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(in crate::cli) fn run(options: &RunOptions) -> Result<Exit, CliError> {
    if !options.redact.is_empty() && options.record.is_none() && options.replay.is_none() {
        return Err(CliError::Usage(String::from("--redact requires --record or --replay")));
    }
    match &options.batch {
        Some(path) => batch::run(options, path),
        None => run_prompt(options),
    }
}

/// Runs one request, or replays a recording.
fn run_prompt(options: &RunOptions) -> Result<Exit, CliError> {
    let prompt = read_prompt(options)?;
    let recording = options.replay.as_deref().map(recordings::read).transpose()?;
    let source = recording
        .as_ref()
        .map_or(Source::CommandLine, |recording| Source::Recording { worker: recorded_worker(recording) });
    let open = worker::open(&options.worker, &options.request, &options.scripts, source)?;
    let journal = options.journal.as_deref().map(journal::open).transpose()?;
    let (of_run, params) = (&options.worker, &options.request.params);
    let of_worker = journal.as_ref().map(|journal| journal::of_worker(journal, &open, of_run, params));
    let PreparedWorker { spec, root, tools, config, servers, .. } = open;
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
            connected = connect_servers(&servers) => connected?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let tools = join(tools, remote.as_ref());
        options.signals.check(&tools.current().tools)?;
        let replay = recording.map(|recording| {
            secrets.add_value(&api_key(&spec).unwrap_or_default());
            let options = ReplayOptions {
                lenient: options.lenient,
                recorded_tools: options.recorded_tools,
                secrets: std::mem::take(&mut secrets),
            };
            Arc::new(ReplayTransport::with(recording, options))
        });
        let worker = if let Some(replay) = &replay {
            Worker::replay(config, Arc::clone(&tools), Arc::clone(replay))
        } else {
            tokio::select! {
                worker = connect(&options.worker, (&spec, &root), config, Arc::clone(&tools), true) => worker?,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        // Create the file only now, so that a failed connection does not overwrite an older recording.
        let key = api_key(&spec);
        let create = |path| recordings::create(path, key.as_deref(), secrets);
        let recorder = options.record.as_deref().map(create).transpose()?;
        submit.recorder.clone_from(&recorder);
        let printed = match options.signals.result {
            Some(_) => Printed::Nothing,
            None => Printed::of(options.format.is_json()),
        };
        let mut follower =
            Follower { worker: &worker, printed, approver: &mut approver, interrupts: &mut interrupts };
        let recorded = replay.as_ref().map_or(1, |replay| replay.requests());
        let followed = follow_all(&mut follower, &submit, options, (recorded, &*tools)).await;
        close(&worker, &mut interrupts).await;
        if let Some(remote) = remote {
            remote.close().await;
        }
        let mut exit = followed?;
        if let Some(recorder) = &recorder {
            exit = recordings::close(recorder, exit);
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

/// Follows the request, the further ones of a recorded chat, and those that name an error of an exit call. `recorded`: the
/// number of requests of a replay, or 1. `tools`: those of the worker.
async fn follow_all(
    follower: &mut Follower<'_>,
    submit: &SubmitRequest,
    options: &RunOptions,
    (recorded, tools): (usize, &dyn ToolSource),
) -> Result<Exit, CliError> {
    let tools = || tools.current().tools;
    let (mut recorded, mut retries) = (recorded, options.signals.result_retries);
    let (mut exit, mut signals) = (Exit::Clean, Vec::new());
    let mut request = submit.clone();
    loop {
        let followed = follower.follow(request, |_, _| {}).await?;
        let FollowResult::Ended { id, outcome } = &followed else { return Ok(followed.exit()) };
        eprint_usage(outcome, options.format.is_json());
        match followed.exit() {
            Exit::Clean => {}
            Exit::Interrupted => return Ok(Exit::Interrupted),
            failed => exit = failed,
        }
        signals.extend(outcome.signals.iter().cloned());
        recorded = recorded.saturating_sub(1);
        if recorded > 0 {
            request = SubmitRequest::default();
            continue;
        }
        // A failed request is reported.
        let Some(missing) =
            options.signals.missing(&signals, &outcome.signals, &tools()).filter(|_| exit == Exit::Clean)
        else {
            break;
        };
        if retries == 0 {
            eprint_failure(MISSING_SIGNAL, &missing.to_string());
            if options.signals.result.is_some() {
                eprint_reply(outcome);
            }
            return Ok(Exit::Failed);
        }
        retries -= 1;
        eprint_progress(&format!("retry  {}", clean(&missing.to_string())));
        let conversation = follower.worker.conversation(id).unwrap_or_default();
        request = missing.retry(submit, conversation);
    }
    if exit == Exit::Clean
        && let Some(arguments) = options.signals.result_of(&signals, &tools())
    {
        print_json(arguments, false);
    }
    Ok(exit)
}

/// Prints the usage of a request for a person at a terminal.
fn eprint_usage(outcome: &Outcome, json: bool) {
    if !json
        && shows_progress()
        && let Some(line) = usage_line(outcome)
    {
        eprint_progress(&line);
    }
}

/// Prints the start of a reply that is not on stdout.
fn eprint_reply(outcome: &Outcome) {
    let text = outcome.text.trim();
    if !text.is_empty() {
        eprint_line(&format!(
            "note: the model replied: {}",
            cut(&clean(&text.replace('\n', " ")), MAX_REPLY)
        ));
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
