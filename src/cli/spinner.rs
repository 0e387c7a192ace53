//! A line on stderr that moves while something is waited for, with what and how long; on terminals alone.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::clean;

/// Gone when it is dropped.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    pub(super) fn start(what: &str) -> Self {
        // It is drawn as soon as it moves, and has to say something then.
        let bar = ProgressBar::new_spinner().with_message(clean(what));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub(super) fn say(&self, what: &str) {
        self.0.set_message(clean(what));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
