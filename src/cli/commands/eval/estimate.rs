//! The estimated duration of an evaluation, printed once: from recorded times, otherwise from the first replies.

use std::time::{Duration, Instant};

use deftool_lang::text::count;

use crate::cli::terminal::output::eprint_progress;

/// Shorter evaluations need no estimate, and the first replies show the duration after this time.
const WORTH_IT: Duration = Duration::from_secs(2);

/// The estimated duration.
pub(super) struct Estimate {
    /// When the first reply had ended. It takes longer than the others: the server reads the tools.
    first: Option<Instant>,
    is_printed: bool,
}

impl Estimate {
    /// Prints the number of requests to send, and their duration, as in
    /// `40 requests to send, 12 recorded, about 3 minutes`. `expected`: the duration, if recorded replies show it.
    pub(super) fn start(requests: usize, recorded: usize, expected: Option<Duration>) -> Self {
        let expected = expected.filter(|expected| *expected >= WORTH_IT);
        let recorded = if recorded > 0 { format!(", {recorded} recorded") } else { String::new() };
        let duration = expected.map_or_else(String::new, |expected| format!(", {}", about(expected)));
        eprint_progress(&format!("{} to send{recorded}{duration}", count(requests, "request")));
        Self { first: None, is_printed: expected.is_some() }
    }

    /// Prints the duration of the other requests of `total`, when enough have ended.
    pub(super) fn report(&mut self, ended: usize, total: usize) {
        let elapsed = self.first.get_or_insert_with(Instant::now).elapsed();
        if self.is_printed || ended < 2 || ended == total || elapsed < WORTH_IT {
            return;
        }
        self.is_printed = true;
        let left = elapsed.mul_f64(number(total - ended) / number(ended - 1));
        eprint_progress(&format!("{} left for {}", about(left), count(total - ended, "request")));
    }
}

/// Describes a duration, as in `about 3 minutes`.
fn about(duration: Duration) -> String {
    let of = |number: u64, unit: &str| count(usize::try_from(number).unwrap_or(usize::MAX), unit);
    let words = match duration.as_secs() {
        seconds @ ..90 => of(seconds.max(1), "second"),
        seconds => of(seconds.div_ceil(60), "minute"),
    };
    format!("about {words}")
}

/// Converts a number of requests.
pub(super) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
