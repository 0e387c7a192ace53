//! `--watch`: runs a command again after each change.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use deftool_project::{Load, LoadOptions, ProjectError, keep_loading};

use super::inputs::CommandDirs;
use crate::cli::outcome::{CliError, Exit, runtime};
use crate::cli::terminal::interrupt::interrupted;
use crate::cli::terminal::output::{eprint_error, eprint_progress, stdout_failed, stdout_is_terminal};

/// A command that runs again after each change.
pub(in crate::cli) struct Rerun<R> {
    /// The options for loading the project.
    pub(in crate::cli) options: LoadOptions,
    /// Whether the screen of a terminal is cleared before each run.
    pub(in crate::cli) clears_screen: bool,
    /// Writes the result of a load to stdout. Receives the load and its start time, and returns a summary for stderr.
    pub(in crate::cli) report: R,
}

impl<R: FnMut(Load, Instant) -> String + Send + 'static> Rerun<R> {
    /// Runs until Ctrl-C, or until stdout is closed.
    pub(in crate::cli) fn watch(mut self, paths: &[PathBuf], dirs: &CommandDirs) -> Result<Exit, CliError> {
        let (paths, folder, current) = (paths.to_vec(), dirs.project.clone(), dirs.current.clone());
        let (ended, end) = tokio::sync::oneshot::channel();
        let watch = move || {
            let options = std::mem::take(&mut self.options);
            let _ = ended.send(keep_loading(&paths, &folder, &current, &options, |loaded, started| {
                self.report_load(loaded, started)
            }));
        };
        std::thread::Builder::new()
            .name(String::from("deftool-rerun"))
            .spawn(watch)
            .map_err(CliError::Runtime)?;
        let runtime = runtime()?;
        runtime.block_on(async {
            tokio::select! {
                interrupted = interrupted() => match interrupted {
                    Ok(()) => Ok(Exit::Interrupted),
                    Err(error) => Err(CliError::Runtime(error)),
                },
                watched = end => match watched {
                    Ok(Err(error)) => Err(error.into()),
                    Ok(Ok(())) => Ok(Exit::Clean),
                    Err(_) => Ok(Exit::Failed),
                },
            }
        })
    }

    /// Reports a load, or the reason why it failed. Stops the watch if stdout is closed.
    fn report_load(&mut self, loaded: Result<Load, &ProjectError>, started: Instant) -> ControlFlow<()> {
        if self.clears_screen && stdout_is_terminal() {
            clear_screen();
        }
        let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        match loaded {
            Ok(load) => {
                let summary = (self.report)(load, started);
                let summary = if summary.is_empty() { summary } else { format!("{summary}; ") };
                eprint_progress(&format!("{time} {summary}watching; press Ctrl-C to stop"));
            }
            Err(error) => eprint_error(&format!("{time} {error}")),
        }
        if stdout_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Clears the screen, but not the scrollback.
fn clear_screen() {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(b"\x1b[2J\x1b[H");
}
