//! CPU time of a thread, independent of the load of the machine.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::step;

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

/// Asserts that `work` takes linear time, even for hostile input: it gets a size, and for four times the size it must
/// take less than eight times as long. Quadratic time would be sixteen times as long. A reduced run uses half of `size`.
pub fn assert_linear(what: &str, size: usize, work: impl Fn(usize)) {
    let size = size / step(2);
    let time_of = |size| {
        let clock = CpuClock::start();
        work(size);
        clock.elapsed()
    };
    let (mut one, mut four) = (time_of(size), time_of(4 * size));
    // Take the fastest run, because other processes slow down some of them. Shorter times are noise.
    let is_over = |one: Duration, four: Duration| four > one.max(Duration::from_millis(20)) * 8;
    for _ in 0..5 {
        if !is_over(one, four) {
            return;
        }
        (one, four) = (one.min(time_of(size)), four.min(time_of(4 * size)));
    }
    assert!(!is_over(one, four), "{what}: {one:?}, and {four:?} for four times the size");
}
