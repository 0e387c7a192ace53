//! JSON that a strict parser rejects although its meaning is plain, as some servers write it.
//!
//! In: bytes that did not parse. Out: text in which bytes that are not UTF-8 and halves of surrogate pairs (`"\ud83e"`,
//! a character cut between two tokens) became U+FFFD, and `NaN` and `Infinity` (Python's writer) became null. Whether
//! it parses now is the caller's to see.

/// The repaired text, or `None` if there was nothing to repair.
pub(super) fn repair_json(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    let mut repaired = String::with_capacity(text.len());
    let mut rest: &str = &text;
    let mut in_string = false;
    while let Some(char) = rest.chars().next() {
        let (taken, replacement) = match char {
            '"' => {
                in_string = !in_string;
                (1, None)
            }
            '\\' if in_string => match read_surrogate(rest) {
                Some(0xD800..=0xDBFF) => match rest.get(6..).and_then(read_surrogate) {
                    Some(0xDC00..=0xDFFF) => (12, None),
                    Some(_) | None => (6, Some("\\ufffd")),
                },
                Some(0xDC00..=0xDFFF) => (6, Some("\\ufffd")),
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
    (repaired.as_bytes() != data).then_some(repaired)
}

/// The value of a `\uXXXX` at the start of `text`.
fn read_surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_only_what_is_broken() {
        let repaired = |data: &[u8]| repair_json(data).unwrap_or_default();
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
}
