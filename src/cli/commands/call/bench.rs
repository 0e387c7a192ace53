//! `deftool bench`: measures repeated calls of one tool with the same arguments.
//!
//! There are three measurements: the script alone on one thread, the same from JSON text to JSON text with validation,
//! and concurrent calls in the thread pool. Each starts with uncounted warm-up calls. A failed call ends the benchmark
//! and is reported. With `--isolate process`, only the pool is measured.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use deftool_lang::schema::{Arguments, ToolEntry};
use deftool_lang::tool::{CallContext, Meter, ToolCall, ToolError, ToolRunner, Usage};
use deftool_project::{Generation, GenerationRunner, ScriptState, find_root, permission_requests};
use deftool_script::{DEFAULT_MEMORY, LocalVm, Script, ScriptSink};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;

use super::{arguments, bytes, peak};
use crate::cli::options::parse_duration;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine;
use crate::cli::project::engine::{Isolate, ScriptOptions};
use crate::cli::project::inputs::command_dirs;
use crate::cli::project::permissions::effects;
use crate::cli::project::trust::ProjectTrust;
use crate::cli::terminal::interrupt::end_when_interrupted;
use crate::cli::terminal::output::{clean, eprint_failure, eprint_line, print_json, print_lines};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool bench word_count '{\"text\": \"one two three\"}'
  deftool bench word_count '{\"text\": \"one\"}' --calls 1000 --json")]
pub(in crate::cli) struct BenchOptions {
    /// Name of the tool
    pub(in crate::cli) tool: String,
    /// Arguments: KEY=VALUE pairs, or one JSON object; `-` reads an object from stdin
    #[arg(value_name = "ARGUMENT")]
    pub(in crate::cli) arguments: Vec<String>,
    /// Maximum number of measured calls [default: limited by --time]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) calls: Option<u64>,
    /// Duration of each measurement
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(in crate::cli) time: Duration,
    /// Number of concurrent calls in the pool measurement
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(in crate::cli) concurrency: usize,
    /// Run the benchmark even if the tool may write, run programs or use the network
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// Maximum number of measured calls.
const MAX_CALLS: usize = 5_000_000;

/// The output of `--json`. Times are in microseconds.
#[derive(Serialize)]
struct Report<'r> {
    tool: &'r str,
    /// The script alone, on one thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<Timings>,
    /// From JSON text to JSON text with validation, on one thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Timings>,
    /// Concurrent calls in the pool of threads or processes.
    pool: Timings,
    concurrency: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

#[derive(Serialize)]
struct Memory {
    /// Highest measured memory use of one call.
    peak_bytes: u64,
    limit_bytes: u64,
}

/// One measurement. In the pool, the time of a call includes waiting for a thread, so it grows with the concurrency.
#[derive(Serialize)]
struct Timings {
    calls: usize,
    min_us: f64,
    median_us: f64,
    p99_us: f64,
    max_us: f64,
    calls_per_second: f64,
}

/// A benchmark of one tool.
struct Bench<'b> {
    options: &'b BenchOptions,
    entry: &'b ToolEntry,
    script: &'b Arc<Script>,
    arguments: Arguments,
}

pub(in crate::cli) fn run(options: &BenchOptions) -> Result<Exit, CliError> {
    if options.concurrency == 0 {
        return Err(CliError::Usage(String::from("--concurrency: expected a number of at least 1")));
    }
    let dirs = command_dirs(options.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let generation = Arc::new(Generation::load(&root, &dirs.current, None)?);
    let prepared = generation.find_tool(&options.tool).and_then(|loaded| {
        let input = arguments::read_input(&options.tool, &options.arguments)?;
        Ok((loaded, arguments::parse_input(loaded, &input)?))
    });
    let (loaded, arguments) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Ok(failed(&error)),
    };
    let script = match &loaded.script {
        ScriptState::Ready(script) => script,
        ScriptState::Broken(error) => return Ok(failed(error)),
        ScriptState::None => {
            let message = format!("`{}` is an exit tool and cannot be called", options.tool);
            return Err(CliError::Usage(message));
        }
    };
    let effects = effects(&loaded.tool.permissions);
    if !effects.is_empty() && !options.yes {
        let message = format!(
            "`{}` {effects}, and a benchmark calls it thousands of times; use --yes to run it",
            options.tool
        );
        return Err(CliError::Usage(message));
    }
    let bench = Bench { options, entry: loaded.entry(), script, arguments };
    let trust =
        ProjectTrust::resolve(&root, permission_requests(&generation.load, [loaded]), options.scripts.trust)?;
    let scripts = engine::start_quiet(&options.scripts)?;
    let runner =
        GenerationRunner { generation: Arc::clone(&generation), scripts, trust: trust.of(&generation) };
    end_when_interrupted().map_err(CliError::Runtime)?;
    match bench.measure(&runner)? {
        Ok(report) => {
            report.print(options.json);
            Ok(Exit::Clean)
        }
        Err(error) => Ok(failed(&error)),
    }
}

fn failed(error: &ToolError) -> Exit {
    eprint_failure(error.kind.as_str(), &error.message);
    if let Some(details) = &error.details {
        eprint_line(&clean(details));
    }
    Exit::Failed
}

impl Bench<'_> {
    fn measure(&self, runner: &GenerationRunner) -> Result<Result<Report<'_>, ToolError>, CliError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
        let measured = runtime.block_on(self.usage(runner)).and_then(|usage| {
            let (thread, json) = match self.options.scripts.isolate {
                Isolate::Threads => self.measure_thread().map(|(thread, json)| (Some(thread), Some(json)))?,
                // An isolated script must not run in this process.
                Isolate::Process => (None, None),
            };
            let pool = runtime.block_on(self.measure_pool(runner))?;
            let memory = usage.map(|usage| Memory {
                peak_bytes: usage.memory,
                limit_bytes: self.script.memory.unwrap_or(DEFAULT_MEMORY),
            });
            let concurrency = self.options.concurrency;
            Ok(Report { tool: &self.options.tool, thread, json, pool, concurrency, memory })
        });
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(measured)
    }

    fn one_call(&self) -> ToolCall {
        let (name, arguments) = (self.options.tool.clone(), self.arguments.clone());
        ToolCall { id: String::from("bench"), name, arguments }
    }

    /// Returns the resource use of a first call.
    async fn usage(&self, runner: &GenerationRunner) -> Result<Option<Usage>, ToolError> {
        let meter = Arc::new(Meter::default());
        let context = CallContext { meter: Some(Arc::clone(&meter)), ..CallContext::default() };
        runner.run(self.one_call(), context).await?;
        Ok(meter.usage())
    }

    /// Measures the script alone, and from JSON to JSON, on this thread.
    fn measure_thread(&self) -> Result<(Timings, Timings), ToolError> {
        // Discard log lines: writing them would dominate the measurement.
        let quiet = ScriptSink::new(|_| {});
        let mut vm = LocalVm::new(Arc::clone(self.script), quiet)?;
        let thread = self.repeat(|| vm.call(&self.arguments, CallContext::default()).map(drop))?;
        let text = self.arguments.to_string();
        let json = self.repeat(|| {
            let arguments = arguments::parse(self.entry, &text)?;
            let result = vm.call(&arguments, CallContext::default())?;
            std::hint::black_box(result.to_string());
            Ok(())
        })?;
        Ok((thread, json))
    }

    /// Returns the maximum number of measured calls.
    fn max_calls(&self) -> usize {
        let asked = self.options.calls.map_or(MAX_CALLS, |calls| usize::try_from(calls).unwrap_or(MAX_CALLS));
        asked.clamp(1, MAX_CALLS)
    }

    /// Measures sequential calls.
    fn repeat(&self, mut call: impl FnMut() -> Result<(), ToolError>) -> Result<Timings, ToolError> {
        let warm = Instant::now() + self.options.time / 10;
        while Instant::now() < warm {
            call()?;
        }
        let started = Instant::now();
        let mut times = Vec::new();
        while times.len() < self.max_calls() && (times.is_empty() || started.elapsed() < self.options.time) {
            let before = Instant::now();
            call()?;
            times.push(before.elapsed());
        }
        Ok(Timings::of(times, started.elapsed()))
    }

    /// Measures concurrent calls in the pool.
    async fn measure_pool(&self, runner: &GenerationRunner) -> Result<Timings, ToolError> {
        let one = || async {
            let call = self.one_call();
            let before = Instant::now();
            runner.run(call, CallContext::default()).await.map(|_| before.elapsed())
        };
        let mut running: FuturesUnordered<_> = (0..self.options.concurrency).map(|_| one()).collect();
        let warm = Instant::now() + self.options.time / 10;
        let (mut started, mut is_warm) = (Instant::now(), false);
        let mut times = Vec::new();
        while let Some(took) = running.next().await {
            let took = took?;
            if is_warm {
                times.push(took);
            } else if Instant::now() >= warm {
                (started, is_warm) = (Instant::now(), true);
            }
            let is_done = times.len() >= self.max_calls()
                || (is_warm && !times.is_empty() && started.elapsed() >= self.options.time);
            if is_done {
                break;
            }
            running.push(one());
        }
        Ok(Timings::of(times, started.elapsed()))
    }
}

impl Timings {
    #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // a rate, and an index
    fn of(mut times: Vec<Duration>, elapsed: Duration) -> Self {
        times.sort_unstable();
        let percentile = |share: f64| {
            let index = ((times.len().saturating_sub(1)) as f64 * share).round() as usize;
            let time = times.get(index).copied().unwrap_or_default();
            (time.as_secs_f64() * 1e8).round() / 100.0
        };
        Self {
            calls: times.len(),
            min_us: percentile(0.0),
            median_us: percentile(0.5),
            p99_us: percentile(0.99),
            max_us: percentile(1.0),
            calls_per_second: (times.len() as f64 / elapsed.as_secs_f64().max(1e-9)).round(),
        }
    }
}

impl Report<'_> {
    fn print(&self, json: bool) {
        if json {
            return print_json(self, false);
        }
        let in_flight = format!("pool, {} concurrent", self.concurrency);
        let mut text = format!(
            "{:<22}{:>10}{:>12}{:>12}{:>12}{:>12}{:>12}\n",
            self.tool, "calls", "min", "median", "p99", "max", "calls/s"
        );
        let ways = [("script", self.thread.as_ref()), ("JSON to JSON", self.json.as_ref())];
        let ways = ways.into_iter().chain([(in_flight.as_str(), Some(&self.pool))]);
        for (name, figures) in ways.filter_map(|(name, figures)| Some((name, figures?))) {
            let _ = writeln!(
                text,
                "{name:<22}{:>10}{:>12}{:>12}{:>12}{:>12}{:>12}",
                figures.calls,
                time(figures.min_us),
                time(figures.median_us),
                time(figures.p99_us),
                time(figures.max_us),
                figures.calls_per_second
            );
        }
        if let Some(memory) = &self.memory {
            let (peak, limit) = (peak(memory.peak_bytes), bytes(memory.limit_bytes));
            let _ = writeln!(text, "memory: {peak} peak of one call, limit {limit}");
        }
        print_lines(&text);
        if cfg!(debug_assertions) {
            eprint_line("warning: this is a debug build; a release build is many times faster");
        }
    }
}

/// Formats a time, as in `1.4 µs` or `2.31 ms`.
fn time(micros: f64) -> String {
    match micros {
        _ if micros >= 1e6 => format!("{:.2} s", micros / 1e6),
        _ if micros >= 1e3 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{micros:.1} µs"),
    }
}
