//! The time of one request: milliseconds since it was submitted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// A request's clock. In a replay it says what the recording says, so that the same events carry the same times.
#[derive(Debug)]
pub(super) enum Clock {
    Live(Instant),
    Recorded { now_ms: AtomicU64, tools: Mutex<std::collections::VecDeque<(u64, u64)>> },
}

impl Clock {
    /// Starts now.
    pub(super) fn live() -> Self {
        Self::Live(Instant::now())
    }

    /// Says what it is told; `tools` are start and end of each tool call, in order.
    pub(super) fn recorded(tools: impl IntoIterator<Item = (u64, u64)>) -> Self {
        Self::Recorded { now_ms: AtomicU64::new(0), tools: Mutex::new(tools.into_iter().collect()) }
    }

    /// Milliseconds since submit.
    pub(super) fn now_ms(&self) -> u64 {
        match self {
            Self::Live(start) => start.elapsed().as_millis() as u64,
            Self::Recorded { now_ms, .. } => now_ms.load(Ordering::Acquire),
        }
    }

    /// Whether it is a recording's.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded { .. })
    }

    /// A replay reached this time.
    pub(super) fn reach(&self, at_ms: u64) {
        if let Self::Recorded { now_ms, .. } = self {
            now_ms.fetch_max(at_ms, Ordering::AcqRel);
        }
    }

    /// A tool call ended; a replay's call took as long as the recorded one did.
    pub(super) fn tool_finished(&self) {
        if let Self::Recorded { tools, .. } = self {
            let recorded = tools.lock().ok().and_then(|mut tools| tools.pop_front());
            if let Some((_, finished_ms)) = recorded {
                self.reach(finished_ms);
            }
        }
    }
}
