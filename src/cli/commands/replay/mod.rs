//! `deftool replay`: verifies recordings without a server and a key, for example in CI. With `--specs`, validates the
//! arguments of recorded calls against the current specs instead. Runs no tool.

mod play;
mod specs;

use std::path::PathBuf;

use clap::Args;

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Compares each request with the recorded one, and uses the recorded replies and tool results: no tool runs. \
`deftool run --replay FILE` runs the tools.

Examples:
  deftool replay recordings/
  deftool replay recordings/ --lenient --json
  deftool replay recordings/ --update
  deftool replay --specs calls.jsonl")]
pub(in crate::cli) struct ReplayOptions {
    /// Recordings, or folders that contain recordings
    #[arg(required = true)]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Do not replay; validate the arguments of recorded calls against the specs. Also accepts journals, sessions of
    /// `deftool chat`, and lists of calls, one `{"tool": …, "arguments": …}` per line
    #[arg(long)]
    pub(in crate::cli) specs: bool,
    /// Continue if a request differs from the recorded one, and exit with 0
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) lenient: bool,
    /// Update the recording if only request bodies differ
    #[arg(long, conflicts_with_all = ["specs", "lenient"])]
    pub(in crate::cli) update: bool,
    /// Redact matches of REGEX, or of its group, in the output; can be repeated
    #[arg(long, hide_short_help = true, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Worker to use [default: the recorded worker]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

pub(in crate::cli) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    if options.specs { specs::run(options) } else { play::run(options) }
}
