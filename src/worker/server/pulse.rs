//! Whether a server works: the CPU time of its process group. That a process exists is no evidence of life; that it
//! computes is, and a prompt that is being read shows nothing else for minutes.
//!
//! Linux tells it in `/proc`. Elsewhere there is no evidence, and the limits of a request hold as they are.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::script::processes::processes;
use crate::worker::record::lock;

/// Two looks nearer to each other than this tell nothing: a tick is 10 ms.
const SHORTEST: Duration = Duration::from_millis(200);
/// Who uses less than one part in so many of one CPU waits for work, or for ever, and looks at a clock now and then.
const LEAST: u32 = 50;

/// The pulse of one worker's server, over its restarts.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<Felt>);

#[derive(Debug, Default)]
struct Felt {
    group: Option<u32>,
    /// The last look.
    last: Option<(Instant, HashMap<u32, u64>)>,
    /// When it was last seen to have worked.
    worked: Option<Instant>,
}

impl Pulse {
    /// There is a new server, or none.
    pub(super) fn follow(&self, group: Option<u32>) {
        let mut felt = lock(&self.0);
        *felt = Felt { group, last: None, worked: None };
        if group.is_some() {
            felt.look(Instant::now(), ticks_of);
        }
    }

    /// Looks; when the server was last seen to have worked.
    pub(super) fn feel(&self) -> Option<Instant> {
        let mut felt = lock(&self.0);
        felt.look(Instant::now(), ticks_of);
        felt.worked
    }
}

impl Felt {
    fn look(&mut self, now: Instant, ticks_of: impl Fn(u32) -> HashMap<u32, u64>) {
        let Some(group) = self.group else { return };
        let Some((then, before)) = &self.last else {
            self.last = Some((now, ticks_of(group)));
            return;
        };
        let elapsed = now.saturating_duration_since(*then);
        if elapsed < SHORTEST {
            return;
        }
        let ticks = ticks_of(group);
        // Each by itself: what a process used is lost to the sum when it ends.
        let spent: u64 = ticks
            .iter()
            .map(|(id, ticks)| ticks.saturating_sub(before.get(id).copied().unwrap_or_default()))
            .sum();
        if Duration::from_millis(spent.saturating_mul(1000) / ticks_per_second()) >= elapsed / LEAST {
            self.worked = Some(now);
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
    fn work_is_told_from_idling() {
        let start = Instant::now();
        let mut felt = Felt { group: Some(7), ..Felt::default() };
        let mut look = |at_ms: u64, ticks: &[(u32, u64)]| {
            let now = start + Duration::from_millis(at_ms);
            felt.look(now, |_| ticks.iter().copied().collect());
            felt.worked.map(|worked| worked.duration_since(start).as_millis() as u64)
        };
        assert_eq!(look(0, &[(7, 5000)]), None, "what was before counts for nothing");
        assert_eq!(look(5000, &[(7, 5001)]), None, "a tick in five seconds is a look at the clock");
        assert_eq!(look(5100, &[(7, 5100)]), None, "too soon to tell");
        assert_eq!(look(10_000, &[(7, 5101)]), Some(10_000));
        assert_eq!(look(15_000, &[(7, 5101)]), Some(10_000), "it stopped");
        assert_eq!(look(20_000, &[(7, 5101), (8, 40)]), Some(20_000), "a child works");
        assert_eq!(look(25_000, &[(7, 5101)]), Some(20_000), "the child ended");
        assert_eq!(look(30_000, &[]), Some(20_000));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_works() {
        let own = crate::script::processes::process(std::process::id()).unwrap();
        let pulse = Pulse::default();
        pulse.follow(Some(own.group));
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(5) && pulse.feel().is_none() {
            std::hint::black_box((0..10_000).fold(1_u64, |a, b| a.wrapping_mul(b | 1)));
        }
        assert!(pulse.feel().is_some());
        pulse.follow(None);
        assert!(pulse.feel().is_none());
    }
}
