//! How a command runs scripts: what `--isolate` and the like say, in one place.

use std::sync::Arc;

use super::CliError;
use super::args::{Command, Isolate, ScriptOptions};
use super::script_log;
use crate::script::{
    Isolation, ProcessOptions, RunnerOptions, ScriptRunner, ScriptSink, check_in_processes, guard_programs,
};

/// The command that makes this program a child of `--isolate process`.
const SCRIPT_HOST: &str = "script-host";

/// Settles, before anything is read, which processes `command` starts beside itself: the guards of programs and, under
/// `--isolate process`, what compiles the scripts.
///
/// # Errors
/// When the system does not say which file this program is.
pub(super) fn prepare(command: &Command) -> Result<(), CliError> {
    let program = ProcessOptions::this_program([SCRIPT_HOST]).map_err(CliError::Runtime)?;
    guard_programs(program.clone());
    if command.scripts().is_some_and(|scripts| scripts.isolate == Isolate::Process) {
        check_in_processes(program);
    }
    Ok(())
}

/// The threads, or processes, that the scripts of a command run on.
///
/// # Errors
/// When the options cannot be met.
pub(super) fn start(options: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    start_with(options, script_log::sink())
}

/// The same for calls by the hundred, whose log lines nobody would read.
///
/// # Errors
/// When the options cannot be met.
pub(super) fn start_quiet(options: &ScriptOptions) -> Result<Arc<ScriptRunner>, CliError> {
    start_with(options, ScriptSink::new(|_| {}))
}

fn start_with(options: &ScriptOptions, sink: ScriptSink) -> Result<Arc<ScriptRunner>, CliError> {
    let isolation = match options.isolate {
        Isolate::Threads => Isolation::Threads,
        Isolate::Process => {
            Isolation::Processes(ProcessOptions::this_program([SCRIPT_HOST]).map_err(CliError::Runtime)?)
        }
    };
    let options = RunnerOptions { sink, isolation, ..RunnerOptions::default() };
    Ok(Arc::new(ScriptRunner::new(options)))
}
