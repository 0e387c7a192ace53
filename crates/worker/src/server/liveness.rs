//! The liveness probe of a server: the CPU time of its process group. A process that merely exists may hang; a process
//! that uses CPU time is working. While a server processes a prompt, which may take minutes, CPU time is the only sign
//! of progress.
//!
//! Reads `/proc` on Linux. On other systems the probe reports no activity, and the limits of a request are not
//! extended.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use deftool_process::processes;
use tokio::time::Instant;

use deftool_process::lock;

/// Minimum time between two samples: a tick is 10 ms.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// A group that uses less than this fraction (1/50) of one CPU counts as idle: it only wakes up from time to time.
const MIN_CPU_DIVISOR: u32 = 50;

/// The liveness probe of one worker's server, across its restarts.
#[derive(Debug, Default)]
pub(super) struct LivenessProbe(Mutex<CpuActivity>);

#[derive(Debug, Default)]
struct CpuActivity {
    group: Option<u32>,
    /// Time of the last sample, and the CPU ticks of each process.
    last: Option<(Instant, HashMap<u32, u64>)>,
    /// Time of the last observed activity.
    last_active: Option<Instant>,
}

impl LivenessProbe {
    /// Sets the process group to observe and clears previous samples.
    pub(super) fn track(&self, group: Option<u32>) {
        let mut activity = lock(&self.0);
        *activity = CpuActivity { group, last: None, last_active: None };
        if group.is_some() {
            activity.add_sample(Instant::now(), ticks_of);
        }
    }

    /// Takes a sample and returns the time of the last observed activity.
    pub(super) fn sample(&self) -> Option<Instant> {
        let mut activity = lock(&self.0);
        activity.add_sample(Instant::now(), ticks_of);
        activity.last_active
    }
}

impl CpuActivity {
    fn add_sample(&mut self, now: Instant, ticks_of: impl Fn(u32) -> HashMap<u32, u64>) {
        let Some(group) = self.group else { return };
        let Some((then, before)) = &self.last else {
            self.last = Some((now, ticks_of(group)));
            return;
        };
        let elapsed = now.saturating_duration_since(*then);
        if elapsed < MIN_INTERVAL {
            return;
        }
        let ticks = ticks_of(group);
        // Computed per process: when a process ends, the sum over the group decreases.
        let spent: u64 = ticks
            .iter()
            .map(|(id, ticks)| ticks.saturating_sub(before.get(id).copied().unwrap_or_default()))
            .sum();
        if Duration::from_millis(spent.saturating_mul(1000) / ticks_per_second()) >= elapsed / MIN_CPU_DIVISOR
        {
            self.last_active = Some(now);
        }
        self.last = Some((now, ticks));
    }
}

fn ticks_of(group: u32) -> HashMap<u32, u64> {
    processes().filter(|stat| stat.group == group).map(|stat| (stat.id, stat.ticks)).collect()
}

#[cfg(not(unix))]
fn ticks_per_second() -> u64 {
    100
}

#[cfg(unix)]
fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_use_counts_as_activity_and_idling_does_not() {
        let start = Instant::now();
        let mut activity = CpuActivity { group: Some(7), ..CpuActivity::default() };
        let mut sample = |at_ms: u64, ticks: &[(u32, u64)]| {
            let now = start + Duration::from_millis(at_ms);
            activity.add_sample(now, |_| ticks.iter().copied().collect());
            activity.last_active.map(|last_active| last_active.duration_since(start).as_millis() as u64)
        };
        assert_eq!(sample(0, &[(7, 5000)]), None, "CPU time before the first sample does not count");
        assert_eq!(sample(5000, &[(7, 5001)]), None, "one tick in five seconds is idle");
        assert_eq!(sample(5100, &[(7, 5100)]), None, "too soon after the last sample");
        assert_eq!(sample(10_000, &[(7, 5101)]), Some(10_000));
        assert_eq!(sample(15_000, &[(7, 5101)]), Some(10_000), "no further activity");
        assert_eq!(sample(20_000, &[(7, 5101), (8, 40)]), Some(20_000), "a child process is active");
        assert_eq!(sample(25_000, &[(7, 5101)]), Some(20_000), "the child process ended");
        assert_eq!(sample(30_000, &[]), Some(20_000));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_busy_loop_of_this_process_is_observed() {
        let own = deftool_process::process(std::process::id()).unwrap();
        let probe = LivenessProbe::default();
        probe.track(Some(own.group));
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(5) && probe.sample().is_none() {
            std::hint::black_box((0..10_000).fold(1_u64, |a, b| a.wrapping_mul(b | 1)));
        }
        assert!(probe.sample().is_some());
        probe.track(None);
        assert!(probe.sample().is_none());
    }
}
