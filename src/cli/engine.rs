//! Starts the script runner of a command according to `--isolate`.

use std::sync::Arc;

use deftool_process::{HelperProgram, set_guard};
use deftool_script::{Isolation, RunnerOptions, ScriptRunner, ScriptSink, check_in_processes};

use super::args::{Isolate, ScriptOptions};
use super::command::CliError;
use super::script_log;

/// The argument of the child processes of `--isolate process`.
pub(super) const SCRIPT_HOST: &str = "script-host";

/// The argument of the guards of programs and managed servers.
pub(super) const GUARD: &str = "guard";

/// Configures the child processes of a command: the guards of programs and servers and, with `--isolate process`, the script
/// compiler. Must be called before any file is read. `options`: those of a command that runs scripts.
///
/// # Errors
/// If the command runs scripts and the path of this executable is not known.
pub(super) fn prepare(options: Option<&ScriptOptions>) -> Result<(), CliError> {
    let program = match HelperProgram::this_program([SCRIPT_HOST]) {
        Ok(program) => program,
        // A root without `/proc`; the command starts no processes.
        Err(_) if options.is_none() => return Ok(()),
        Err(error) => return Err(CliError::Runtime(error)),
    };
    set_guard(HelperProgram { arguments: vec![GUARD.into()], ..program.clone() });
    if options.is_some_and(|scripts| scripts.isolate == Isolate::Process) {
        check_in_processes(program);
    }
    Ok(())
}

/// Starts a script runner with threads or processes. Log lines go to stderr.
///
/// # Errors
/// If the path of this executable is not known.
pub(super) fn start(options: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    start_with(options, script_log::sink())
}

/// Starts a script runner that discards log lines, for many calls.
///
/// # Errors
/// If the path of this executable is not known.
pub(super) fn start_quiet(options: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    start_with(options, ScriptSink::new(|_| {}))
}

/// Starts a script runner with `sink` for log lines and progress.
///
/// # Errors
/// If the path of this executable is not known.
pub(super) fn start_with(options: &ScriptOptions, sink: ScriptSink) -> Result<Arc<ScriptRunner>, CliError> {
    let isolation = match options.isolate {
        Isolate::Threads => Isolation::Threads,
        Isolate::Process => {
            Isolation::Processes(HelperProgram::this_program([SCRIPT_HOST]).map_err(CliError::Runtime)?)
        }
    };
    let options = RunnerOptions { sink, isolation, ..RunnerOptions::default() };
    Ok(Arc::new(ScriptRunner::new(options)))
}
