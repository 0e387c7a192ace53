//! CPU time of a thread, independent of the load of the machine.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Measures the CPU time of the thread that created it.
pub struct CpuClock {
    started: Duration,
}

impl CpuClock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { started: now() }
    }

    /// Returns the CPU time of this thread since the start.
    pub fn elapsed(&self) -> Duration {
        now().saturating_sub(self.started)
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}
