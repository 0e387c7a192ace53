//! What a process takes, and figures of many samples.

use std::time::Duration;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Microseconds on the clock that all processes of this machine share.
pub(crate) fn now_us() -> u64 {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_micros() as u64
}

/// CPU that this process took so far, in microseconds.
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

    /// Microseconds for each of `count`, user and system, since `self`.
    pub(crate) fn each(self, count: usize) -> (f64, f64) {
        let now = Self::now();
        let each = |now: i64, then: i64| (now - then) as f64 / count as f64;
        (each(now.user, self.user), each(now.system, self.system))
    }
}

/// A figure of `/proc/self/status`: `VmHWM` and `VmRSS` are in KiB.
pub(crate) fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Open descriptors, without the one that looks.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// A thousand streams are more than the usual 1,024 descriptors leave room for.
pub(crate) fn allow_descriptors() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

/// Median, p99 and maximum of microseconds, in milliseconds.
pub(crate) fn spread(mut samples: Vec<u64>) -> String {
    assert!(!samples.is_empty(), "nothing was measured");
    samples.sort_unstable();
    let at = |part: usize| samples[(samples.len() - 1) * part / 1000] as f64 / 1000.0;
    let (half, nearly, most) = (at(500), at(990), at(1000));
    format!("p50 {half:>7.2} ms   p99 {nearly:>7.2} ms   max {most:>7.2} ms")
}
