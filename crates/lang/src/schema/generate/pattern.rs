//! Generates strings that match an ECMA-262 regular expression.
//!
//! Patterns with lookaround or backreferences are not supported.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// Maximum extra repetitions for an unbounded quantifier.
const MANY: u32 = 8;
/// Maximum length of the generated string, in bytes.
const MAX_LENGTH: usize = 4_000;

/// Generates a string that matches `pattern`; `None` if the pattern is not supported.
pub(super) fn matching(pattern: &str, random: &mut fastrand::Rng) -> Option<String> {
    let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
    let parsed = regex_syntax::parse(&translated).ok()?;
    let mut text = String::new();
    write(&parsed, random, &mut text)?;
    Some(text)
}

fn write(pattern: &Hir, random: &mut fastrand::Rng, text: &mut String) -> Option<()> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    match pattern.kind() {
        // Not at an end, an anchor never matches; the validator then rejects the string.
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(character(class, random)?),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let most = max.unwrap_or_else(|| min.saturating_add(MANY)).min(min.saturating_add(64));
            let times = match random.u32(..4) {
                0 => *min,
                1 => most,
                _ => random.u32(*min..=most.max(*min)),
            };
            return (0..times).try_for_each(|_| write(sub, random, text));
        }
        HirKind::Capture(capture) => return write(&capture.sub, random, text),
        HirKind::Concat(parts) => return parts.iter().try_for_each(|part| write(part, random, text)),
        HirKind::Alternation(branches) => return write(random.choice(branches)?, random, text),
    }
    Some(())
}

/// Chooses a character of a class: ASCII if possible, sometimes another one.
fn character(class: &Class, random: &mut fastrand::Rng) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let ascii = class.iter().filter(|range| range.start().is_ascii() && !range.start().is_ascii_control());
    let ascii: Vec<_> = ascii.map(|range| range.start()..=range.end().min('~')).collect();
    if random.u32(..8) > 0
        && let Some(range) = random.choice(ascii)
    {
        return Some(random.char(range));
    }
    let range = random.choice(class.ranges())?;
    Some(random.char(range.start()..=range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ArgumentValidator;
    use serde_json::json;

    #[test]
    fn generated_strings_match() {
        let mut random = fastrand::Rng::with_seed(3);
        for pattern in [
            "^[a-z0-9_*?/.-]+$",
            "^(?:a|bc?)*$",
            "^\\d{4}-\\d{2}-\\d{2}$",
            "^[^\\s/]{3,}$",
            "^\\S+@\\S+\\.[a-z]{2,}$",
            "^(?<year>\\d{4})$",
            "^[\\w.-]+?$",
            "x{2}y{0,3}z?",
            "^#[0-9a-fA-F]{6}$",
            "^\\u0041\\x42\\u{1F600}?$",
            ".",
            "^$",
            "^\\p{L}{3}$",
        ] {
            let schema = json!({"type": "string", "pattern": pattern});
            let validator = ArgumentValidator::compile("t", &schema).unwrap();
            for _ in 0..50 {
                let text = matching(pattern, &mut random).unwrap_or_else(|| panic!("nothing for {pattern}"));
                assert!(validator.is_valid(&json!(text)), "{pattern}: {text:?}");
            }
        }
        for pattern in ["(?=a)", "(a)\\1", "(", "a)", "[", "*", &"(".repeat(1000)] {
            assert_eq!(matching(pattern, &mut random), None, "{pattern}");
        }
    }
}
