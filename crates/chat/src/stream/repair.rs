//! Repair of JSON that a strict parser rejects although its meaning is clear.
//!
//! In: bytes that do not parse. Out: text in which invalid UTF-8 and halves of surrogate pairs (`"\ud83e"`, a character
//! split between two tokens) are replaced by U+FFFD, and `NaN` and `Infinity` (from Python's writer) by null. The
//! caller parses the result again. [`Repaired::join`] joins a pair whose halves are at the end of one event and the
//! start of the next.

/// Repaired text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repaired {
    pub(super) text: String,
    /// The only lone first half, if it is at the end of a string.
    last_half: Option<Half>,
    /// The only lone second half, if it is at the start of a string.
    first_half: Option<Half>,
}

/// Half of a surrogate pair, replaced by [`REPLACEMENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Half {
    /// Position of its replacement in the repaired text, in bytes.
    at: usize,
    unit: u16,
}

/// Replaces half a surrogate pair.
const REPLACEMENT: &str = "\\ufffd";

impl Repaired {
    /// Whether its last string ends with the first half of a pair.
    pub(super) fn ends_with_half(&self) -> bool {
        self.last_half.is_some()
    }

    /// Returns the text without that half, for the last event of a stream.
    pub(super) fn without_half(mut self) -> String {
        if let Some(half) = self.last_half {
            self.text.replace_range(half.at..half.at + REPLACEMENT.len(), "");
        }
        self.text
    }

    /// Joins a first half at the end of a string here with a second half at the start of a string in `next`.
    pub(super) fn join(&mut self, next: &mut Self) {
        if let (Some(first), Some(second)) = (self.last_half, next.first_half) {
            let pair = format!("\\u{:04x}\\u{:04x}", first.unit, second.unit);
            self.text.replace_range(first.at..first.at + REPLACEMENT.len(), &pair);
            next.text.replace_range(second.at..second.at + REPLACEMENT.len(), "");
            self.last_half = None;
            next.first_half = None;
            if let Some(half) = next.last_half.as_mut().filter(|half| half.at > second.at) {
                half.at -= REPLACEMENT.len();
            }
        }
    }
}

/// Returns the repaired text, or `None` if nothing was repaired.
pub(super) fn repair_json(data: &[u8]) -> Option<Repaired> {
    let text = String::from_utf8_lossy(data);
    let mut repaired = String::with_capacity(text.len());
    // Number of lone halves of each kind, and the latest one if it is at the edge of its string.
    let (mut last_halves, mut first_halves) = ((0, None), (0, None));
    let mut rest: &str = &text;
    let mut in_string = false;
    let mut at_start = false;
    while let Some(char) = rest.chars().next() {
        let was_at_start = std::mem::take(&mut at_start);
        let (taken, replacement) = match char {
            '"' => {
                in_string = !in_string;
                at_start = in_string;
                (1, None)
            }
            '\\' if in_string => match read_surrogate(rest) {
                Some(unit @ 0xD800..=0xDBFF) => match rest.get(6..).and_then(read_surrogate) {
                    Some(0xDC00..=0xDFFF) => (12, None),
                    Some(_) | None => {
                        let ends_string = rest.get(6..).is_some_and(|rest| rest.starts_with('"'));
                        let half = ends_string.then_some(Half { at: repaired.len(), unit });
                        last_halves = (last_halves.0 + 1, half);
                        (6, Some(REPLACEMENT))
                    }
                },
                Some(unit @ 0xDC00..=0xDFFF) => {
                    let half = was_at_start.then_some(Half { at: repaired.len(), unit });
                    first_halves = (first_halves.0 + 1, half);
                    (6, Some(REPLACEMENT))
                }
                Some(_) | None => (1 + rest.chars().nth(1).map_or(0, char::len_utf8), None),
            },
            'N' | 'I' | '-' if !in_string => {
                let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
                word.map_or((1, None), |word| (word.len(), Some("null")))
            }
            _ => (char.len_utf8(), None),
        };
        let (piece, tail) = rest.split_at_checked(taken)?;
        repaired.push_str(replacement.unwrap_or(piece));
        rest = tail;
    }
    let only = |(count, half): (usize, Option<Half>)| half.filter(|_| count == 1);
    let (last_half, first_half) = (only(last_halves), only(first_halves));
    (repaired.as_bytes() != data).then_some(Repaired { text: repaired, last_half, first_half })
}

/// Returns the value of a `\uXXXX` escape at the start of `text`.
fn read_surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_only_what_is_broken() {
        let repaired = |data: &[u8]| repair_json(data).unwrap_or_default().text;
        assert_eq!(repaired(br#"{"a":NaN,"b":[-Infinity,Infinity,-1]}"#), r#"{"a":null,"b":[null,null,-1]}"#);
        assert_eq!(
            repaired(br#"["\ud83e","\udd80x","\ud83e\u0041"]"#),
            r#"["\ufffd","\ufffdx","\ufffd\u0041"]"#
        );
        assert_eq!(repaired(b"[\"\xff\"]"), "[\"\u{fffd}\"]");
        for whole in
            [r#"["\ud83e\udd80","NaN","\\ud83e\"NaN"]"#, "", "nonsense", "\"\\", "\"\\u12", "[\"é\\é\"]"]
        {
            assert_eq!(repair_json(whole.as_bytes()), None, "{whole}");
        }
    }

    #[test]
    fn joins_a_pair_that_is_split_between_two_events() {
        let join = |first: &str, second: &str| {
            let mut first = repair_json(first.as_bytes()).unwrap();
            let mut second = repair_json(second.as_bytes()).unwrap();
            first.join(&mut second);
            (first.text, second.text, second.last_half.map(|half| half.at))
        };
        let pair = String::from(r#"["a\ud83e\udd80"]"#);
        assert_eq!(join(r#"["a\ud83e"]"#, r#"["\udd80b"]"#), (pair.clone(), String::from(r#"["b"]"#), None));
        let (first, second, half) = join(r#"["a\ud83e"]"#, r#"["\udd80b\ud83e"]"#);
        assert_eq!((first, second.as_str(), half), (pair, r#"["b\ufffd"]"#, Some(3)));
        for (first, second) in [
            (r#"["\ud83e "]"#, r#"["\udd80"]"#),
            (r#"["\ud83e"]"#, r#"[" \udd80"]"#),
            (r#"["\ud83e","\ud83e"]"#, r#"["\udd80"]"#),
        ] {
            let (first, second, _) = join(first, second);
            assert!(!first.contains("ud83e") && second.contains("ufffd"), "{first} {second}");
        }
    }
}
