//! The child processes of a program that opens workers: the hosts of scripts, and the guards of programs and servers.

use std::io::Result;
use std::sync::Arc;

use deftool_lang::text::readable;
use deftool_process::{HelperProgram, set_guard};
use deftool_project::resolve_links;
use deftool_script::{
    Isolation, RunnerOptions, ScriptEvent, ScriptRunner, ScriptSink, check_in_processes, protect_folders,
};

use crate::folders::{config_folder, state_folder};

/// The argument of the child processes that run scripts.
const SCRIPT_HOST: &str = "script-host";

/// The argument of the guards of programs and managed servers.
const GUARD: &str = "guard";

/// Serves the parent process, if this process was started as a script host or a guard. To be called first in `main`: a
/// program whose executable is also the host of its scripts and the guard of its programs.
pub fn serve_parent() -> Option<Result<()>> {
    match std::env::args_os().nth(1)?.to_str()? {
        SCRIPT_HOST => Some(prepare(None).and_then(|()| deftool_script::serve_isolated())),
        GUARD => Some(deftool_process::serve_guard()),
        _ => None,
    }
}

/// Configures the child processes of this program: the guards of programs and servers and, with isolated scripts, the
/// script compiler. Must be called before any file is read. `is_isolated`: whether scripts run in child processes; `None`: no
/// scripts are run.
///
/// # Errors
/// If scripts are run and the path of this executable is not known.
pub fn prepare(is_isolated: Option<bool>) -> Result<()> {
    let of_deftool = [state_folder(), config_folder().ok().flatten()];
    protect_folders(of_deftool.into_iter().flatten().map(|folder| resolve_links(&folder)).collect());
    let program = match HelperProgram::this_program([SCRIPT_HOST]) {
        Ok(program) => program,
        // A root without `/proc`; the program starts no processes.
        Err(_) if is_isolated.is_none() => return Ok(()),
        Err(error) => return Err(error),
    };
    set_guard(HelperProgram { arguments: vec![GUARD.into()], ..program.clone() });
    if is_isolated == Some(true) {
        check_in_processes(program);
    }
    Ok(())
}

/// Starts a script runner, with `sink` for log lines and progress.
///
/// # Errors
/// If the path of this executable is not known.
pub fn start_scripts(is_isolated: bool, sink: ScriptSink) -> Result<Arc<ScriptRunner>> {
    let isolation = if is_isolated {
        Isolation::Processes(HelperProgram::this_program([SCRIPT_HOST])?)
    } else {
        Isolation::Threads
    };
    Ok(Arc::new(ScriptRunner::new(RunnerOptions { sink, isolation, ..RunnerOptions::default() })))
}

/// Formats an event of a script for the user.
pub fn script_line(event: &ScriptEvent) -> String {
    match event {
        ScriptEvent::Logged { tool, level, text, .. } => {
            format!("{}: {tool}: {}", level.as_str(), indented(text))
        }
        ScriptEvent::Progressed { tool, fraction, text, .. } => {
            let percent = fraction.map_or_else(String::new, |fraction| format!("{:.0} % ", fraction * 100.0));
            format!("{tool}: {percent}{}", indented(text))
        }
    }
}

/// Replaces control characters, and indents all lines except the first.
fn indented(text: &str) -> String {
    readable(text).replace('\n', "\n    ")
}
