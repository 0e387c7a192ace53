//! The command that runs against the stub.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use deftool_stub::Stub;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::eprint_error;

#[cfg(target_os = "linux")]
use deftool_process::Descendants;

/// The time after Ctrl-C in which the command and its descendants can exit by themselves. A terminal also sends Ctrl-C
/// to the command.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The interval of checks for running processes, and the wait for a signal after the command failed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command with the stub's endpoint in its environment. Returns its result.
pub(super) async fn run_command(
    words: &[OsString],
    stub: &Stub,
    key: Option<&str>,
    signals: &mut Signals,
) -> Result<Exit, CliError> {
    let Some((program, arguments)) = words.split_first() else { return Ok(Exit::Clean) };
    let shown = program.to_string_lossy().into_owned();
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env("OPENAI_BASE_URL", stub.endpoint()).kill_on_drop(true);
    // Clients of the Messages API append `/v1/messages`.
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", stub.address()));
    // Many clients do not start without a key.
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        if key.is_some() || std::env::var_os(name).is_none() {
            command.env(name, key.unwrap_or("sk-not-needed"));
        }
    }
    let descendants = CommandProcesses::new();
    let mut child =
        command.spawn().map_err(|error| CliError::Usage(format!("cannot run `{shown}`: {error}")))?;
    let ended = async {
        let status = child.wait().await;
        // A terminal sends Ctrl-C to both processes. The command may exit before the signal arrives here.
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        status
    };
    tokio::select! {
        biased;
        () = signals.next() => {
            // The stub keeps serving, so that the command can finish its output. A second signal ends the wait.
            let all_exited = async {
                let _ = child.wait().await;
                while !descendants.are_gone() {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(GRACE_PERIOD, all_exited) => {}
                () = signals.next() => {}
            }
            descendants.kill();
            Ok(Exit::Interrupted)
        }
        status = ended => {
            let status = status.map_err(CliError::Runtime)?;
            if !status.success() {
                eprint_error(&format!("`{shown}` ended with {status}"));
            }
            Ok(if status.success() { Exit::Clean } else { Exit::Failed })
        }
    }
}

/// The command and its descendants. Descendants are tracked on Linux only; on other systems, only the command is ended.
struct CommandProcesses {
    #[cfg(target_os = "linux")]
    descendants: Descendants,
}

impl CommandProcesses {
    /// Excludes existing descendants of this process, such as children of a shell that was replaced by `exec`.
    fn new() -> Self {
        let processes = Self {
            #[cfg(target_os = "linux")]
            descendants: Descendants::from_now_on(),
        };
        // Orphaned descendants are reparented to this process, so that they can be found.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        processes
    }

    #[cfg(target_os = "linux")]
    fn are_gone(&self) -> bool {
        self.descendants.are_gone()
    }

    #[cfg(not(target_os = "linux"))]
    fn are_gone(&self) -> bool {
        true
    }

    fn kill(&self) {
        #[cfg(target_os = "linux")]
        self.descendants.kill(|| self.are_gone());
    }
}
