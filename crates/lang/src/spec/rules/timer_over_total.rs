use std::time::Duration;

use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a timer longer than the limit for the whole request
    ///
    /// `:total` ends the request first. The failure is then reported as a request timeout, without its actual cause.
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
    let message = format!("`:{key}` of {timer:?} is longer than `:total` of {:?}", total.0);
    Diagnostic::new(&TIMER_OVER_TOTAL, at, message).with_label_at(total.1, "limit for the whole request")
}
