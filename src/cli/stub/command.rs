//! The command that a stub is run for.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use crate::cli::interrupt::Signals;
use crate::cli::output::say_error;
use crate::cli::{CliError, Exit};
#[cfg(target_os = "linux")]
use crate::script::processes::Descendants;
use crate::serve::stub::Stub;

/// After Ctrl-C, which a terminal sends to the command, too, it has this long to end by itself, with all that it started.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How often is looked whether it has, and how long a signal is waited for after a command that ended badly.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a command that finds the stub by its environment; how it ended.
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
    // Many a client does not start without a key.
    match key {
        Some(key) => {
            command.env("OPENAI_API_KEY", key);
        }
        None if std::env::var_os("OPENAI_API_KEY").is_none() => {
            command.env("OPENAI_API_KEY", "sk-not-needed");
        }
        None => {}
    }
    let started = Started::from_now_on();
    let mut child =
        command.spawn().map_err(|error| CliError::Usage(format!("cannot run `{shown}`: {error}")))?;
    let ended = async {
        let status = child.wait().await;
        // A terminal's Ctrl-C is for both of them, and may end the command before it is heard here.
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        status
    };
    tokio::select! {
        biased;
        () = signals.next() => {
            // It is served on, so that it can say what it has; who asks twice does not want to wait.
            let all_gone = async {
                let _ = child.wait().await;
                while !started.are_gone() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(LAST_WORDS, all_gone) => {}
                () = signals.next() => {}
            }
            started.kill();
            Ok(Exit::Interrupted)
        }
        status = ended => {
            let status = status.map_err(CliError::Runtime)?;
            if !status.success() {
                say_error(&format!("`{shown}` ended with {status}"));
            }
            Ok(if status.success() { Exit::Clean } else { Exit::Failed })
        }
    }
}

/// What the command starts, itself included. Elsewhere than on Linux nobody knows what that is; the command is ended in any case.
struct Started {
    #[cfg(target_os = "linux")]
    descendants: Descendants,
}

impl Started {
    /// Without what descends from this process already: of a shell that became it, say.
    fn from_now_on() -> Self {
        let started = Self {
            #[cfg(target_os = "linux")]
            descendants: Descendants::from_now_on(),
        };
        // From here on whatever loses its parent falls to the stub, so that it can be found.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        started
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
