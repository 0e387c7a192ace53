//! Starts the script runner of a command according to `--isolate`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use deftool_engine::start_scripts;
use deftool_script::{ScriptRunner, ScriptSink};

use super::script_log;
use crate::cli::outcome::CliError;

// Script options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Scripts")]
pub(in crate::cli) struct ScriptOptions {
    /// Where scripts run; `process` uses child processes that can be killed, for untrusted scripts
    #[arg(long, hide_short_help = true, value_enum, value_name = "WHERE", default_value_t = Isolate::Threads)]
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

/// Configures the child processes of a command. Must be called before any file is read. `isolate`: where the scripts of the
/// command run, if it runs any.
///
/// # Errors
/// If the command runs scripts and the path of this executable is not known.
pub(in crate::cli) fn prepare(isolate: Option<Isolate>) -> Result<(), CliError> {
    deftool_engine::prepare(isolate.map(|isolate| isolate == Isolate::Process)).map_err(CliError::Runtime)
}

/// Starts a script runner with threads or processes. Log lines go to stderr.
///
/// # Errors
/// If the path of this executable is not known.
pub(in crate::cli) fn start(options: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    start_with(options, script_log::sink())
}

/// Starts a script runner with `sink` for log lines and progress.
///
/// # Errors
/// If the path of this executable is not known.
pub(in crate::cli) fn start_with(
    options: &ScriptOptions,
    sink: ScriptSink,
) -> Result<Arc<ScriptRunner>, CliError> {
    start_scripts(options.isolate == Isolate::Process, sink).map_err(CliError::Runtime)
}
