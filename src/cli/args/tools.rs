//! Options of the commands that run tools without a model, and of how scripts are run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Tests of scripts (scripts/NAME_test.lua) run in this process, each in a sandbox of its own; \
                        `--isolate process` goes with `--fuzz`. docs/testing.md says how they are written."
)]
pub(in crate::cli) struct TestOptions {
    /// Files, scripts, folders or projects; none: the project around the current folder
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Only the tools with this in their names, and the tests with it in theirs or in that of their file
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) filter: Option<String>,
    /// How results are written
    #[arg(long, value_enum, default_value_t = TestFormat::Human)]
    pub(in crate::cli) format: TestFormat,
    /// Run them again on every save
    #[arg(long)]
    pub(in crate::cli) watch: bool,
    /// Time limit of one test of a script
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(in crate::cli) timeout: Duration,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) fuzzing: FuzzOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fuzzing")]
pub(in crate::cli) struct FuzzOptions {
    /// In place of examples and tests, call the tools with arguments made from their schemas; tools that may write, run
    /// programs or reach the network are left out
    #[arg(long, conflicts_with = "watch")]
    pub(in crate::cli) fuzz: bool,
    /// Fuzz those tools, too: they will do what they do
    #[arg(long, requires = "fuzz")]
    pub(in crate::cli) fuzz_all: bool,
    /// How many arguments are made for each tool
    #[arg(long, value_name = "N", requires = "fuzz", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) cases: u32,
    /// What the arguments are made from; the same seed makes the same
    #[arg(long, value_name = "N", requires = "fuzz")]
    pub(in crate::cli) seed: Option<u64>,
    /// Most time for each tool
    #[arg(long, value_name = "DURATION", requires = "fuzz", default_value = "30s", value_parser = parse_duration)]
    pub(in crate::cli) fuzz_time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TestFormat {
    /// One line a test, for people
    Human,
    /// One JSON object, for programs
    Json,
    /// A test report in XML, for GitLab and Jenkins
    Junit,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct CallOptions {
    /// The tool's name
    pub(in crate::cli) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}")]
    pub(in crate::cli) arguments: String,
    /// Print one JSON object, also on failure
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Say how long it took and how much memory it used
    #[arg(long)]
    pub(in crate::cli) time: bool,
    /// Call it again on every save
    #[arg(long)]
    pub(in crate::cli) watch: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchOptions {
    /// The tool's name
    pub(in crate::cli) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}")]
    pub(in crate::cli) arguments: String,
    /// How many calls are measured; none: as many as the time allows
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) calls: Option<u64>,
    /// How long calls are made
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(in crate::cli) time: Duration,
    /// How many calls are in flight through the engine's threads
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(in crate::cli) concurrency: usize,
    /// Do it although the tool may write, run programs or reach the network
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// How scripts are run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Scripts")]
pub(in crate::cli) struct ScriptOptions {
    /// Where scripts run; `process`: in processes of their own, which can be killed, for scripts that one does not trust
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Isolate::Threads)]
    pub(in crate::cli) isolate: Isolate,
    /// Let scripts use all that their specs allow them, in this run
    #[arg(long)]
    pub(in crate::cli) trust: bool,
}

/// Where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Isolate {
    /// On threads of this process
    Threads,
    /// In child processes
    Process,
}

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    crate::spec::parse_duration(text)
        .ok_or_else(|| String::from("expected a number and a unit, as in 250ms, 5s or 1.5m"))
}
