//! Pairs expected with observed calls.
//!
//! Both ways of pairing find the best result: the most pairs of the same tool, and of these results one with the most
//! pairs whose arguments match. Without an order this is a maximum bipartite matching (Kuhn's augmenting paths) of the
//! calls that match, extended by pairs of the same tool: any two calls of one tool may be a pair, so the extension still
//! has the most pairs. With an order it is a longest common subsequence.

use std::collections::{HashMap, HashSet};

/// Maximum number of expected calls, and of observed calls, that are compared. Later ones have no pair.
const MAX_CALLS: usize = 128;

/// Returns the index of the observed call for each expected call. `differences` counts the differences of two calls up to
/// a maximum, and returns `None` if their tools differ. Without an order, calls that do not match are paired with the most
/// similar free call; the differences are then counted up to `limit`.
pub(super) fn assign<E, O>(
    expected: &[E],
    observed: &[O],
    is_ordered: bool,
    limit: usize,
    differences: impl Fn(&E, &O, usize) -> Option<usize>,
) -> Vec<Option<usize>> {
    let observed = observed.get(..MAX_CALLS).unwrap_or(observed);
    let row = |expected: &E| -> Vec<Fit> {
        observed.iter().map(|call| Fit::from(differences(expected, call, 1))).collect()
    };
    let fits: Vec<Vec<Fit>> = expected.iter().take(MAX_CALLS).map(row).collect();
    let mut pairs = if is_ordered { align(&fits) } else { match_all(&fits) };
    pairs.resize(expected.len(), None);
    if !is_ordered {
        let mut used: HashSet<usize> = pairs.iter().flatten().copied().collect();
        for (expected, pair) in expected.iter().zip(&mut pairs).take(MAX_CALLS) {
            if pair.is_none() {
                let free = observed.iter().enumerate().filter(|(index, _)| !used.contains(index));
                let near =
                    free.filter_map(|(index, call)| Some((differences(expected, call, limit)?, index)));
                *pair = near.min().map(|(_, index)| index);
                used.extend(*pair);
            }
        }
    }
    pairs
}

/// How well an observed call fits an expected call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    OtherTool,
    SameTool,
    Match,
}

impl From<Option<usize>> for Fit {
    fn from(differences: Option<usize>) -> Self {
        match differences {
            None => Self::OtherTool,
            Some(0) => Self::Match,
            Some(_) => Self::SameTool,
        }
    }
}

/// Returns the most pairs that match.
fn match_all(fits: &[Vec<Fit>]) -> Vec<Option<usize>> {
    // From the observed to the expected call.
    let mut owners = HashMap::new();
    for row in 0..fits.len() {
        augment(row, fits, &mut owners, &mut HashSet::new());
    }
    let rows: HashMap<usize, usize> = owners.into_iter().map(|(column, row)| (row, column)).collect();
    (0..fits.len()).map(|row| rows.get(&row).copied()).collect()
}

/// Finds a column for `row`, and other columns for the rows that had it. The depth is at most the number of rows.
fn augment(
    row: usize,
    fits: &[Vec<Fit>],
    owners: &mut HashMap<usize, usize>,
    seen: &mut HashSet<usize>,
) -> bool {
    for (column, fit) in fits.get(row).into_iter().flatten().enumerate() {
        if *fit != Fit::Match || !seen.insert(column) {
            continue;
        }
        let owner = owners.get(&column).copied();
        if owner.is_none_or(|owner| augment(owner, fits, owners, seen)) {
            owners.insert(column, row);
            return true;
        }
    }
    false
}

/// Number of pairs, and number of those that match.
type Score = (usize, usize);

/// Returns the best pairs that keep the order of both sides.
fn align(fits: &[Vec<Fit>]) -> Vec<Option<usize>> {
    let columns = fits.first().map_or(0, Vec::len);
    // The best score of the calls from each row and column to the end, with the rows in reverse order.
    let mut best: Vec<Vec<Score>> = vec![vec![(0, 0); columns + 1]];
    for row in fits.iter().rev() {
        let mut scores = vec![(0, 0); columns + 1];
        for (column, fit) in row.iter().enumerate().rev() {
            let below = |column: usize| best.last().and_then(|scores| scores.get(column)).copied();
            let after = scores.get(column + 1).copied();
            let skipped = below(column).max(after).unwrap_or_default();
            let found = paired(*fit, below(column + 1)).map_or(skipped, |score| score.max(skipped));
            if let Some(score) = scores.get_mut(column) {
                *score = found;
            }
        }
        best.push(scores);
    }
    let mut pairs = Vec::with_capacity(fits.len());
    let mut column = 0;
    for (row, (scores, below)) in fits.iter().zip(best.iter().rev().zip(best.iter().rev().skip(1))) {
        let at = |scores: &[Score], column: usize| scores.get(column).copied();
        let here = at(scores, column);
        // The first column from here on with which this row makes the score. Without one, the row is skipped.
        let is_pair = |column: &usize| {
            let fit = row.get(*column).copied().unwrap_or(Fit::OtherTool);
            at(scores, *column) == here && paired(fit, at(below, column + 1)) == here
        };
        let pair = (column..columns).find(is_pair);
        column = pair.map_or(column, |pair| pair + 1);
        pairs.push(pair);
    }
    pairs
}

/// Returns the score of a pair before the calls with the score `rest`.
fn paired(fit: Fit, rest: Option<Score>) -> Option<Score> {
    let (pairs, matching) = rest?;
    (fit != Fit::OtherTool).then(|| (pairs + 1, matching + usize::from(fit == Fit::Match)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the best score of all ways of pairing.
    fn exhaustive(fits: &[Vec<Fit>], is_ordered: bool, used: &[usize]) -> Score {
        let Some((row, rest)) = fits.split_first() else { return (0, 0) };
        let mut best = exhaustive(rest, is_ordered, used);
        for (column, fit) in row.iter().enumerate() {
            let is_free =
                if is_ordered { used.iter().all(|used| *used < column) } else { !used.contains(&column) };
            if is_free && *fit != Fit::OtherTool {
                let used = [used, &[column]].concat();
                best = best.max(paired(*fit, Some(exhaustive(rest, is_ordered, &used))).unwrap());
            }
        }
        best
    }

    #[test]
    fn random_calls_have_the_best_pairs() {
        let mut random = fastrand::Rng::with_seed(5);
        for round in 0..2000 {
            let is_ordered = round % 2 == 0;
            let mut calls = |count: usize| -> Vec<(u8, u8)> {
                (0..count).map(|_| (random.u8(..3), random.u8(..3))).collect()
            };
            let (expected, observed) = (calls(round % 5), calls(round / 5 % 6));
            // A value matches itself and the next one, so that matches compete.
            let differences = |one: &(u8, u8), other: &(u8, u8), limit: usize| {
                let distance = usize::from((other.1 + 3 - one.1) % 3).saturating_sub(1);
                (one.0 == other.0).then_some(distance.min(limit))
            };
            let pairs = assign(&expected, &observed, is_ordered, 9, differences);
            let fits: Vec<Vec<Fit>> = expected
                .iter()
                .map(|one| observed.iter().map(|other| Fit::from(differences(one, other, 1))).collect())
                .collect();
            let mut score = (0, 0);
            let mut columns = Vec::new();
            for (row, column) in pairs.iter().enumerate() {
                if let Some(column) = column {
                    score = paired(fits[row][*column], Some(score)).unwrap();
                    columns.push(*column);
                }
            }
            assert_eq!(score, exhaustive(&fits, is_ordered, &[]), "{expected:?} {observed:?}");
            let mut sorted = columns.clone();
            sorted.sort_unstable();
            assert!(sorted.is_sorted_by(|one, other| one < other), "{pairs:?}");
            assert!(!is_ordered || sorted == columns, "{pairs:?}");
        }
    }

    #[test]
    fn the_number_of_compared_calls_is_limited() {
        let compared = std::cell::Cell::new(0);
        let differences = |(): &(), (): &(), _: usize| {
            compared.set(compared.get() + 1);
            Some(1)
        };
        let pairs = assign(&[(); 500], &[(); 100_000], false, 9, differences);
        assert_eq!(pairs.iter().flatten().count(), MAX_CALLS);
        assert!(compared.get() <= 2 * MAX_CALLS * MAX_CALLS, "{}", compared.get());
    }
}
