//! The pass rate of all runs, with an interval that respects that runs of one ask depend on each other.

use serde::Serialize;

use super::quantile::{NORMAL_975, student_975};
use super::{Interval, Tally, number};

/// Differences between asks below this are errors of rounding.
const ROUNDING: f64 = 1e-9;

/// The share of runs that pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PassRate {
    /// Passes divided by runs.
    pub rate: f64,
    /// The interval for the pass rate of such asks; with one ask, for the pass rate of this ask.
    pub interval: Interval,
    /// Number of asks with at least one run.
    pub asks: usize,
    /// Number of runs.
    pub runs: u64,
}

/// Returns the pass rate over all runs of `asks`; `None` without a run.
///
/// The interval is Wilson's, for the effective number of runs and with Student's t:
///
/// - With p = Σc / Σn, where c of n runs of an ask pass, and A asks, the squared standard error clustered by ask is
///   S² = A / (A − 1) · Σ(c − p·n)² / (Σn)².
/// - The effective number of runs is p(1 − p) / S², at most Σn. If the runs of each ask have the same result, this is about
///   A; if they are independent, about Σn.
/// - The quantile is that of Student's t with A − 1 degrees of freedom.
///
/// If all asks have the same share of passes, S is 0, which says nothing about the variation between asks. The effective
/// number of runs is then A, as if the runs of an ask were identical, with the normal quantile. With one ask, the interval
/// is for this ask, with its number of runs.
///
/// Sources: Korn and Graubard, *Confidence intervals for proportions with small expected number of positive counts
/// estimated from survey data* (1998), for the effective sample size; Dean and Pagano, *Evaluating confidence interval
/// methods for binomial proportions in clustered surveys* (2015), for its use in Wilson's interval. The interval of the
/// standard error alone is too short near 0 and 1, where most pass rates are.
pub fn pass_rate(asks: &[Tally]) -> Option<PassRate> {
    let asks: Vec<Tally> = asks.iter().filter(|ask| ask.runs > 0).copied().collect();
    let runs: f64 = asks.iter().map(|ask| f64::from(ask.runs)).sum();
    if asks.is_empty() {
        return None;
    }
    let rate = asks.iter().map(|ask| f64::from(ask.passes)).sum::<f64>() / runs;
    let deviation = |ask: &Tally| f64::from(ask.passes) - rate * f64::from(ask.runs);
    let deviations: f64 = asks.iter().map(|ask| deviation(ask).powi(2)).sum();
    let count = number(asks.len());
    let interval = if asks.len() == 1 {
        score_interval(rate, runs, NORMAL_975)
    } else if deviations < ROUNDING {
        score_interval(rate, count, NORMAL_975)
    } else {
        let variance = count / (count - 1.0) * deviations / (runs * runs);
        let effective = (rate * (1.0 - rate) / variance).min(runs);
        let degrees = u32::try_from(asks.len() - 1).unwrap_or(u32::MAX);
        score_interval(rate, effective, student_975(degrees))
    };
    let runs = asks.iter().map(|ask| u64::from(ask.runs)).sum();
    Some(PassRate { rate, interval, asks: asks.len(), runs })
}

/// Returns Wilson's interval for the pass rate of one ask; `None` without a run.
pub fn wilson(ask: Tally) -> Option<Interval> {
    pass_rate(&[ask]).map(|measured| measured.interval)
}

/// Returns Wilson's interval for a share of `count` independent runs. With the quantile z it is
/// (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n).
///
/// Source: Wilson, *Probable inference, the law of succession, and statistical inference* (1927).
pub(super) fn score_interval(rate: f64, count: f64, quantile: f64) -> Interval {
    let square = quantile * quantile / count;
    let center = rate + square / 2.0;
    let half = (square * (rate * (1.0 - rate) + square / 4.0)).sqrt();
    let limit = |limit: f64| (limit / (1.0 + square)).clamp(0.0, 1.0);
    Interval { low: limit(center - half), high: limit(center + half) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally((passes, runs): (u32, u32)) -> Tally {
        Tally { passes, runs }
    }

    /// Compared with `proportion_confint(passes, runs, method="wilson")` of statsmodels.
    #[test]
    fn intervals_of_one_ask_are_those_of_statsmodels() {
        for (ask, low, high) in [
            ((0, 1), 0.0, 0.793_451),
            ((1, 1), 0.206_549, 1.0),
            ((0, 10), 0.0, 0.277_533),
            ((7, 10), 0.396_778, 0.892_209),
            ((10, 10), 0.722_467, 1.0),
            ((49, 50), 0.895_046, 0.996_461),
            ((999, 1000), 0.994_357, 0.999_823),
        ] {
            let found = wilson(tally(ask)).unwrap();
            assert!((found.low - low).abs() < 1e-6 && (found.high - high).abs() < 1e-6, "{ask:?}: {found:?}");
        }
        assert_eq!(wilson(tally((0, 0))), None);
    }

    /// The standard errors are those of statsmodels: a regression on a constant with `cov_type="cluster"`. The limits
    /// follow from them by the formula of [`pass_rate`], with quantiles of scipy.
    #[test]
    fn intervals_are_clustered_by_ask() {
        for (asks, rate, low, high) in [
            (&[(5, 5), (5, 5), (0, 5), (3, 5), (4, 5), (5, 5)][..], 0.733_333, 0.304_024, 0.945_392),
            (&[(1, 1), (1, 1), (0, 1), (1, 1), (1, 1), (1, 1), (0, 1), (1, 1)], 0.75, 0.329_811, 0.948_155),
            // Less variation than by chance: the runs count as independent.
            (&[(2, 4), (3, 4), (2, 4), (2, 4), (1, 4)], 0.5, 0.236_275, 0.763_725),
            (&[(1, 1), (9, 10), (2, 2), (0, 3)], 0.75, 0.183_306, 0.975_668),
            // No variation: as many runs as asks. An ask without runs does not count.
            (&[(5, 5); 10], 1.0, 0.722_467, 1.0),
            (&[(0, 5), (0, 5), (0, 0)], 0.0, 0.0, 0.657_620),
            (&[(1, 2); 2], 0.5, 0.094_531, 0.905_469),
        ] {
            let asks: Vec<Tally> = asks.iter().copied().map(tally).collect();
            let found = pass_rate(&asks).unwrap();
            let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
            let Interval { low: found_low, high: found_high } = found.interval;
            assert!(
                is_near(found.rate, rate) && is_near(found_low, low) && is_near(found_high, high),
                "{asks:?}: {found:?}"
            );
        }
        assert_eq!(pass_rate(&[]), None);
        assert_eq!(pass_rate(&[tally((0, 0))]), None);
    }

    /// Asks whose own pass rates differ much: three of four always pass, and one passes half of its runs.
    #[test]
    fn intervals_contain_the_true_rate_in_95_percent() {
        let mut random = fastrand::Rng::with_seed(3);
        for (count, runs) in [(10, 5), (30, 1), (30, 10), (100, 3)] {
            let covered = (0..1000)
                .filter(|_| {
                    let mut ask = || {
                        let is_hard = random.u8(..4) == 0;
                        let passes = (0..runs).filter(|_| !is_hard || random.bool()).count();
                        Tally { passes: u32::try_from(passes).unwrap(), runs }
                    };
                    let asks: Vec<Tally> = (0..count).map(|_| ask()).collect();
                    let interval = pass_rate(&asks).unwrap().interval;
                    (interval.low..=interval.high).contains(&0.875)
                })
                .count();
            assert!((935..=999).contains(&covered), "{count} asks with {runs} runs: {covered} of 1000");
        }
    }
}
