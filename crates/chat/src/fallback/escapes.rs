//! The `\uXXXX` escapes of JSON and of logs.

/// Decodes a Unicode escape. `text` begins after its backslashes, with `u`. Returns the character and its length in
/// bytes; no character for a lone surrogate. `None` if the text is not a Unicode escape.
///
/// A second escape completes a surrogate pair, whatever number of backslashes begins it.
pub(crate) fn unicode_escape(text: &str) -> Option<(Option<char>, usize)> {
    /// Length of `uXXXX`.
    const LENGTH: usize = 5;
    let code = code_unit(text)?;
    let next = text.get(LENGTH..).unwrap_or_default();
    let second = next.trim_start_matches('\\');
    let low = code_unit(second).filter(|low| second.len() < next.len() && (0xDC00..0xE000).contains(low));
    if let (0xD800..0xDC00, Some(low)) = (code, low) {
        let code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(code), 2 * LENGTH + next.len() - second.len()));
    }
    Some((char::from_u32(code), LENGTH))
}

/// Reads `uXXXX`.
fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_escapes_are_decoded() {
        for (text, decoded) in [
            ("u003c<", Some((Some('<'), 5))),
            (r"ud83d\ude00.", Some((Some('😀'), 11))),
            (r"ud83d\\\ude00", Some((Some('😀'), 13))),
            (r"ud83d\n", Some((None, 5))),
            (r"ud83dude00", Some((None, 5))),
            (r"ude00\ud83d", Some((None, 5))),
            ("u12", None),
            ("u12é4", None),
            ("n", None),
        ] {
            assert_eq!(unicode_escape(text), decoded, "{text}");
        }
    }
}
