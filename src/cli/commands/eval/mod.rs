//! `deftool eval`: sends the prompts of asks to models, and compares the calls of their first replies with what the asks
//! expect. It executes no tool.

mod baseline;
mod estimate;
mod evaluation;
mod live;
mod recorded;
mod reply;
mod report;
mod results;
mod select;
mod suggest;
mod trials;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use deftool_engine::{PreparedWorker, close_remote, join};
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::ASKS_PREVIEW;
use deftool_worker::ToolSource;
use serde_json::Value;

use self::recorded::Recorded;
use self::results::Results;
use self::trials::Version;
use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine::{Isolate, ScriptOptions};
use crate::cli::project::preview;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::clean;
use crate::cli::worker::options::{RequestOptions, WorkerOptions, parse_param};
use crate::cli::worker::{Source, connect_servers, open, recordings};

#[derive(Debug, Args)]
#[command(after_help = "\
Asks are prompts with the calls that a model should make: `:asks` of a tool, and `(defask …)`. Each is sent with the \
tools of the worker; no tool is executed. Exit codes: 0 as good as asked, 1 worse, 2 could not run, 3 cannot tell.

Examples:
  deftool eval
  deftool eval get_weather --runs 10 --model qwen3 --model gemma3
  deftool eval --runs 10 --min 0.9 --record evals.jsonl
  deftool eval --replay evals.jsonl --min 0.9
  deftool eval --runs 10 --baseline HEAD~1
  deftool eval --from run.jsonl > specs/asks.eld")]
pub(in crate::cli) struct EvalOptions {
    /// Tools whose asks are sent [default: all asks]
    #[arg(value_name = "TOOL")]
    tool_names: Vec<String>,
    /// Worker to use [default: the only worker of the project]
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Base URL of the server, with /v1 [env: OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Model name; can be repeated to compare models [default: the worker's]
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Number of times that each ask is sent, each with another seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Tools that are offered with an ask
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Company::All)]
    tools: Company,
    /// Lowest share of replies that must pass, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    min: Option<f64>,
    /// Compare with the tools of another version: a folder, or a git revision
    #[arg(long, value_name = "DIR|REV")]
    baseline: Option<PathBuf>,
    /// Record the replies to FILE, and use those that it contains
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Use only the replies of a recording; requires no server and no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "models"])]
    replay: Option<PathBuf>,
    /// Write asks from the calls of a recording to stdout, for a person to edit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "replay", "baseline", "min"])]
    from: Option<PathBuf>,
    /// Maximum number of requests
    #[arg(long, hide_short_help = true, value_name = "N")]
    max_requests: Option<usize>,
    /// Share of requests that may fail because of the server, from 0 to 1
    #[arg(long, hide_short_help = true, value_name = "SHARE", default_value_t = 0.1, value_parser = parse_share)]
    max_failures: f64,
    /// Member of the request body such as `temperature=0`; can be repeated
    #[arg(long = "param", hide_short_help = true, value_name = "KEY=VALUE", value_parser = parse_param)]
    params: Vec<(String, Value)>,
    #[command(flatten)]
    format: FormatOptions<EvalFormat>,
    #[command(flatten)]
    project: ProjectOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Company {
    /// The tools of the worker
    All,
    /// The tools that the ask names
    Only,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EvalFormat {
    /// Tables
    Human,
    /// One JSON object
    Json,
    /// JUnit XML: one test an ask
    Junit,
    /// A table for a comment
    Markdown,
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| String::from("expected a number from 0 to 1, as in 0.9"))
}

/// Evaluates the asks of the project.
///
/// # Errors
/// If nothing can be evaluated.
pub(in crate::cli) fn run(options: &EvalOptions) -> Result<Exit, CliError> {
    if let Some(path) = &options.from {
        return suggest::run(path);
    }
    let recorded = options.replay.as_deref().map(Recorded::read).transpose()?;
    let models = select::models(&options.models)?;
    let opened = open_worker(options, recorded.is_some())?;
    let generation = opened.tools.project().current();
    let load = &generation.load;
    preview::announce(ASKS_PREVIEW, "`deftool eval`", load);
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let remote = tokio::select! {
            connected = connect_servers(&opened.servers) => connected?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let tools = join(Arc::clone(&opened.tools) as Arc<dyn ToolSource>, remote.as_ref()).current().tools;
        close_remote(remote).await;
        let versions = versions(options, &opened, tools)?;
        let asks = select::asks(load, &options.tool_names, &versions)?;
        let evaluation =
            evaluation::Evaluation { options, opened: &opened, asks: &asks, versions: &versions };
        let evaluated = match recorded {
            Some(recorded) => evaluation.replayed(&recorded, &mut interrupts).await?,
            None => evaluation.sent(&models, &mut interrupts).await?,
        };
        let Some(evaluation::Evaluated { models, runs, replies, recorder }) = evaluated else {
            return Ok(Exit::Interrupted);
        };
        let results = Results::of(&asks, models, runs, &replies, &versions, &load.sources);
        report::print_results(&results, options.format.value, options.min);
        let exit = results.exit(options.min);
        Ok(recorder.map_or(exit, |recorder| recordings::close(&recorder, exit)))
    });
    runtime.shutdown_background();
    exit
}

/// Opens the worker. No tool is executed, so the permissions of tools are not needed; a replay needs no server either.
fn open_worker(options: &EvalOptions, is_replay: bool) -> Result<PreparedWorker, CliError> {
    let worker = worker_options(options, options.endpoint.clone(), options.models.first().cloned());
    let request = RequestOptions { system: None, params: options.params.clone(), yes: false };
    let scripts = ScriptOptions { isolate: Isolate::Threads, trust: false };
    open(&worker, &request, &scripts, Source::Try { is_replay })
}

fn worker_options(options: &EvalOptions, endpoint: Option<String>, model: Option<String>) -> WorkerOptions {
    let (worker, project) = (options.worker.clone(), options.project.clone());
    WorkerOptions { worker, endpoint, model, user_tools: false, project }
}

/// Returns the versions of the tools: the baseline, if there is one, and the current one.
fn versions(
    options: &EvalOptions,
    opened: &PreparedWorker,
    tools: ToolSet,
) -> Result<Vec<(Version, ToolSet)>, CliError> {
    let mut versions = Vec::new();
    if let Some(baseline) = &options.baseline {
        let old = baseline::tools(baseline, opened, &options.project.dirs()?)?;
        versions.push((Version::Baseline, old));
    }
    versions.push((Version::Current, tools));
    if versions.iter().any(|(_, tools)| tools.is_empty()) {
        let name = clean(&opened.spec.name.value);
        return Err(CliError::Usage(format!("worker `{name}` offers no tool; nothing can be evaluated")));
    }
    Ok(versions)
}
