//! Resource usage of a process, and statistics of samples.

use std::time::Duration;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Returns microseconds of a clock that all processes on this machine share.
pub(crate) fn now_us() -> u64 {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_micros() as u64
}

/// CPU time of this process so far, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: i64,
    pub(crate) system: i64,
}

impl Cpu {
    pub(crate) fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        Self { user: usage.user_time().num_microseconds(), system: usage.system_time().num_microseconds() }
    }

    /// Returns the user and system time since `self`, divided by `count`, in microseconds.
    pub(crate) fn each(self, count: usize) -> (f64, f64) {
        let now = Self::now();
        let each = |now: i64, then: i64| (now - then) as f64 / count as f64;
        (each(now.user, self.user), each(now.system, self.system))
    }
}

/// Returns a value from `/proc/self/status`. `VmHWM` and `VmRSS` are in KiB.
pub(crate) fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the number of open descriptors, without the one for this query.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Raises the descriptor limit. The usual limit of 1,024 is too low for a thousand streams.
pub(crate) fn allow_descriptors() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

/// Formats median, p99 and maximum of samples in microseconds as milliseconds.
pub(crate) fn spread(mut samples: Vec<u64>) -> String {
    assert!(!samples.is_empty(), "nothing was measured");
    samples.sort_unstable();
    let at = |part: usize| samples[(samples.len() - 1) * part / 1000] as f64 / 1000.0;
    let (half, nearly, most) = (at(500), at(990), at(1000));
    format!("p50 {half:>7.2} ms   p99 {nearly:>7.2} ms   max {most:>7.2} ms")
}
