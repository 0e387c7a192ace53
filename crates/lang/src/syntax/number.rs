//! Number tokens and their values.
//!
//! Source: `string_to_number`, as documented in "Integer Basics" and "Floating-Point Basics" of the Emacs Lisp
//! reference manual (Emacs 30): `1.` is an integer, `1.e3` is a float (since Emacs 28), `1+` is a symbol.

use super::tree::Kind;

/// A number in the form JSON can represent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A 64-bit signed integer.
    Integer(i64),
    /// An integer above `i64::MAX` that fits into 64 bits.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// The nearest float to an integer beyond 64 bits.
    Rounded(f64),
}

/// Classifies a token as integer or float; `None` for a symbol.
pub(super) fn classify(token: &[u8]) -> Option<Kind> {
    let digits_from = |at: usize| token.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(matches!(token.first(), Some(b'+' | b'-')));
    let lead = digits_from(at);
    at += lead;
    if lead > 0 && at == token.len() {
        return Some(Kind::Integer);
    }
    let mut trail = 0;
    if token.get(at) == Some(&b'.') {
        at += 1;
        trail = digits_from(at);
        at += trail;
        if at == token.len() {
            return match (lead, trail) {
                (_, 1..) => Some(Kind::Float),
                (1.., 0) => Some(Kind::Integer),
                (0, 0) => None,
            };
        }
    }
    if !matches!(token.get(at), Some(b'e' | b'E')) || lead + trail == 0 {
        return None;
    }
    at += 1;
    match token.get(at..) {
        Some(b"+INF" | b"+NaN") => return Some(Kind::Float),
        Some([b'+' | b'-', ..]) => at += 1,
        Some(_) | None => {}
    }
    let exponent = digits_from(at);
    (exponent > 0 && at + exponent == token.len()).then_some(Kind::Float)
}

/// Parses an integer or float token; `None` for an infinity or a NaN, which JSON does not have.
pub(super) fn parse_number(token: &str) -> Option<Number> {
    if token.starts_with('#') {
        return parse_radix(token);
    }
    if classify(token.as_bytes()) == Some(Kind::Integer) {
        let digits = token.strip_suffix('.').unwrap_or(token);
        return parse_integer(digits.strip_prefix('+').unwrap_or(digits), 10);
    }
    if token.ends_with("+INF") || token.ends_with("+NaN") {
        return None;
    }
    token.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Float)
}

/// Parses `#x1f`, `#o17`, `#b101` or `#24r1k`.
fn parse_radix(token: &str) -> Option<Number> {
    let (radix, digits) = radix_and_digits(token)?;
    parse_integer(digits, radix)
}

/// Whether the token is an integer of any size with a radix.
pub(super) fn is_radix(token: &str) -> bool {
    radix_and_digits(token).is_some()
}

/// Returns the radix of a token, and its digits with a minus sign if there is one.
fn radix_and_digits(token: &str) -> Option<(u32, &str)> {
    let body = token.strip_prefix('#')?;
    let (radix, digits) = match body.as_bytes().first()? {
        b'x' | b'X' => (16, body.get(1..)?),
        b'o' | b'O' => (8, body.get(1..)?),
        b'b' | b'B' => (2, body.get(1..)?),
        _ => {
            let (radix, digits) = body.split_once(['r', 'R'])?;
            (radix.parse().ok().filter(|radix| (2..=36).contains(radix))?, digits)
        }
    };
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let magnitude = digits.strip_prefix('-').unwrap_or(digits);
    let is_number = !magnitude.is_empty() && magnitude.chars().all(|digit| digit.is_digit(radix));
    is_number.then_some((radix, digits))
}

fn parse_integer(digits: &str, radix: u32) -> Option<Number> {
    let (negative, magnitude) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    if magnitude.is_empty() || !magnitude.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    if let Ok(value) = i64::from_str_radix(digits, radix) {
        return Some(Number::Integer(value));
    }
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        return Some(Number::Unsigned(value));
    }
    let value = if radix == 10 {
        magnitude.parse().ok()?
    } else {
        magnitude
            .chars()
            .filter_map(|digit| digit.to_digit(radix))
            .fold(0.0_f64, |sum, digit| sum.mul_add(f64::from(radix), f64::from(digit)))
    };
    // Thousands of digits overflow a float too.
    value.is_finite().then_some(Number::Rounded(if negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        for (token, kind) in [
            ("1", Some(Kind::Integer)),
            ("-1.", Some(Kind::Integer)),
            ("+12", Some(Kind::Integer)),
            ("1.5", Some(Kind::Float)),
            (".5", Some(Kind::Float)),
            ("1e3", Some(Kind::Float)),
            ("1.0e+INF", Some(Kind::Float)),
            ("-0.5E-7", Some(Kind::Float)),
            ("1+", None),
            ("+", None),
            ("-", None),
            ("1.e3", Some(Kind::Float)),
            ("1.e+INF", Some(Kind::Float)),
            (".e3", None),
            ("1.e", None),
            (".", None),
            ("..", None),
            ("1e", None),
            ("1x", None),
            ("+.e1", None),
        ] {
            assert_eq!(classify(token.as_bytes()), kind, "{token}");
        }
    }

    #[test]
    fn values() {
        for (token, value) in [
            ("9223372036854775807", Some(Number::Integer(i64::MAX))),
            ("-9223372036854775808", Some(Number::Integer(i64::MIN))),
            ("18446744073709551615", Some(Number::Unsigned(u64::MAX))),
            ("18446744073709551616", Some(Number::Rounded(18_446_744_073_709_551_616.0))),
            ("1.0", Some(Number::Float(1.0))),
            ("1.", Some(Number::Integer(1))),
            ("+1.e3", Some(Number::Float(1000.0))),
            ("#x1F", Some(Number::Integer(31))),
            ("#b-101", Some(Number::Integer(-5))),
            ("#24r1k", Some(Number::Integer(44))),
            ("#36rZ", Some(Number::Integer(35))),
            ("#37r1", None),
            ("#b12", None),
            ("0.0e+NaN", None),
        ] {
            assert_eq!(parse_number(token), value, "{token}");
        }
    }
}
