//! The comparison of two versions over the same asks.

use serde::Serialize;

use super::quantile::{NORMAL_800, NORMAL_975, student_975};
use super::rate::score_interval;
use super::{Interval, number};

/// The level of significance of the tests.
const LEVEL: f64 = 0.05;

/// Maximum number of asks with a difference whose signs are enumerated.
const MAX_ENUMERATED: usize = 16;

/// Number of random sign flips if there are more.
const FLIPS: u32 = 10_000;

/// The smallest number of asks with which the test can be significant: if all differ in the same direction, p is 2/2⁶.
const FEWEST: usize = 6;

/// Differences of sums below this are errors of rounding.
const ROUNDING: f64 = 1e-9;

/// The runs of one ask with both versions: the same run numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PairedTally {
    /// Runs that passed before the change; at most `runs`.
    pub before: u32,
    /// Runs that passed after the change; at most `runs`.
    pub after: u32,
    /// The runs of each version.
    pub runs: u32,
}

/// Whether the new version passes more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It does.
    Better,
    /// It passes less often.
    Worse,
    /// The runs do not show a difference, nor that there is none.
    CannotTell,
}

/// The test that gave a p-value. All are two-sided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// McNemar's exact test: the binomial test of the asks that changed. With one run of each ask.
    McNemar,
    /// Sign flips of the differences of asks, all enumerated.
    Permutation,
    /// Sign flips of the differences of asks, a fixed random sample.
    SampledPermutation,
}

/// The result of the comparison of two versions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether the new version passes more often, at the 5 % level of `p_value`.
    pub outcome: Outcome,
    /// The mean over asks of the difference of the pass rates, after minus before.
    pub difference: f64,
    /// The interval of `difference`. Close to the level it may disagree with the test, which decides.
    pub interval: Interval,
    /// The probability of such a difference or a larger one if the versions were equal.
    pub p_value: f64,
    /// The test.
    pub test: Test,
    /// The smallest difference that so many runs detect with a power of 80 %; `None` if they could not detect any.
    pub detectable: Option<f64>,
    /// Number of asks with at least one run.
    pub asks: usize,
}

/// Compares two versions; `None` without a run.
///
/// The unit is the ask: dᵢ is the difference of its pass rates, and A the number of asks.
///
/// - With one run of each ask, the p-value is that of McNemar's exact test. Otherwise it is that of a permutation test:
///   the share of all assignments of signs to the dᵢ whose sum is as far from 0 as the observed one. If more than 16 asks
///   differ, it is estimated from 10,000 random assignments with a fixed seed, as (hits + 1) / (assignments + 1).
/// - The interval is the mean of the dᵢ ± t·s/√A, with their standard deviation s and A − 1 degrees of freedom.
/// - The detectable difference is (z₀.₉₇₅ + z₀.₈₀)·s/√A = 2.80·s/√A. It is at least the one of six asks that change in one
///   run each: fewer cannot reach the 5 % level.
///
/// If all dᵢ are equal, s is 0, which says nothing about other asks. The share w of asks with another difference is then
/// at most the upper limit of Wilson's interval for 0 of A. The interval extends to the mean if w of the asks had a
/// difference of −1 or 1, and s² is w for the detectable difference.
///
/// Sources: McNemar, *Note on the sampling error of the difference between correlated proportions* (1947); Phipson and
/// Smyth, *Permutation p-values should never be zero* (2010); Miller, *Adding error bars to evals* (2024), for paired
/// differences and their power.
pub fn compare(asks: &[PairedTally]) -> Option<Comparison> {
    let asks: Vec<PairedTally> = asks.iter().filter(|ask| ask.runs > 0).copied().collect();
    if asks.is_empty() {
        return None;
    }
    let differences: Vec<f64> =
        asks.iter().map(|ask| (f64::from(ask.after) - f64::from(ask.before)) / f64::from(ask.runs)).collect();
    let count = number(asks.len());
    let difference = differences.iter().sum::<f64>() / count;
    let (p_value, test) = if asks.iter().all(|ask| ask.runs == 1) {
        (mc_nemar(&asks), Test::McNemar)
    } else {
        permutation(&differences)
    };
    let outcome = if p_value > LEVEL {
        Outcome::CannotTell
    } else if difference > 0.0 {
        Outcome::Better
    } else {
        Outcome::Worse
    };
    let squares: f64 = differences.iter().map(|found| (found - difference).powi(2)).sum();
    let (interval, variance) = if squares < ROUNDING {
        let share = score_interval(0.0, count, NORMAL_975).high;
        let (low, high) = (difference - share * (1.0 + difference), difference + share * (1.0 - difference));
        (Interval { low, high }, share)
    } else {
        let variance = squares / (count - 1.0);
        let degrees = u32::try_from(asks.len() - 1).unwrap_or(u32::MAX);
        let half = student_975(degrees) * (variance / count).sqrt();
        let (low, high) = ((difference - half).max(-1.0), (difference + half).min(1.0));
        (Interval { low, high }, variance)
    };
    let most_runs = asks.iter().map(|ask| ask.runs).max().unwrap_or(1);
    let detectable = ((NORMAL_975 + NORMAL_800) * (variance / count).sqrt())
        .max(number(FEWEST) / (count * f64::from(most_runs)));
    let detectable = (asks.len() >= FEWEST && detectable <= 1.0).then_some(detectable);
    Some(Comparison { outcome, difference, interval, p_value, test, detectable, asks: asks.len() })
}

/// Returns the p-value of McNemar's exact test: twice the probability that of n fair coins at most the smaller number of
/// changes in one direction are heads, at most 1.
fn mc_nemar(asks: &[PairedTally]) -> f64 {
    let better = asks.iter().filter(|ask| ask.after > ask.before).count();
    let worse = asks.iter().filter(|ask| ask.after < ask.before).count();
    let (fewer, all) = (number(better.min(worse)), number(better + worse));
    // C(n, k) / 2ⁿ as a logarithm, because 2ⁿ overflows, and the terms for smaller k relative to it.
    let (mut logarithm, mut taken) = (-all * std::f64::consts::LN_2, 0.0);
    while taken < fewer {
        logarithm += ((all - taken) / (taken + 1.0)).ln();
        taken += 1.0;
    }
    let (mut sum, mut term) = (0.0, 1.0);
    while term > f64::EPSILON * sum {
        sum += term;
        term *= taken / (all - taken + 1.0);
        taken -= 1.0;
    }
    (2.0 * sum * logarithm.exp()).min(1.0)
}

/// Returns the p-value of a permutation test, which flips the signs of the differences. A difference of 0 has no sign.
fn permutation(differences: &[f64]) -> (f64, Test) {
    let changed: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let observed = changed.iter().sum::<f64>().abs() - ROUNDING;
    if changed.len() <= MAX_ENUMERATED {
        let all = 1_u32 << changed.len();
        let is_hit = |signs: &u32| {
            let mut signs = *signs;
            let is_flipped = || {
                let lowest = signs & 1;
                signs >>= 1;
                lowest == 1
            };
            flipped_sum(&changed, is_flipped).abs() >= observed
        };
        let hits = number((0..all).filter(is_hit).count());
        return (hits / f64::from(all), Test::Permutation);
    }
    let mut random = fastrand::Rng::with_seed(0);
    let hits = (0..FLIPS).filter(|_| flipped_sum(&changed, || random.bool()).abs() >= observed).count();
    ((number(hits) + 1.0) / (f64::from(FLIPS) + 1.0), Test::SampledPermutation)
}

fn flipped_sum(differences: &[f64], mut is_flipped: impl FnMut() -> bool) -> f64 {
    differences.iter().map(|difference| if is_flipped() { -difference } else { *difference }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(asks: &[(u32, u32, u32)]) -> Vec<PairedTally> {
        asks.iter().map(|&(before, after, runs)| PairedTally { before, after, runs }).collect()
    }

    /// Compared with `mcnemar([[…, worse], [better, …]], exact=True)` of statsmodels.
    #[test]
    fn one_run_has_the_p_value_of_statsmodels() {
        for (worse, better, p_value, outcome) in [
            (0, 0, 1.0, Outcome::CannotTell),
            (5, 0, 0.0625, Outcome::CannotTell),
            (0, 6, 0.031_25, Outcome::Better),
            (8, 1, 0.039_062_5, Outcome::Worse),
            (3, 3, 1.0, Outcome::CannotTell),
            (40, 60, 0.056_887_933_640_980_89, Outcome::CannotTell),
            (700, 800, 0.010_559_255_466_711_506, Outcome::Better),
            (2200, 2000, 0.002_132_355_671_991_246, Outcome::Worse),
        ] {
            let mut asks = vec![(1, 0, 1); worse];
            asks.extend(vec![(0, 1, 1); better]);
            asks.extend([(1, 1, 1), (0, 0, 1), (0, 0, 0)]);
            let found = compare(&pairs(&asks)).unwrap();
            assert_eq!((found.test, found.outcome), (Test::McNemar, outcome), "{found:?}");
            assert!((found.p_value / p_value - 1.0).abs() < 1e-9, "{found:?}");
            assert_eq!(found.asks, worse + better + 2);
        }
    }

    /// Compared with `permutation_test(…, permutation_type="samples", n_resamples=inf)` and `t.interval` of scipy.
    #[test]
    fn more_runs_have_the_p_value_and_the_interval_of_scipy() {
        let better = [(0, 3, 3), (1, 3, 3), (1, 2, 3), (2, 2, 3), (3, 3, 3), (0, 2, 3), (1, 3, 3)];
        let worse = better.map(|(before, after, runs)| (after, before, runs));
        let both = [(1, 2, 4), (2, 1, 4), (3, 4, 4), (0, 0, 4), (4, 2, 4), (1, 4, 4), (2, 3, 4), (4, 4, 4)];
        let one_of_100 = [&[(1, 1, 2); 99][..], &[(1, 2, 2)]].concat();
        for (asks, difference, p_value, (low, high), detectable) in [
            (&better[..], 0.476_190, 0.0625, (0.126_632, 0.825_749), Some(0.400_226)),
            (&worse, -0.476_190, 0.0625, (-0.825_749, -0.126_632), Some(0.400_226)),
            (&both, 0.093_75, 0.656_25, (-0.220_999, 0.408_499), Some(0.372_912)),
            // The interval ends at a difference of 1, and no smaller one is detectable.
            (
                &[(0, 2, 2), (2, 0, 2), (0, 2, 2), (2, 0, 2), (0, 2, 2), (2, 0, 2)],
                0.0,
                1.0,
                (-1.0, 1.0),
                None,
            ),
            // At least six of 200 runs must change.
            (&one_of_100, 0.005, 1.0, (-0.004_921, 0.014_921), Some(0.03)),
            // No difference: the interval allows that an ask in four differs. Too few asks detect nothing.
            (&[(1, 1, 2); 10], 0.0, 1.0, (-0.277_533, 0.277_533), Some(0.466_729)),
            (&[(1, 1, 2); 5], 0.0, 1.0, (-0.434_482, 0.434_482), None),
            (&[(0, 2, 2)], 1.0, 1.0, (-0.586_901, 1.0), None),
            (&[(0, 2, 2); 6], 1.0, 0.031_25, (0.219_327, 1.0), Some(0.714_567)),
        ] {
            let found = compare(&pairs(asks)).unwrap();
            let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-5;
            assert_eq!(found.test, Test::Permutation);
            assert!(
                is_near(found.difference, difference)
                    && is_near(found.p_value, p_value)
                    && is_near(found.interval.low, low)
                    && is_near(found.interval.high, high)
                    && is_near(found.detectable.unwrap_or(-1.0), detectable.unwrap_or(-1.0)),
                "{asks:?}: {found:?}"
            );
        }
        assert_eq!(compare(&[]), None);
        assert_eq!(compare(&pairs(&[(0, 0, 0)])), None);
    }

    /// The exact p-value of 24 asks that differ is the share of the 2²⁴ assignments.
    #[test]
    fn a_sample_of_flips_is_close_to_all_flips() {
        let asks = [vec![(0, 1, 2); 12], vec![(1, 0, 2); 8], vec![(0, 2, 2); 4], vec![(1, 1, 2); 9]].concat();
        let found = compare(&pairs(&asks)).unwrap();
        assert_eq!(found.test, Test::SampledPermutation);
        assert!((found.p_value - 0.064_827_3).abs() < 0.01, "{found:?}");
        assert_eq!(compare(&pairs(&asks)), Some(found));
        let clear = compare(&pairs(&[(0, 2, 2); 30])).unwrap();
        assert!((clear.p_value - 1.0 / 10_001.0).abs() < 1e-9, "{clear:?}");
    }
}
