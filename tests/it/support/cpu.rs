//! What work costs, on a machine that may have much else to do.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Counts the processor time of the thread that started it.
pub(crate) struct CpuClock {
    started: Duration,
}

impl CpuClock {
    pub(crate) fn start() -> Self {
        Self { started: now() }
    }

    /// How long this thread has run since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        now().saturating_sub(self.started)
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}
