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

/// Asserts that `work` takes linear time, even for hostile input: it gets a quarter of `size` and four times `size`, and
/// for this factor of sixteen it must take less than 64 times as long. Quadratic time would be 256 times as long; between
/// them is a factor of four on each side for caches and neighbours of a virtual machine. A reduced run uses half of `size`.
pub fn assert_linear(what: &str, size: usize, work: impl Fn(usize)) {
    let size = size / step(2);
    let time_of = |size| {
        let clock = CpuClock::start();
        work(size);
        clock.elapsed()
    };
    let (mut small, mut large) = (time_of(size / 4), time_of(4 * size));
    // Take the fastest run, because other processes slow down some of them. Shorter times are noise.
    let is_over = |small: Duration, large: Duration| large > small.max(Duration::from_millis(3)) * 64;
    for _ in 0..5 {
        if !is_over(small, large) {
            return;
        }
        (small, large) = (small.min(time_of(size / 4)), large.min(time_of(4 * size)));
    }
    assert!(!is_over(small, large), "{what}: {small:?}, and {large:?} for sixteen times the size");
}
