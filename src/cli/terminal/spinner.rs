//! A spinner on stderr with a message and the elapsed time. Used on terminals only.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::text::one_line;
use indicatif::{ProgressBar, ProgressStyle};

/// A visible spinner; removed on drop.
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
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
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
