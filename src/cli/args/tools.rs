//! Options of the commands that run tools without a model, and the script options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Script tests (scripts/NAME_test.lua) run in this process, each in its own sandbox; `--isolate process` requires
`--fuzz`. See docs/testing.md.

Examples:
  deftool test
  deftool test --filter weather --watch
  deftool test scripts/weather_test.lua
  deftool test --fuzz --seed 1")]
pub(in crate::cli) struct TestOptions {
    /// Spec files, scripts, folders or projects [default: the project around the current folder]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Run only tools, tests and test files with TEXT in their name
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) filter: Option<String>,
    /// Output format of results
    #[arg(long, value_enum, default_value_t = TestFormat::Human)]
    pub(in crate::cli) format: TestFormat,
    /// Print the examples and tests without running them
    #[arg(long, conflicts_with_all = ["watch", "fuzz"])]
    pub(in crate::cli) list: bool,
    /// Run again after each change
    #[arg(short, long)]
    pub(in crate::cli) watch: bool,
    /// Time limit of one script test
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(in crate::cli) timeout: Duration,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) fuzzing: FuzzOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TestFormat {
    /// One line per test
    Human,
    /// One JSON object
    Json,
    /// JUnit XML, for GitLab and Jenkins
    Junit,
}

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Clone, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  deftool call word_count text=\"one two three\"
  deftool call word_count --help
  deftool call word_count '{\"text\": \"one\"}' --watch
  echo '{\"text\": \"one\"}' | deftool call word_count - --json"
)]
pub(in crate::cli) struct CallOptions {
    /// Name of the tool
    #[arg(required_unless_present = "help")]
    pub(in crate::cli) tool: Option<String>,
    /// Arguments: KEY=VALUE pairs, or one JSON object; `-` reads an object from stdin
    #[arg(value_name = "ARGUMENT")]
    pub(in crate::cli) arguments: Vec<String>,
    /// Print help; after the name of a tool, the help of the tool
    #[arg(short, long)]
    pub(in crate::cli) help: bool,
    /// Print the result or error as one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Print the duration and the memory use
    #[arg(long)]
    pub(in crate::cli) time: bool,
    /// Call again after each change
    #[arg(short, long)]
    pub(in crate::cli) watch: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

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

/// Script options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Scripts")]
pub(in crate::cli) struct ScriptOptions {
    /// Where scripts run; `process` uses child processes that can be killed, for untrusted scripts
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Isolate::Threads)]
    pub(in crate::cli) isolate: Isolate,
    /// Grant all permissions that the specs require, for this run only
    #[arg(long)]
    pub(in crate::cli) trust: bool,
}

/// Where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Isolate {
    /// Threads of this process
    Threads,
    /// Child processes
    Process,
}

/// Parses a duration such as `250ms` or `1.5m`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    deftool_lang::spec::parse_duration(text)
        .ok_or_else(|| String::from("expected a number and a unit, as in 250ms, 5s or 1.5m"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool tools
  deftool tools --json")]
pub(in crate::cli) struct ToolsOptions {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool completions bash > ~/.local/share/bash-completion/completions/deftool
  deftool completions fish > ~/.config/fish/completions/deftool.fish")]
pub(in crate::cli) struct CompletionsOptions {
    /// The shell
    pub(in crate::cli) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool man ~/.local/share/man/man1
  man deftool-check")]
pub(in crate::cli) struct ManOptions {
    /// The folder; created if it is missing
    pub(in crate::cli) folder: std::path::PathBuf,
}
