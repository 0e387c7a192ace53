//! `deftool replay`: replays recordings without server and key, for example in CI. With `--specs`, validates the
//! arguments of recorded calls against the current specs instead.

mod play;
mod specs;

use std::path::PathBuf;

use clap::Args;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::worker::recordings::parse_pace;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool replay recordings/
  deftool replay recordings/ --replay-tools --json
  deftool replay recordings/ --update
  deftool replay --specs calls.jsonl")]
pub(in crate::cli) struct ReplayOptions {
    /// Recordings, or folders that contain recordings
    #[arg(required = true)]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Do not replay; validate the arguments of recorded calls against the specs. Also accepts lists of calls, one
    /// `{"tool": …, "arguments": …}` per line
    #[arg(long)]
    pub(in crate::cli) specs: bool,
    /// Continue if a request differs from the recorded one, and exit with 0
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_lenient: bool,
    /// Use recorded tool results instead of running tools
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_tools: bool,
    /// Replay with the recorded delays, divided by FACTOR if given
    #[arg(long, conflicts_with = "specs", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Also report differences in key order, which affect prompt caches
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) key_order: bool,
    /// Update the recording if only request bodies differ
    #[arg(long, conflicts_with_all = ["specs", "replay_lenient"])]
    pub(in crate::cli) update: bool,
    /// Redact matches of REGEX, or of its group, in the output; can be repeated
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Worker to use [default: the recorded worker]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(in crate::cli) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    if options.specs { specs::run(options) } else { play::run(options) }
}
