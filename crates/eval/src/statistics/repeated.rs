//! The reliability of k runs: pass^k, and pass@k.

use super::{Tally, number};

/// Returns pass^k: the estimated probability that all of k runs of an ask pass, as a mean over asks. `None` without asks,
/// or if an ask has fewer than k runs.
///
/// If c of n runs of an ask pass, its estimate is C(c, k) / C(n, k): the share of all sets of k runs in which all pass.
///
/// Source: Yao and others, *τ-bench: a benchmark for tool-agent-user interaction in real-world domains* (2024).
pub fn pass_hat_k(asks: &[Tally], k: u32) -> Option<f64> {
    mean(asks, k, |ask| share_of_sets(ask.passes, ask.runs, k))
}

/// Returns pass@k: the estimated probability that at least one of k runs of an ask passes, as a mean over asks. `None`
/// without asks, or if an ask has fewer than k runs.
///
/// If c of n runs of an ask pass, its estimate is 1 − C(n − c, k) / C(n, k).
///
/// Source: Chen and others, *Evaluating large language models trained on code* (2021).
pub fn pass_at_k(asks: &[Tally], k: u32) -> Option<f64> {
    mean(asks, k, |ask| 1.0 - share_of_sets(ask.runs.saturating_sub(ask.passes), ask.runs, k))
}

fn mean(asks: &[Tally], k: u32, estimate: impl Fn(&Tally) -> f64) -> Option<f64> {
    if asks.is_empty() || asks.iter().any(|ask| ask.runs < k) {
        return None;
    }
    Some(asks.iter().map(estimate).sum::<f64>() / number(asks.len()))
}

/// Returns C(some, k) / C(all, k), for k ≤ all, as a product of fractions that does not overflow.
fn share_of_sets(some: u32, all: u32, k: u32) -> f64 {
    if k > some {
        return 0.0;
    }
    (0..k).map(|chosen| f64::from(some - chosen) / f64::from(all - chosen)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_those_of_counting() {
        let tally = |passes, runs| Tally { passes, runs };
        for (asks, k, all, any) in [
            (&[tally(3, 4)][..], 1, Some(0.75), Some(0.75)),
            // Of the six pairs, three have two passes, and none has two failures.
            (&[tally(3, 4)], 2, Some(0.5), Some(1.0)),
            (&[tally(2, 4)], 2, Some(1.0 / 6.0), Some(5.0 / 6.0)),
            (&[tally(1, 4)], 2, Some(0.0), Some(0.5)),
            (&[tally(4, 4), tally(0, 4)], 4, Some(0.5), Some(0.5)),
            (&[tally(1, 1)], 0, Some(1.0), Some(0.0)),
            // C(900, 3), C(100, 3) and C(1000, 3).
            (
                &[tally(900, 1000)],
                3,
                Some(121_095_300.0 / 166_167_000.0),
                Some(1.0 - 161_700.0 / 166_167_000.0),
            ),
            (&[tally(4_000_000_000, 4_000_000_000)], 1000, Some(1.0), Some(1.0)),
            (&[tally(4, 4), tally(1, 3)], 4, None, None),
            (&[], 1, None, None),
        ] {
            let is_near = |found: Option<f64>, expected: Option<f64>| match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
                (found, expected) => found == expected,
            };
            let (found_all, found_any) = (pass_hat_k(asks, k), pass_at_k(asks, k));
            assert!(is_near(found_all, all), "{asks:?} ^{k}: {found_all:?}");
            assert!(is_near(found_any, any), "{asks:?} @{k}: {found_any:?}");
        }
    }
}
