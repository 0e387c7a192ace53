//! "Did you mean …?", and the advice for an unknown name.
//!
//! Suggestions must be cheap: the cost for one word is limited by [`MAX_WORK`] for any number of candidates.

use std::cmp::Reverse;

/// Maximum work for one word, in steps of a few nanoseconds. A step is one candidate, one folded letter or one cell of
/// the distance table. Dozens of names need far less; above the limit there is no suggestion.
const MAX_WORK: usize = 40_000;

/// Maximum length of a word, in bytes. Words written by models can have any length.
const MAX_WORD: usize = 100;

/// Maximum number of known names that are listed completely. Of more names, the [`MAX_SIMILAR`] most similar ones are listed.
const MAX_LISTED: usize = 16;

/// Number of similar names that are listed.
const MAX_SIMILAR: usize = 5;

/// Returns the advice for the unknown name `word`, as a clause: the name that it most likely misspells, or the known names,
/// or the most similar of many. `what`: the plural of their kind, as in `tools`.
pub fn advice_on_name<'c>(word: &str, what: &str, known: impl IntoIterator<Item = &'c str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // Of names with one letter, every other one is near.
    let shares_letter = |near: &&str| fold(near).contains(|letter: char| fold(word).contains(letter));
    if let Some(near) = nearest(word, known.iter().copied()).filter(shares_letter) {
        return format!("did you mean `{near}`?");
    }
    match known.len() {
        0 => format!("the project has no {what}"),
        1..=MAX_LISTED => format!("known {what}: {}", known.join(", ")),
        all => format!("the most similar of {all} {what}: {}", most_similar(word, known).join(", ")),
    }
}

/// Returns the names that share most pairs of letters with `word`, the most similar one first. Names beyond [`MAX_WORK`]
/// are not compared.
fn most_similar<'c>(word: &str, known: Vec<&'c str>) -> Vec<&'c str> {
    let of_word = pairs_of(&word.chars().take(MAX_WORD).collect::<String>());
    let mut work = MAX_WORK;
    let mut similarity = |name: &str| {
        work = work.saturating_sub(1 + name.len());
        if work == 0 {
            return 0;
        }
        let of_name = pairs_of(name);
        let shared = of_name.iter().filter(|pair| of_word.binary_search(pair).is_ok()).count();
        1_000 * shared / (of_word.len() + of_name.len()).max(1)
    };
    let mut ranked: Vec<(usize, &str)> = known.into_iter().map(|name| (similarity(name), name)).collect();
    ranked.sort_by_key(|(similarity, _)| Reverse(*similarity));
    ranked.into_iter().take(MAX_SIMILAR).map(|(_, name)| name).collect()
}

/// Returns the sorted pairs of neighbouring letters.
fn pairs_of(name: &str) -> Vec<(char, char)> {
    let folded = fold(name);
    let mut pairs: Vec<(char, char)> = folded.chars().zip(folded.chars().skip(1)).collect();
    pairs.sort_unstable();
    pairs
}

/// Returns the candidate that `word` most likely misspells: the nearest one with at most a third of the letters
/// changed, added, removed or swapped.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let folded = fold(word);
    let mut best: Option<(usize, &str)> = None;
    let mut work = MAX_WORK;
    for candidate in candidates {
        work = work.checked_sub(1)?;
        if !may_be_near(word.len(), candidate) {
            continue;
        }
        let other = fold(candidate);
        let allowed = candidate.chars().count().max(3) / 3;
        // Only a smaller distance than the best so far counts.
        let limit = match best {
            Some((0, _)) => break,
            Some((distance, _)) => allowed.min(distance - 1),
            None => allowed,
        };
        work = work.checked_sub(folded.len() + other.len())?;
        if differs_by_more(&folded, &other, limit) {
            continue;
        }
        work = work.checked_sub(folded.len() * other.len())?;
        let distance = strsim::osa_distance(&folded, &other);
        if distance <= limit {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Whether a candidate is possible, based on the byte lengths alone. A letter has at most four bytes, folded or not.
fn may_be_near(word_len: usize, candidate: &str) -> bool {
    let len = candidate.len();
    if len > 6 * MAX_WORD {
        return false;
    }
    !candidate.is_ascii() || len.max(3) / 3 + word_len >= len
}

/// Folds case and dash characters.
fn fold(word: &str) -> String {
    word.chars().map(|c| if c == '-' { '_' } else { c }).flat_map(char::to_lowercase).collect()
}

/// Whether the letters in any order already differ by more than `limit`.
fn differs_by_more(a: &str, b: &str, limit: usize) -> bool {
    let mut counts = [0_isize; 64];
    let place = |letter: char| (letter as usize) % 64;
    for letter in a.chars() {
        if let Some(count) = counts.get_mut(place(letter)) {
            *count += 1;
        }
    }
    for letter in b.chars() {
        if let Some(count) = counts.get_mut(place(letter)) {
            *count -= 1;
        }
    }
    // Surplus letters on one side; a substitution uses one from each side.
    let missing: usize = counts.iter().map(|count| count.min(&0).unsigned_abs()).sum();
    let extra: usize = counts.iter().map(|count| count.max(&0).unsigned_abs()).sum();
    missing.max(extra) > limit
}

#[cfg(test)]
mod tests {
    use super::{advice_on_name, nearest};

    #[test]
    fn an_unknown_name_is_answered_with_few_known_ones() {
        let many: Vec<String> = (0..500).map(|number| format!("tool_{number}")).collect();
        let words = ["get_weather", "weather_forecast", "find-weather", "weather", "storm_weather"];
        let all: Vec<&str> = many.iter().map(String::as_str).chain(words).collect();
        for (word, count, expected) in [
            ("a", 0, "the project has no tools"),
            ("other", 2, "known tools: tool_0, tool_1"),
            ("tool_77x", all.len(), "did you mean `tool_77`?"),
            (
                "current_weather_report",
                all.len(),
                "the most similar of 505 tools: get_weather, weather_forecast, storm_weather, weather, find-weather",
            ),
            ("?", 17, "the most similar of 17 tools: tool_0, tool_1, tool_2, tool_3, tool_4"),
        ] {
            assert_eq!(advice_on_name(word, "tools", all.iter().copied().take(count)), expected, "{word}");
        }
        assert_eq!(advice_on_name("c", "workers", ["a", "b"]), "known workers: a, b");
        assert_eq!(advice_on_name("B", "workers", ["a", "b"]), "did you mean `b`?");
    }

    #[test]
    fn misspellings() {
        let known = ["get_weather", "description", "type", "enum"];
        assert_eq!(nearest("get_wether", known), Some("get_weather"));
        assert_eq!(nearest("get-weather", known), Some("get_weather"));
        assert_eq!(nearest("descriptoin", known), Some("description"));
        assert_eq!(nearest("tpye", known), Some("type"));
        assert_eq!(nearest("Größe", ["größen", "große"]), Some("größen"));
        assert_eq!(nearest("abc", ["abd", "ABC"]), Some("ABC"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("x", known), None);
        assert_eq!(nearest("", ["", "a"]), Some(""));
    }

    #[test]
    fn no_filter_drops_a_near_word() {
        let words: Vec<String> = (0..400_u32)
            .map(|seed| {
                let mut bits = u64::from(seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let len = 1 + bits % 9;
                (0..len)
                    .map(|_| {
                        bits = bits.rotate_left(7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                        ['a', 'b', 'c', 'é'][(bits >> 60) as usize % 4]
                    })
                    .collect()
            })
            .collect();
        for word in words.iter().take(60) {
            for other in &words {
                let near = strsim::osa_distance(word, other) * 3 <= other.chars().count().max(3);
                assert_eq!(nearest(word, [other.as_str()]).is_some(), near, "{word} {other}");
            }
        }
    }

    /// Thousands of unknown names against thousands of known ones with the same length and letters.
    #[test]
    fn the_cost_of_a_suggestion_is_bounded() {
        let name = |number: usize, letters: [char; 2]| -> String {
            (0..90).map(|bit| letters[(number.wrapping_mul(2_654_435_761) >> (bit % 40)) & 1]).collect()
        };
        let known: Vec<String> = (0..8_000).map(|number| name(number, ['a', 'b'])).collect();
        let clock = deftool_test_support::cpu::CpuClock::start();
        for number in 0..500 {
            let _ = nearest(&name(number, ['b', 'c']), known.iter().map(String::as_str));
        }
        assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
    }
}
