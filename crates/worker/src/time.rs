//! The clock of a request, and its deadlines.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deftool_record::RecordedTime;
use tokio::time::Instant;

/// Effectively unlimited: one year.
pub(crate) const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The clock of a request: milliseconds since it was submitted. It changes only at ticks, so that the recording and the
/// request machine get the same time. In a replay it returns the recorded times, so that the events have the same
/// times.
#[derive(Debug)]
pub(crate) enum Clock {
    /// `from_ms`: the time at `start`.
    Live {
        start: Instant,
        from_ms: u64,
        now_ms: AtomicU64,
    },
    Recorded(RecordedTime),
}

impl Clock {
    /// Creates a clock that starts now, at a time in milliseconds.
    pub(crate) fn live(from_ms: u64) -> Self {
        Self::Live { start: Instant::now(), from_ms, now_ms: AtomicU64::new(from_ms) }
    }

    /// Returns the milliseconds from the submission to the last tick.
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Self::Live { now_ms, .. } => now_ms.load(Ordering::Acquire),
            Self::Recorded(time) => time.now_ms(),
        }
    }

    /// Returns the time at `now`. Unlike a tick, it does not affect the request machine.
    pub(crate) fn ms_at(&self, now: Instant) -> u64 {
        match self {
            // A stored time can be any number.
            Self::Live { start, from_ms, .. } => {
                from_ms.saturating_add(now.duration_since(*start).as_millis() as u64)
            }
            Self::Recorded(time) => time.now_ms(),
        }
    }

    /// Sets a live clock to `now`. Does nothing in a replay.
    pub(crate) fn tick(&self, now: Instant) {
        if let Self::Live { now_ms, .. } = self {
            now_ms.store(self.ms_at(now), Ordering::Release);
        }
    }

    /// Whether this is the clock of a replay.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded(_))
    }

    /// Sets the clock of a replay.
    pub(crate) fn advance_to(&self, at_ms: u64) {
        if let Self::Recorded(time) = self {
            time.advance_to(at_ms);
        }
    }
}

/// Returns the deadline `limit` after `now`. Limits are capped at [`NO_LIMIT`] to avoid an overflow.
pub(crate) fn after(now: Instant, limit: Duration) -> Instant {
    now + limit.min(NO_LIMIT)
}

/// Sleeps until the deadline; `None`: never returns.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Formats a time limit: `30 s`, `0.2 s`.
pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
