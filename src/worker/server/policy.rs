//! When a server that was lost is started again, and when no more. Time is a value here: milliseconds of a clock that
//! never goes back.

use std::collections::VecDeque;
use std::time::Duration;

/// How often and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// The wait before the first restart; each further one within the window waits twice as long.
    pub first_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
    /// More restarts than this within the window lock the server out.
    pub max_restarts: usize,
    /// The window.
    pub window: Duration,
}

impl Default for RestartLimits {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            max_restarts: 5,
            window: Duration::from_secs(600),
        }
    }
}

/// What follows a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Another start, after a wait.
    Again(Duration),
    /// None, until a person says so.
    LockOut,
}

/// The restarts so far.
#[derive(Debug)]
pub(super) struct RestartPolicy {
    limits: RestartLimits,
    /// When those within the window were granted, the oldest first.
    granted: VecDeque<Duration>,
}

impl RestartPolicy {
    pub(super) fn new(limits: RestartLimits) -> Self {
        Self { limits, granted: VecDeque::new() }
    }

    /// The server was lost at `now`. `jitter`, from 0 to 1, moves the wait by up to a quarter either way, so that several
    /// servers that fell together do not rise together.
    pub(super) fn on_loss(&mut self, now: Duration, jitter: f64) -> Verdict {
        while self.granted.front().is_some_and(|then| now.saturating_sub(*then) > self.limits.window) {
            self.granted.pop_front();
        }
        if self.granted.len() >= self.limits.max_restarts {
            return Verdict::LockOut;
        }
        let doublings = u32::try_from(self.granted.len()).unwrap_or(u32::MAX);
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        let delay = self.limits.first_delay.saturating_mul(factor).min(self.limits.max_delay);
        self.granted.push_back(now);
        Verdict::Again(delay.mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0))
    }

    /// A person wants it to run: what was is forgotten.
    pub(super) fn forgive(&mut self) {
        self.granted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(policy: &mut RestartPolicy, seconds: impl IntoIterator<Item = u64>) -> Vec<Option<f64>> {
        let verdict = |at| match policy.on_loss(Duration::from_secs(at), 0.5) {
            Verdict::Again(delay) => Some(delay.as_secs_f64()),
            Verdict::LockOut => None,
        };
        seconds.into_iter().map(verdict).collect()
    }

    #[test]
    fn waits_double_and_the_sixth_loss_in_ten_minutes_locks_out() {
        let mut policy = RestartPolicy::new(RestartLimits::default());
        let expected = [Some(1.0), Some(2.0), Some(4.0), Some(8.0), Some(16.0), None, None];
        assert_eq!(verdicts(&mut policy, [0, 5, 10, 20, 40, 599, 600]), expected);
        // The first is as old as the window allows; then it counts no more.
        assert_eq!(verdicts(&mut policy, [601, 602]), [Some(16.0), None]);
        policy.forgive();
        assert_eq!(verdicts(&mut policy, [602, 603]), [Some(1.0), Some(2.0)]);
    }

    #[test]
    fn who_falls_rarely_is_started_soon_and_for_ever() {
        let mut policy = RestartPolicy::new(RestartLimits::default());
        let hourly = (0..1000).map(|hour| hour * 3600);
        assert!(verdicts(&mut policy, hourly).iter().all(|delay| *delay == Some(1.0)));
        assert!(policy.granted.len() <= 2);
    }

    #[test]
    fn a_wait_has_a_limit_and_jitter() {
        let limits = RestartLimits { max_restarts: 100, ..RestartLimits::default() };
        let mut policy = RestartPolicy::new(limits);
        let waits = verdicts(&mut policy, 0..100);
        assert_eq!(waits[5..8], [Some(32.0), Some(60.0), Some(60.0)]);
        assert_eq!(waits[99], Some(60.0));
        for (jitter, expected) in [(0.0, 750), (1.0, 1250), (-3.0, 750), (7.0, 1250)] {
            let mut policy = RestartPolicy::new(limits);
            let verdict = policy.on_loss(Duration::ZERO, jitter);
            assert_eq!(verdict, Verdict::Again(Duration::from_millis(expected)));
        }
    }
}
