//! `--watch` of a command: the same again on every save.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use super::interrupt::interrupted;
use super::output::{say, say_error, stdout_failed, stdout_is_terminal};
use super::{CliError, Exit, Place};
use crate::project::{Load, LoadOptions, ProjectError, keep_loading};

/// What is done on every save.
pub(super) struct Rerun<R> {
    /// What is loaded beside the specs, and how.
    pub(super) how: LoadOptions,
    /// Whether a terminal's screen is cleared before.
    pub(super) clears_screen: bool,
    /// Writes the result of a load to stdout, which it is given with when that began; what it returns is said on stderr, after the time.
    pub(super) report: R,
}

impl<R: FnMut(Load, Instant) -> String + Send + 'static> Rerun<R> {
    /// Until Ctrl-C, or until nobody reads any more.
    pub(super) fn watch(mut self, paths: &[PathBuf], place: &Place) -> Result<Exit, CliError> {
        let (paths, folder, current) = (paths.to_vec(), place.folder.clone(), place.current.clone());
        let (ended, end) = tokio::sync::oneshot::channel();
        let watch = move || {
            let how = std::mem::take(&mut self.how);
            let _ = ended.send(keep_loading(&paths, &folder, &current, &how, |loaded, started| {
                self.tell(loaded, started)
            }));
        };
        std::thread::Builder::new()
            .name(String::from("deftool-rerun"))
            .spawn(watch)
            .map_err(CliError::Runtime)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
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

    fn tell(&mut self, loaded: Result<Load, &ProjectError>, started: Instant) -> ControlFlow<()> {
        if self.clears_screen && stdout_is_terminal() {
            clear_screen();
        }
        let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        match loaded {
            Ok(load) => {
                let summary = (self.report)(load, started);
                let summary = if summary.is_empty() { summary } else { format!("{summary}; ") };
                say(&format!("{time} {summary}watching, Ctrl-C ends"));
            }
            Err(error) => say_error(&format!("{time} {error}")),
        }
        if stdout_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What was scrolled away stays: it is not ours.
fn clear_screen() {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(b"\x1b[2J\x1b[H");
}
