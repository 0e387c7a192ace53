//! Base64, RFC 4648.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Padding may be missing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns bytes in base64, with the standard alphabet and padding.
pub fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the bytes of a text in base64; `None` if it is not base64. Line breaks, missing padding and the URL-safe
/// alphabet are accepted, because some programs write them.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let is_other = |c: char| c.is_ascii_whitespace() || matches!(c, '-' | '_');
    let mut text = Cow::Borrowed(text.trim_ascii());
    if text.contains(is_other) {
        let standard = |c: char| match c {
            '-' => Some('+'),
            '_' => Some('/'),
            c => (!c.is_ascii_whitespace()).then_some(c),
        };
        text = Cow::Owned(text.chars().filter_map(standard).collect());
    }
    LENIENT.decode(&*text).ok()
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
