//! "Did you mean …?"

/// The candidate that `word` is most likely a misspelling of, if any is near enough: at most a third of its
/// letters changed, added, left out or swapped.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Model-made words may be long; a misspelling is not.
    if word.len() > 100 {
        return None;
    }
    let folded = fold(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| distance * 3 <= candidate.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and the sort of dash are no difference.
fn fold(word: &str) -> Vec<char> {
    word.chars().map(|c| if c == '-' { '_' } else { c }).flat_map(char::to_lowercase).collect()
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut cost =
                (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspellings() {
        let known = ["get_weather", "description", "type", "enum"];
        assert_eq!(nearest("get_wether", known), Some("get_weather"));
        assert_eq!(nearest("get-weather", known), Some("get_weather"));
        assert_eq!(nearest("descriptoin", known), Some("description"));
        assert_eq!(nearest("tpye", known), Some("type"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("x", known), None);
    }
}
