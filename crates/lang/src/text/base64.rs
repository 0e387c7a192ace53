//! Base64 with the standard alphabet: RFC 4648, 4.

/// The digits.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes in base64, with padding.
pub fn to_base64(bytes: &[u8]) -> String {
    let mut coded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            coded.push(if digit > chunk.len() { '=' } else { char::from(DIGITS[value as usize]) });
        }
    }
    coded
}

/// Returns the bytes of a text in base64; `None` if it is not base64. Line breaks, missing padding and the URL-safe
/// alphabet are accepted, because some programs write them.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut digits) = (0_u32, 0_usize);
    let text = text.trim_end_matches(|c: char| c == '=' || c.is_ascii_whitespace());
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        bits = bits << 6 | u32::from(value_of(byte)?);
        digits += 1;
        if digits == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, digits) = (0, 0);
        }
    }
    match digits {
        0 => {}
        2 => bytes.push((bits >> 4) as u8),
        3 => bytes.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        // One digit is less than a byte.
        _ => return None,
    }
    Some(bytes)
}

fn value_of(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, 10.
    #[test]
    fn the_encoding_is_the_standard_one() {
        for (bytes, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(to_base64(bytes.as_bytes()), coded);
            assert_eq!(from_base64(coded).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(from_base64(coded.trim_end_matches('=')).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_base64(&to_base64(&all)), Some(all));
    }

    #[test]
    fn only_base64_is_decoded() {
        assert_eq!(from_base64("-_8\r\n="), Some(vec![0xfb, 0xff]));
        for text in ["Z", "Zg=a", "Zm9v!", "é"] {
            assert_eq!(from_base64(text), None, "{text}");
        }
    }
}
