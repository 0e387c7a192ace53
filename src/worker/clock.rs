//! The time of one request: milliseconds since it was submitted.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use super::recording::Stopped;

/// A request's clock. It stands still between two ticks, so that what is recorded and what the machine is told carry
/// the same time; in a replay it says what the recording says, so that the same events carry the same times.
#[derive(Debug)]
pub(super) enum Clock {
    Live {
        start: Instant,
        now_ms: AtomicU64,
    },
    Recorded {
        now_ms: AtomicU64,
        tools: Mutex<VecDeque<(u64, u64)>>,
        /// Where the recorded request was stopped, if it was.
        stopped: Option<Stopped>,
    },
}

impl Clock {
    /// Starts now.
    pub(super) fn live() -> Self {
        Self::Live { start: Instant::now(), now_ms: AtomicU64::new(0) }
    }

    /// Says what it is told; `tools` are start and end of each tool call, in order.
    pub(super) fn recorded(tools: impl IntoIterator<Item = (u64, u64)>, stopped: Option<Stopped>) -> Self {
        Self::Recorded { now_ms: AtomicU64::new(0), tools: Mutex::new(tools.into_iter().collect()), stopped }
    }

    /// Milliseconds from submit to the last tick.
    pub(super) fn now_ms(&self) -> u64 {
        match self {
            Self::Live { now_ms, .. } | Self::Recorded { now_ms, .. } => now_ms.load(Ordering::Acquire),
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

    /// A replay reached this time.
    pub(super) fn reach(&self, at_ms: u64) {
        if let Self::Recorded { now_ms, .. } = self {
            now_ms.fetch_max(at_ms, Ordering::AcqRel);
        }
    }

    /// Where the recorded request was stopped, if that was in the tool call that begins now: there is no more call
    /// that ended.
    pub(super) fn stopped_in_tool(&self) -> Option<Stopped> {
        let Self::Recorded { tools, stopped, .. } = self else { return None };
        let none_ended = tools.lock().is_ok_and(|tools| tools.is_empty());
        stopped.clone().filter(|_| none_ended)
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
