use std::time::Duration;

use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a timer that is longer than the whole request may take
    ///
    /// `:total` ends the request before the timer can, so the failure is told as a request that took too long, not as what it
    /// was.
    ///
    /// ```eld fails
    /// (defworker :name "local" :tool "10m" :total "5m")
    /// ```
    ///
    /// ```eld repaired
    /// (defworker :name "local" :tool "1m" :total "5m")
    /// ```
    pub(crate) TIMER_OVER_TOTAL, "DT310", "timer-over-total", Warning
}

pub(in crate::spec) fn finding(at: Location, key: &str, timer: Duration, total: (Duration, Span)) -> Diagnostic {
    let message = format!("`:{key}` of {timer:?} is longer than `:total`, {:?}", total.0);
    Diagnostic::new(&TIMER_OVER_TOTAL, at, message).and_at(total.1, "the request ends here")
}
