//! Text on stdin.

use std::io::Read;

/// Maximum size of an input, in bytes.
pub(in crate::cli) const MAX_INPUT: u64 = 64 << 20;

/// Returns the text on stdin. `what` describes the text in error messages.
pub(in crate::cli) fn read_stdin(what: &str) -> Result<String, String> {
    read_limited(std::io::stdin(), MAX_INPUT).map_err(|why| format!("{what} on stdin {why}"))
}

/// Reads at most `limit` bytes of UTF-8 text. The error is a clause without a subject.
fn read_limited(from: impl Read, limit: u64) -> Result<String, String> {
    // Check the size before decoding: the text may be cut within a character.
    text_of(read_bytes(from, limit)?)
}

/// Reads at most `limit` bytes. The error is a clause without a subject.
pub(in crate::cli) fn read_bytes(from: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > limit {
        return Err(format!("exceeds {} MiB", limit >> 20));
    }
    Ok(bytes)
}

/// Returns bytes as text. The error is a clause without a subject.
pub(in crate::cli) fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        format!("cannot be read: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_above_the_limit_is_reported_as_too_long_even_if_a_character_is_cut() {
        let limit = 1 << 20;
        for (text, expected) in [
            ("é".repeat(1 << 19), None),
            ("é".repeat(1 << 19) + "é", Some("exceeds 1 MiB")),
            ("é".repeat(1 << 19) + "x", Some("exceeds 1 MiB")),
        ] {
            let read = read_limited(text.as_bytes(), limit);
            assert_eq!(read.as_ref().err().map(String::as_str), expected);
            assert_eq!(read.unwrap_or_default().len(), if expected.is_none() { text.len() } else { 0 });
        }
        let error = read_limited(&b"ab\xff"[..], limit).unwrap_err();
        assert_eq!(error, "cannot be read: byte 3 is not UTF-8");
    }
}
