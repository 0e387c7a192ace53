//! `deftool call --repeat`: measures repeated calls of one tool with the same arguments.
//!
//! There are three measurements: the script alone on one thread, the same from JSON text to JSON text with validation,
//! and concurrent calls in the thread pool. Each starts with uncounted warm-up calls. A failed call ends the
//! measurement and is reported. With `--isolate process`, only the pool is measured.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_lang::schema::{Arguments, ToolEntry};
use deftool_lang::tool::{CallContext, Meter, ToolCall, ToolError, ToolRunner, Usage};
use deftool_project::{Generation, GenerationRunner, ScriptState, permission_requests};
use deftool_script::{DEFAULT_MEMORY, LocalVm, Script, ScriptSink};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;

use super::arguments::ArgumentInput;
use super::{CallOptions, arguments, peak};
use crate::cli::outcome::{CliError, runtime};
use crate::cli::project::engine;
use crate::cli::project::engine::Isolate;
use crate::cli::project::trust::ProjectTrust;
use crate::cli::terminal::interrupt::end_when_interrupted;
use crate::cli::terminal::output::{bytes, eprint_line, print_json, print_lines};

/// Number of concurrent calls in the pool.
const CONCURRENCY: usize = 64;
/// Number of calls for each warm-up call.
const CALLS_PER_WARM_UP: usize = 10;

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

/// A measurement of one tool.
struct Repetition<'r> {
    tool: &'r str,
    /// The number of calls in each measurement.
    calls: usize,
    isolate: Isolate,
    entry: &'r ToolEntry,
    script: &'r Arc<Script>,
    arguments: Arguments,
}

/// Measures `calls` calls of `tool` and prints the report.
pub(super) fn run(
    options: &CallOptions,
    (tool, input): (&str, &ArgumentInput),
    root: &Path,
    generation: Generation,
    calls: usize,
) -> Result<Result<(), ToolError>, CliError> {
    let generation = Arc::new(generation);
    let prepared =
        generation.find_tool(tool).and_then(|loaded| Ok((loaded, arguments::parse_input(loaded, input)?)));
    let (loaded, arguments) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Err(error)),
    };
    let script = match &loaded.script {
        ScriptState::Ready(script) => script,
        ScriptState::Broken(error) => return Ok(Err(error.clone())),
        ScriptState::None => {
            return Err(CliError::Usage(format!("`{tool}` is an exit tool and cannot be called")));
        }
    };
    let isolate = options.scripts.isolate;
    let repetition = Repetition { tool, calls, isolate, entry: loaded.entry(), script, arguments };
    let trust =
        ProjectTrust::resolve(root, permission_requests(&generation.load, [loaded]), options.scripts.trust)?;
    let scripts = engine::start_quiet(&options.scripts)?;
    let runner =
        GenerationRunner { generation: Arc::clone(&generation), scripts, trust: trust.of(&generation) };
    end_when_interrupted().map_err(CliError::Runtime)?;
    let measured = repetition.measure(&runner)?;
    Ok(measured.map(|report| report.print(options.format.is_json())))
}

impl Repetition<'_> {
    fn measure(&self, runner: &GenerationRunner) -> Result<Result<Report<'_>, ToolError>, CliError> {
        let runtime = runtime()?;
        let measured = runtime.block_on(self.usage(runner)).and_then(|usage| {
            let (thread, json) = match self.isolate {
                Isolate::Threads => self.measure_thread().map(|(thread, json)| (Some(thread), Some(json)))?,
                // An isolated script must not run in this process.
                Isolate::Process => (None, None),
            };
            let pool = runtime.block_on(self.measure_pool(runner))?;
            let memory = usage.map(|usage| Memory {
                peak_bytes: usage.memory,
                limit_bytes: self.script.memory.unwrap_or(DEFAULT_MEMORY),
            });
            Ok(Report { tool: self.tool, thread, json, pool, concurrency: self.concurrency(), memory })
        });
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(measured)
    }

    fn one_call(&self) -> ToolCall {
        let (name, arguments) = (self.tool.to_owned(), self.arguments.clone());
        ToolCall { id: String::from("call"), name, arguments }
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
            std::hint::black_box(result.value.to_string());
            Ok(())
        })?;
        Ok((thread, json))
    }

    /// Returns the number of concurrent calls in the pool.
    fn concurrency(&self) -> usize {
        self.calls.min(CONCURRENCY)
    }

    /// Measures sequential calls.
    fn repeat(&self, mut call: impl FnMut() -> Result<(), ToolError>) -> Result<Timings, ToolError> {
        for _ in 0..self.calls / CALLS_PER_WARM_UP {
            call()?;
        }
        let started = Instant::now();
        let mut times = Vec::new();
        for _ in 0..self.calls {
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
        let warm_up = self.calls / CALLS_PER_WARM_UP;
        let mut waiting = (warm_up + self.calls) - self.concurrency();
        let mut running: FuturesUnordered<_> = (0..self.concurrency()).map(|_| one()).collect();
        let (mut started, mut ended) = (Instant::now(), 0);
        let mut times = Vec::new();
        while let Some(took) = running.next().await {
            let took = took?;
            ended += 1;
            if ended > warm_up {
                times.push(took);
            } else if ended == warm_up {
                started = Instant::now();
            }
            if waiting > 0 {
                waiting -= 1;
                running.push(one());
            }
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
