//! `deftool eval`: sends the prompts of asks to models, and compares the calls of their first replies with what the asks
//! expect. It executes no tool.

mod baseline;
mod live;
mod recorded;
mod reply;
mod report;
mod results;
mod suggest;
mod trials;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use deftool_engine::{PreparedWorker, close_remote, join};
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{ASKS_PREVIEW, Ask};
use deftool_lang::text::count;
use deftool_project::Load;
use deftool_record::{Recorder, Recording, Redaction};
use deftool_worker::ToolSource;
use serde_json::Value;

use self::live::{Limits, Replies, Stopped, Subject};
use self::recorded::{Contents, Judgeable};
use self::results::Results;
use self::trials::{Offer, Trial, Version, tools_of};
use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::project::engine::{Isolate, ScriptOptions};
use crate::cli::project::preview;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, eprint_line, eprint_progress};
use crate::cli::worker::options::{RequestOptions, WorkerOptions, parse_param};
use crate::cli::worker::{Source, api_key, close, connect, connect_servers, open, recordings, secrets};

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
    let recording = options.replay.as_deref().map(recordings::read).transpose()?;
    let contents = recording.as_ref().map(Contents::of);
    if contents.as_ref().is_some_and(|contents| contents.runs == 0) {
        let path = options.replay.as_deref().unwrap_or(std::path::Path::new("")).display().to_string();
        return Err(CliError::Usage(format!(
            "{}: contains no replies of an evaluation; create one with `deftool eval --record FILE.jsonl`",
            clean(&path)
        )));
    }
    let models = match &contents {
        Some(contents) => contents.models.iter().map(|model| Some(model.clone())).collect(),
        None if options.models.is_empty() => vec![None],
        None => {
            let mut models: Vec<Option<String>> = Vec::new();
            for model in &options.models {
                if models.iter().flatten().any(|known| known == model) {
                    return Err(CliError::Usage(format!("--model: `{}` is named twice", clean(model))));
                }
                models.push(Some(model.clone()));
            }
            models
        }
    };
    let opened = open_worker(options, recording.is_some())?;
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
        let asks = selected(load, &options.tool_names, &versions)?;
        let evaluation = Evaluation { options, opened: &opened, asks: &asks, versions: &versions };
        let replies = match recording {
            Some(recording) => evaluation.replayed(recording, &models).await?,
            None => evaluation.sent(&models, &mut interrupts).await?,
        };
        let Some((names, runs, replies)) = replies else { return Ok(Exit::Interrupted) };
        let results = Results::of(&asks, names, runs, &replies, &versions, &load.sources);
        report::print_results(&results, options.format.value, options.min);
        Ok(results.exit(options.min))
    });
    runtime.shutdown_background();
    exit
}

/// What is evaluated.
struct Evaluation<'e> {
    options: &'e EvalOptions,
    opened: &'e PreparedWorker,
    asks: &'e [&'e Ask],
    /// The tools of each version that is compared, the baseline first.
    versions: &'e [(Version, ToolSet)],
}

/// The names of the models, the number of runs, and the replies; `None`: the user interrupted before the first.
type Evaluated = Option<(Vec<String>, u32, Replies)>;

impl Evaluation<'_> {
    /// Judges the replies of a recording. Asks without a recorded reply are named.
    ///
    /// # Errors
    /// If the recording contains no reply to the asks.
    async fn replayed(&self, recording: Recording, models: &[Option<String>]) -> Result<Evaluated, CliError> {
        let contents = Contents::of(&recording);
        let names: Vec<String> = models.iter().flatten().cloned().collect();
        let mut replies = Replies::default();
        let mut stale = Vec::new();
        for (index, name) in names.iter().enumerate() {
            for (version, tools) in self.versions {
                let offer = self.offer(name, tools);
                let trials = self.trials(&offer, index, *version, contents.runs);
                let (known, missing): (Vec<Trial>, Vec<Trial>) =
                    trials.into_iter().partition(|trial| contents.has(trial));
                stale.extend(missing.iter().filter(|trial| trial.run == 1).map(|trial| trial.ask));
                let secrets = secrets(&[], &self.opened.tools.project().current())?;
                replies
                    .ended
                    .extend(recorded::replay(recording.clone(), &offer, known, self.asks, secrets).await);
            }
        }
        if replies.ended.is_empty() {
            return Err(CliError::Usage(format!(
                "{}: contains no reply to the {} with the current tools; record them again with `deftool eval --record FILE`",
                clean(&recording.path().display().to_string()),
                count(self.asks.len(), "ask")
            )));
        }
        report::eprint_stale(&stale, self.asks, &self.opened.tools.project().current().load.sources);
        Ok(Some((names, contents.runs, replies)))
    }

    /// Sends the asks whose replies are not recorded, and judges all.
    ///
    /// # Errors
    /// If no worker can be connected, or the recording cannot be used.
    async fn sent(
        &self,
        models: &[Option<String>],
        interrupts: &mut Interrupts,
    ) -> Result<Evaluated, CliError> {
        let (options, opened) = (self.options, self.opened);
        let mut subjects: Vec<(usize, Version, Subject)> = Vec::new();
        for (index, model) in models.iter().enumerate() {
            for (version, tools) in self.versions {
                // A server that the worker starts is started once for each model.
                let started = subjects.iter().find(|(model, ..)| *model == index);
                let endpoint = started.and_then(|(.., subject)| subject.worker.status().endpoint);
                let of_run =
                    worker_options(options, endpoint.or_else(|| options.endpoint.clone()), model.clone());
                let offer = self.offer("", tools);
                let connected = connect(
                    &of_run,
                    (&opened.spec, &opened.root),
                    offer.config.clone(),
                    Arc::new(offer.tools.clone()),
                    true,
                );
                let worker = tokio::select! {
                    worker = connected => worker?,
                    () = interrupts.next() => return Ok(None),
                };
                let offer = Offer { model: worker.model().to_owned(), ..offer };
                subjects.push((index, *version, Subject { offer, worker }));
            }
        }
        let mut names: Vec<String> = Vec::new();
        for (.., subject) in &subjects {
            if names.last() != Some(&subject.offer.model) {
                names.push(subject.offer.model.clone());
            }
        }
        let mut trials = Vec::new();
        for run in 1..=options.runs {
            for ask in 0..self.asks.len() {
                for (model, version, subject) in &subjects {
                    trials.extend(self.trial(&subject.offer, (*model, *version), ask, run));
                }
            }
        }
        let (recorder, before) = self.recorder()?;
        let mut known = Vec::new();
        if let Some(before) = before {
            let contents = Contents::of(&before);
            let (recorded, missing): (Vec<Trial>, Vec<Trial>) =
                trials.into_iter().partition(|trial| contents.has(trial));
            trials = missing;
            for (model, version, subject) in &subjects {
                let is_of = |trial: &&Trial| trial.model == *model && trial.version == *version;
                let recorded = recorded.iter().filter(is_of).cloned().collect();
                let secrets = secrets(&[], &opened.tools.project().current())?;
                known.extend(
                    recorded::replay(before.clone(), &subject.offer, recorded, self.asks, secrets).await,
                );
            }
            let answered: Vec<&str> = known.iter().map(|(trial, _): &Judgeable| trial.job.as_str()).collect();
            trials.extend(recorded.iter().filter(|trial| !answered.contains(&trial.job.as_str())).cloned());
        }
        let recorded = if known.is_empty() { String::new() } else { format!(", {} recorded", known.len()) };
        eprint_progress(&format!("{} to send{recorded}", count(trials.len(), "request")));
        let subject_of = |trial: &Trial| {
            let mut found = subjects.iter();
            found
                .find(|(model, version, _)| (*model, *version) == (trial.model, trial.version))
                .map(|(.., subject)| subject)
        };
        let limits = Limits { requests: options.max_requests, failures: options.max_failures };
        let mut replies =
            live::run(trials, self.asks, subject_of, recorder.as_ref(), limits, interrupts).await;
        replies.ended.extend(known);
        for (.., subject) in &subjects {
            close(&subject.worker, interrupts).await;
        }
        if let Some(recorder) = &recorder
            && let Err(error) = recorder.close()
        {
            eprint_line(&format!("{error}; the recording is incomplete"));
        }
        let is_nothing = replies.ended.is_empty() && replies.stopped == Some(Stopped::Interrupted);
        Ok((!is_nothing).then_some((names, options.runs, replies)))
    }

    /// Opens the recording of `--record`, and returns what it contains.
    fn recorder(&self) -> Result<(Option<Arc<Recorder>>, Option<Recording>), CliError> {
        let Some(path) = &self.options.record else { return Ok((None, None)) };
        let secrets = secrets(&[], &self.opened.tools.project().current())?;
        let redaction = Redaction::new(api_key(&self.opened.spec).as_deref(), secrets);
        let (recorder, before) = Recorder::resume(path, redaction)?;
        Ok((Some(Arc::new(recorder)), before))
    }

    /// Returns what the asks are sent to a model with.
    fn offer(&self, model: &str, tools: &ToolSet) -> Offer {
        Offer {
            model: model.to_owned(),
            tools: Offer::without_runner(tools.clone()),
            is_alone: self.options.tools == Company::Only,
            config: self.opened.config.clone(),
        }
    }

    /// Returns the trials of an offer in all runs.
    fn trials(&self, offer: &Offer, model: usize, version: Version, runs: u32) -> Vec<Trial> {
        let runs = (1..=runs).flat_map(|run| (0..self.asks.len()).map(move |ask| (ask, run)));
        runs.filter_map(|(ask, run)| self.trial(offer, (model, version), ask, run)).collect()
    }

    fn trial(
        &self,
        offer: &Offer,
        (model, version): (usize, Version),
        ask: usize,
        run: u32,
    ) -> Option<Trial> {
        let job = offer.job(self.asks.get(ask)?, run);
        Some(Trial { ask, model, version, run, job })
    }
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

/// Returns the asks of the named tools, or all. Those whose tools are not offered are reported and left out.
///
/// # Errors
/// If none is left.
fn selected<'l>(
    load: &'l Load,
    names: &[String],
    versions: &[(Version, ToolSet)],
) -> Result<Vec<&'l Ask>, CliError> {
    let mut left_out = 0;
    let is_offered = |name: &str| versions.iter().all(|(_, tools)| tools.get(name).is_some());
    let all: Vec<&Ask> = load.asks();
    if all.is_empty() {
        let help = "add `:asks` to a tool, or write them from a recording with `deftool eval --from FILE`";
        return Err(CliError::Usage(format!("the project has no asks; {help}")));
    }
    let has_name = |ask: &&Ask| {
        names.is_empty() || tools_of(ask).iter().any(|tool| names.iter().any(|name| name == tool))
    };
    let mut asks = Vec::new();
    for ask in all.into_iter().filter(has_name) {
        match tools_of(ask).into_iter().find(|tool| !is_offered(tool)) {
            None => asks.push(ask),
            Some(missing) => {
                left_out += 1;
                let place = load.sources.describe(ask.location());
                eprint_line(&format!("skipped {place}: the worker does not offer `{}`", clean(missing)));
            }
        }
    }
    if asks.is_empty() {
        let why = if left_out > 0 {
            String::from("the worker does not offer the tools of the asks")
        } else {
            {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("no ask names {}", names.join(" or "))
            }
        };
        return Err(CliError::Usage(clean(&why)));
    }
    Ok(asks)
}
