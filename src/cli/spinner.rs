//! A line on stderr that moves while something is waited for, with what and how long; on terminals alone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::text::one_line;

/// Gone when it is dropped.
pub(super) struct Spinner(ProgressBar);

/// The one that is on the screen.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Takes a spinner off the screen while `write` writes there, from whichever thread.
pub(super) fn aside(write: impl FnOnce()) {
    match &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl Spinner {
    pub(super) fn start(what: &str) -> Self {
        // It is drawn as soon as it moves, and has to say something then.
        let bar = ProgressBar::new_spinner().with_message(one_line(what.to_owned()));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    pub(super) fn say(&self, what: &str) {
        self.0.set_message(one_line(what.to_owned()));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}
