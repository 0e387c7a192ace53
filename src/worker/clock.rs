//! The time of one request: milliseconds since it was submitted.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// A request's clock. It stands still between two ticks, so that what is recorded and what the machine is told carry
/// the same time; in a replay it says what the recording says, so that the same events carry the same times.
#[derive(Debug)]
pub(super) enum Clock {
    Live { start: Instant, now_ms: AtomicU64 },
    Recorded { now_ms: AtomicU64 },
}

impl Clock {
    /// Starts now.
    pub(super) fn live() -> Self {
        Self::Live { start: Instant::now(), now_ms: AtomicU64::new(0) }
    }

    /// Says what it is told.
    pub(super) fn recorded() -> Self {
        Self::Recorded { now_ms: AtomicU64::new(0) }
    }

    /// Milliseconds from submit to the last tick.
    pub(super) fn now_ms(&self) -> u64 {
        match self {
            Self::Live { now_ms, .. } | Self::Recorded { now_ms } => now_ms.load(Ordering::Acquire),
        }
    }

    /// Something happened now. A recording's clock is moved by what is replayed.
    pub(super) fn tick(&self) {
        if let Self::Live { start, now_ms } = self {
            now_ms.store(start.elapsed().as_millis() as u64, Ordering::Release);
        }
    }

    /// Whether it is a recording's.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded { .. })
    }

    /// A replay reached this time. It never goes back, whatever the recording says.
    pub(super) fn reach(&self, at_ms: u64) {
        if let Self::Recorded { now_ms } = self {
            now_ms.fetch_max(at_ms, Ordering::AcqRel);
        }
    }
}
