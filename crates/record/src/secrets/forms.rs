//! The forms in which a secret may be written: plain, escaped in JSON, percent-encoded, in base64.
//!
//! A literal search cannot find them all: every byte of a secret may be escaped or not, so a secret of n bytes has
//! 2^n percent-encoded forms. A form is therefore a list of [`Unit`]s, each of which matches a byte in any spelling.
//!
//! Source: RFC 8259, 7 (JSON strings); RFC 3986, 2.1 (percent-encoding); RFC 4648, 4 and 5 (base64, standard and URL-safe alphabet).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

/// Minimum number of base64 digits to match. Shorter runs occur in any data.
const MIN_BASE64: usize = 8;

const BASE64: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// The last two digits of base64, in both alphabets.
const BASE64_LAST: [[u8; 2]; 2] = [*b"+-", *b"/_"];

/// The spellings of each byte: first the byte itself, then its escapes.
static SPELLINGS: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| (0..=u8::MAX).map(spellings).collect());

/// A secret in all its forms.
#[derive(Clone)]
pub(crate) struct SecretForms {
    secret: Vec<u8>,
    forms: Vec<Form>,
    /// For each byte: whether a form may begin with it.
    starts: [bool; 256],
}

/// One form: a sequence of units.
#[derive(Clone)]
struct Form {
    units: Vec<Unit>,
    /// Whether the last unit is optional: only some of its bits belong to the secret.
    last_is_optional: bool,
}

/// Any of these bytes, in any spelling.
#[derive(Clone)]
struct Unit(Vec<u8>);

/// The result of matching a secret at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Match {
    /// The end of the longest match.
    pub(crate) end: Option<usize>,
    /// Whether further text may complete a match or make it longer.
    pub(crate) is_open: bool,
}

impl SecretForms {
    /// Returns the forms of `secret`, which must not be empty.
    pub(crate) fn new(secret: &str) -> Self {
        let bytes = secret.as_bytes();
        let plain =
            Form { units: bytes.iter().map(|byte| Unit(vec![*byte])).collect(), last_is_optional: false };
        let coded = (0..3).map(|shift| base64(bytes, shift)).filter(|form| form.units.len() >= MIN_BASE64);
        let forms: Vec<Form> = std::iter::once(plain).chain(coded).collect();
        let mut starts = [false; 256];
        for unit in forms.iter().filter_map(|form| form.units.first()) {
            for start in unit.spellings().filter_map(|spelling| spelling.first()) {
                if let Some(start) = starts.get_mut(usize::from(*start)) {
                    *start = true;
                }
            }
        }
        Self { secret: bytes.to_vec(), forms, starts }
    }

    /// Returns the secret itself.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Whether a form may begin with `byte`.
    pub(crate) fn starts_with(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)) == Some(&true)
    }

    /// Matches all forms at `at` and returns the longest match.
    pub(crate) fn match_at(&self, text: &[u8], at: usize) -> Match {
        let mut found = Match::default();
        if text.get(at).is_some_and(|byte| self.starts_with(*byte)) {
            for form in &self.forms {
                form.match_at(text, at, &mut found);
            }
        }
        found
    }
}

impl Form {
    fn match_at(&self, text: &[u8], at: usize, found: &mut Match) {
        // A `%` or a backslash is literal or begins an escape, so there may be several continuations.
        let mut positions = BTreeSet::from([at]);
        let required = self.units.len() - usize::from(self.last_is_optional);
        for (index, unit) in self.units.iter().enumerate() {
            let mut next = BTreeSet::new();
            for position in positions {
                let rest = text.get(position..).unwrap_or_default();
                for spelling in unit.spellings() {
                    if rest.starts_with(spelling) {
                        next.insert(position + spelling.len());
                    } else {
                        found.is_open |= spelling.starts_with(rest);
                    }
                }
            }
            let Some(last) = next.last() else { return };
            if index + 1 >= required {
                found.end = found.end.max(Some(*last));
            }
            positions = next;
        }
    }
}

impl Unit {
    /// Returns the spellings of all bytes of the unit.
    fn spellings(&self) -> impl Iterator<Item = &'static Vec<u8>> {
        self.0.iter().filter_map(|byte| SPELLINGS.get(usize::from(*byte))).flatten()
    }
}

/// Returns the spellings of a byte.
fn spellings(byte: u8) -> Vec<Vec<u8>> {
    let mut spellings = vec![vec![byte]];
    for high in hex_digits(byte >> 4) {
        for low in hex_digits(byte & 15) {
            spellings.push(vec![b'%', high, low]);
            if byte.is_ascii() {
                let escape = [&b"\\u00"[..], &[high, low]].concat();
                // Also of a JSON text in a JSON string.
                spellings.extend([[&b"\\"[..], &escape].concat(), escape]);
            }
        }
    }
    match byte {
        // In HTML form data.
        b' ' => spellings.push(vec![b'+']),
        b'/' => spellings.push(b"\\/".to_vec()),
        _ => {}
    }
    if byte.is_ascii() {
        let escape = |text: &str| {
            let quoted = Value::from(text).to_string();
            quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
        };
        let text = char::from(byte).to_string();
        let once = escape(&text);
        if once != text {
            spellings.push(escape(&once).into_bytes());
            spellings.push(once.into_bytes());
        }
    }
    spellings
}

/// Returns a hexadecimal digit in both cases.
fn hex_digits(value: u8) -> BTreeSet<u8> {
    let digit = char::from_digit(u32::from(value), 16).map_or(b'0', |digit| digit as u8);
    BTreeSet::from([digit, digit.to_ascii_uppercase()])
}

/// Returns the base64 digits that depend on `bytes` when `shift` bytes (modulo 3) precede them. A digit that is shared
/// with the preceding byte is omitted, so at most four bits of the secret are not redacted. A digit that is shared
/// with the following byte or the padding is optional.
fn base64(bytes: &[u8], shift: usize) -> Form {
    let first = (shift * 8).div_ceil(6);
    let bits = (shift + bytes.len()) * 8;
    let bit = |index: usize| {
        let byte = (index / 8).checked_sub(shift).and_then(|at| bytes.get(at)).copied().unwrap_or(0);
        usize::from((byte >> (7 - index % 8)) & 1)
    };
    let value = |at: usize| (0..6).fold(0, |value, offset| (value << 1) | bit(at * 6 + offset));
    let mut units: Vec<Unit> = (first..bits / 6).map(|at| Unit(base64_digits(value(at)))).collect();
    let unknown = (6 - bits % 6) % 6;
    if unknown > 0 {
        let least = value(bits / 6);
        units.push(Unit((least..least + (1 << unknown)).flat_map(base64_digits).collect()));
    }
    Form { units, last_is_optional: unknown > 0 }
}

fn base64_digits(value: usize) -> Vec<u8> {
    match BASE64.get(value) {
        Some(digit) => vec![*digit],
        None => {
            BASE64_LAST.get(value.saturating_sub(BASE64.len())).map(|both| both.to_vec()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_matched_completely() {
        let forms = SecretForms::new("key/with-\"two\" %41?>");
        for (text, length) in [
            ("key/with-\"two\" %41?>", 20),
            (r#"key\/with-\"two\" %41?>"#, 23),
            (r#"key\/with-\\\"two\\\" %41?>"#, 27),
            ("%6bey%2fwith-%22two%22+%2541%3f%3E", 34),
            ("%6Bey%2Fwith-%22two%22%20%41?>", 30),
            ("key/with-\"two\" %41?", 0),
        ] {
            let found = forms.match_at(format!("{text}x").as_bytes(), 0);
            assert_eq!(found.end.unwrap_or(0), length, "{text}");
        }
        assert_eq!(forms.match_at(b"key%2", 0), Match { end: None, is_open: true });
        assert_eq!(forms.match_at(b"key%3", 0), Match::default());
    }

    #[test]
    fn base64_is_found_at_every_alignment() {
        // `sk-0123456789??>` after zero to three bytes, in both alphabets, with and without padding.
        let forms = SecretForms::new("sk-0123456789??>");
        for (text, at, end) in [
            ("c2stMDEyMzQ1Njc4OT8/Pg==", 0, 22),
            ("c2stMDEyMzQ1Njc4OT8_Pg", 0, 22),
            ("YXNrLTAxMjM0NTY3ODk/Pz4=", 2, 23),
            ("YWFzay0wMTIzNDU2Nzg5Pz8-", 3, 24),
            ("YWFhc2stMDEyMzQ1Njc4OT8/PmI=", 4, 26),
            ("YWFhc2stMDEyMzQ1Njc4OT8%2fPmI%3D", 4, 28),
        ] {
            assert_eq!(forms.match_at(text.as_bytes(), at).end, Some(end), "{text}");
        }
        // A form with too few digits would match ordinary words, so it is not used.
        assert_eq!(SecretForms::new("abcde").match_at(b"YWJjZGU=", 0).end, None);
    }
}
