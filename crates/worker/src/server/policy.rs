//! The restart policy: whether and when a lost server is restarted. Time is a parameter: the value of a monotonic
//! clock.

use std::collections::VecDeque;
use std::time::Duration;

use super::options::ServerLimits;

/// The time within which restarts are counted.
pub(super) const WINDOW: Duration = Duration::from_secs(600);

/// The reaction to the loss of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// Restart after this delay.
    Restart(Duration),
    /// No automatic restart.
    GiveUp,
}

/// The restart policy and the recent restarts.
#[derive(Debug)]
pub(super) struct RestartPolicy {
    limits: ServerLimits,
    /// Times of the restarts within the window, oldest first.
    granted: VecDeque<Duration>,
}

impl RestartPolicy {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self { limits, granted: VecDeque::new() }
    }

    /// Decides whether to restart after a loss of the server at `now`. `jitter`, from 0 to 1, changes the delay by up
    /// to a quarter in either direction, so that servers that failed together do not restart together.
    pub(super) fn on_loss(&mut self, now: Duration, jitter: f64) -> RestartDecision {
        while self.granted.front().is_some_and(|then| now.saturating_sub(*then) > WINDOW) {
            self.granted.pop_front();
        }
        if self.granted.len() >= self.limits.max_restarts {
            return RestartDecision::GiveUp;
        }
        let doublings = u32::try_from(self.granted.len()).unwrap_or(u32::MAX);
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        let delay = self.limits.first_restart_delay.saturating_mul(factor).min(self.limits.max_restart_delay);
        self.granted.push_back(now);
        RestartDecision::Restart(delay.mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0))
    }

    /// Clears the previous restarts, after a manual restart.
    pub(super) fn reset(&mut self) {
        self.granted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(policy: &mut RestartPolicy, seconds: impl IntoIterator<Item = u64>) -> Vec<Option<f64>> {
        let decision = |at| match policy.on_loss(Duration::from_secs(at), 0.5) {
            RestartDecision::Restart(delay) => Some(delay.as_secs_f64()),
            RestartDecision::GiveUp => None,
        };
        seconds.into_iter().map(decision).collect()
    }

    #[test]
    fn delays_double_and_the_sixth_loss_in_ten_minutes_is_final() {
        let mut policy = RestartPolicy::new(ServerLimits::default());
        let expected = [Some(1.0), Some(2.0), Some(4.0), Some(8.0), Some(16.0), None, None];
        assert_eq!(decisions(&mut policy, [0, 5, 10, 20, 40, 599, 600]), expected);
        // The first restart is now older than the window and does not count.
        assert_eq!(decisions(&mut policy, [601, 602]), [Some(16.0), None]);
        policy.reset();
        assert_eq!(decisions(&mut policy, [602, 603]), [Some(1.0), Some(2.0)]);
    }

    #[test]
    fn rare_losses_are_always_followed_by_a_quick_restart() {
        let mut policy = RestartPolicy::new(ServerLimits::default());
        let hourly = (0..1000).map(|hour| hour * 3600);
        assert!(decisions(&mut policy, hourly).iter().all(|delay| *delay == Some(1.0)));
        assert!(policy.granted.len() <= 2);
    }

    #[test]
    fn the_delay_has_a_maximum_and_jitter() {
        let limits = ServerLimits { max_restarts: 100, ..ServerLimits::default() };
        let mut policy = RestartPolicy::new(limits);
        let delays = decisions(&mut policy, 0..100);
        assert_eq!(delays[5..8], [Some(32.0), Some(60.0), Some(60.0)]);
        assert_eq!(delays[99], Some(60.0));
        for (jitter, expected) in [(0.0, 750), (1.0, 1250), (-3.0, 750), (7.0, 1250)] {
            let mut policy = RestartPolicy::new(limits);
            let decision = policy.on_loss(Duration::ZERO, jitter);
            assert_eq!(decision, RestartDecision::Restart(Duration::from_millis(expected)));
        }
    }
}
