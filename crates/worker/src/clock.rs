//! The clock of one request: milliseconds since it was submitted.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// The clock of a request. It changes only at ticks, so that the recording and the request machine get the same time.
/// In a replay it returns the recorded times, so that the events have the same times.
#[derive(Debug)]
pub(super) enum Clock {
    Live { start: Instant, now_ms: AtomicU64 },
    Recorded { now_ms: AtomicU64 },
}

impl Clock {
    /// Creates a clock that starts now.
    pub(super) fn live() -> Self {
        Self::Live { start: Instant::now(), now_ms: AtomicU64::new(0) }
    }

    /// Creates a clock for a replay. It is set by [`Clock::reach`].
    pub(super) fn recorded() -> Self {
        Self::Recorded { now_ms: AtomicU64::new(0) }
    }

    /// Returns the milliseconds from submit to the last tick.
    pub(super) fn now_ms(&self) -> u64 {
        match self {
            Self::Live { now_ms, .. } | Self::Recorded { now_ms } => now_ms.load(Ordering::Acquire),
        }
    }

    /// Updates a live clock to the current time. Does nothing in a replay.
    pub(super) fn tick(&self) {
        if let Self::Live { start, now_ms } = self {
            now_ms.store(start.elapsed().as_millis() as u64, Ordering::Release);
        }
    }

    /// Whether this is the clock of a replay.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded { .. })
    }

    /// Sets the clock of a replay. The time never decreases, even if the recorded time does.
    pub(super) fn reach(&self, at_ms: u64) {
        if let Self::Recorded { now_ms } = self {
            now_ms.fetch_max(at_ms, Ordering::AcqRel);
        }
    }
}
