//! The command that a stub is run for.

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::interrupt::Signals;
use crate::cli::output::say_error;
use crate::cli::{CliError, Exit};
use crate::serve::stub::Stub;

/// After Ctrl-C, which a terminal sends to the command, too, it has this long to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(2);

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
    adopt();
    let mut child =
        command.spawn().map_err(|error| CliError::Usage(format!("cannot run `{shown}`: {error}")))?;
    tokio::select! {
        status = child.wait() => {
            let status = status.map_err(CliError::Runtime)?;
            if !status.success() {
                say_error(&format!("`{shown}` ended with {status}"));
            }
            Ok(if status.success() { Exit::Clean } else { Exit::Failed })
        }
        () = signals.next() => {
            // It is served on, so that it can say what it has; who asks twice does not want to wait.
            tokio::select! {
                _ = tokio::time::timeout(LAST_WORDS, child.wait()) => {}
                () = signals.next() => {}
            }
            kill_all();
            Ok(Exit::Interrupted)
        }
    }
}

/// What the command starts falls to the stub when its parent ends, so that it can be found.
fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends whatever the command started; it itself is ended in any case. Elsewhere than on Linux nobody knows what that is.
fn kill_all() {
    #[cfg(target_os = "linux")]
    crate::worker::kill_descendants();
}
