//! A spinner or a progress bar on stderr, with a message and the elapsed time. Used on terminals only.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::text::one_line;
use indicatif::{ProgressBar, ProgressStyle};

/// A visible spinner or progress bar; removed on drop.
pub(in crate::cli) struct Spinner(ProgressBar);

/// The visible spinner.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Hides the spinner while `write` writes to stderr. Can be called from any thread.
pub(in crate::cli) fn suspend(write: impl FnOnce()) {
    match &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl Spinner {
    pub(in crate::cli) fn start(message: &str) -> Self {
        // Set the message first: the spinner is drawn at the first tick.
        let bar = ProgressBar::new_spinner().with_message(one_line(message.to_owned()));
        Self::show(bar, "{spinner} {msg} {elapsed}")
    }

    /// Starts a progress bar for `total` items.
    pub(in crate::cli) fn start_bar(total: usize) -> Self {
        Self::show(ProgressBar::new(total as u64), "{bar:30} {pos}/{len} {msg}{elapsed}")
    }

    fn show(bar: ProgressBar, template: &str) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    /// Sets the number of items that are done, and of those that failed.
    pub(in crate::cli) fn set_position(&self, done: usize, failed: usize) {
        self.0.set_position(done as u64);
        if failed > 0 {
            self.0.set_message(format!("{failed} failed "));
        }
    }

    pub(in crate::cli) fn set_message(&self, message: &str) {
        self.0.set_message(one_line(message.to_owned()));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}
