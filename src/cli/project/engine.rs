//! Starts the script runner of a command according to `--isolate`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use deftool_process::{HelperProgram, set_guard};
use deftool_project::resolve_links;
use deftool_script::{
    Isolation, RunnerOptions, ScriptRunner, ScriptSink, check_in_processes, protect_folders,
};

use super::script_log;
use super::trust::state_folder;
use super::user::config_folder;
use crate::cli::outcome::CliError;

// Script options.
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

/// The argument of the child processes of `--isolate process`.
pub(in crate::cli) const SCRIPT_HOST: &str = "script-host";

/// The argument of the guards of programs and managed servers.
pub(in crate::cli) const GUARD: &str = "guard";

/// Configures the child processes of a command: the guards of programs and servers and, with `--isolate process`, the
/// script compiler. Must be called before any file is read. `isolate`: where the scripts of the command run, if it runs
/// any.
///
/// # Errors
/// If the command runs scripts and the path of this executable is not known.
pub(in crate::cli) fn prepare(isolate: Option<Isolate>) -> Result<(), CliError> {
    let of_deftool = [state_folder(), config_folder().ok().flatten()];
    protect_folders(of_deftool.into_iter().flatten().map(|folder| resolve_links(&folder)).collect());
    let program = match HelperProgram::this_program([SCRIPT_HOST]) {
        Ok(program) => program,
        // A root without `/proc`; the command starts no processes.
        Err(_) if isolate.is_none() => return Ok(()),
        Err(error) => return Err(CliError::Runtime(error)),
    };
    set_guard(HelperProgram { arguments: vec![GUARD.into()], ..program.clone() });
    if isolate == Some(Isolate::Process) {
        check_in_processes(program);
    }
    Ok(())
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
    let isolation = match options.isolate {
        Isolate::Threads => Isolation::Threads,
        Isolate::Process => {
            Isolation::Processes(HelperProgram::this_program([SCRIPT_HOST]).map_err(CliError::Runtime)?)
        }
    };
    let options = RunnerOptions { sink, isolation, ..RunnerOptions::default() };
    Ok(Arc::new(ScriptRunner::new(options)))
}
