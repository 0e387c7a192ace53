//! Statistics of repeated runs of asks.
//!
//! Runs of one ask are not independent: an ask that a model finds hard fails in most of them. All intervals and tests
//! therefore treat the ask as the unit: more runs of the same asks make the result of each ask more certain, and only
//! more asks tell more about other asks.
//!
//! A result that needs at least one run is `None` without one: nothing measured is not zero.
//!
//! `tests/interop/inspect_statistics.md` lists the differences from Inspect, a library for evaluations.

mod quantile;
mod rate;
mod repeated;
mod versions;

use std::collections::HashSet;
use std::hash::Hash;

use serde::Serialize;

pub use rate::{PassRate, pass_rate, wilson};
pub use repeated::{pass_at_k, pass_hat_k};
pub use versions::{Comparison, Outcome, PairedTally, Test, compare};

/// The runs of one ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Runs that passed; at most `runs`.
    pub passes: u32,
    /// All runs.
    pub runs: u32,
}

/// A confidence interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower limit.
    pub low: f64,
    /// The upper limit.
    pub high: f64,
}

/// Returns how many of the replies to one ask are distinct, from a digest of each. Identical replies are no evidence of a
/// second run: a server with a cache, or with a temperature of 0, repeats itself.
pub fn distinct_replies<D: Eq + Hash>(digests: &[D]) -> usize {
    digests.iter().collect::<HashSet<_>>().len()
}

/// Converts a number of asks.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_replies_count_once() {
        for (digests, distinct) in [(&[][..], 0), (&["a"], 1), (&["a", "b", "a", "a"], 2)] {
            assert_eq!(distinct_replies(digests), distinct, "{digests:?}");
        }
    }
}
