//! Checks whether a pattern is a valid ECMA-262 regular expression, and names the other syntax if it is not.
//!
//! The engine that enforces patterns also accepts Python and PCRE syntax, and does not support everything that is
//! valid. The extensions of Annex B are accepted (`{` and `]` as characters), because JSON Schema does not specify
//! whether they apply.
//!
//! Source: ECMA-262, 2025, "Patterns" and Annex B.1.2, read 2026-11.

use regress::{Flags, Regex};

/// Escapes of Python and PCRE, which Annex B reads as letters, and what to write instead.
const ESCAPES: [(&str, &str); 10] = [
    ("\\A", "; use `^` for the start of the text"),
    ("\\Z", "; use `$` for the end of the text"),
    ("\\z", "; use `$` for the end of the text"),
    ("\\Q", ""),
    ("\\E", ""),
    ("\\G", ""),
    ("\\K", ""),
    ("\\R", ""),
    ("\\X", ""),
    ("\\h", ""),
];

/// Invalid syntax of Python and PCRE, and its description.
const FOREIGN: [(&str, &str); 9] = [
    ("(?P<", "`(?P<…>…)` is Python syntax; use `(?<…>…)` for a named group"),
    ("(?P=", "`(?P=…)` is Python syntax; use `\\\\k<…>` for a backreference"),
    ("(?P", "`(?P…)` is Python and PCRE syntax"),
    ("(?#", "`(?#…)` is a Python and PCRE comment"),
    ("(?>", "`(?>…)` is a PCRE atomic group; use `(?:…)`"),
    ("*+", POSSESSIVE),
    ("++", POSSESSIVE),
    ("?+", POSSESSIVE),
    ("}+", POSSESSIVE),
];
const POSSESSIVE: &str = "possessive quantifiers such as `++` are PCRE and Python syntax";

/// Maximum number of named groups and lookbehinds. A pattern with more is not checked, because the parsers take quadratic
/// time.
const MAX_NAMED: usize = 500;

/// Returns a clause that describes the first error in `pattern`, if any.
pub(super) fn problem(pattern: &str) -> Option<String> {
    if pattern.matches("(?<").nth(MAX_NAMED).is_some() || jsonschema_regex::is_valid_ecma_regex(pattern) {
        return None;
    }
    // Without the optimizer: the regular expression is not used.
    let compiled = Regex::with_flags(pattern, Flags { no_opt: true, ..Flags::default() });
    let mut tails = tails(pattern);
    match compiled {
        Ok(_) => tails.find_map(misread),
        Err(error) => tails.find_map(foreign).or_else(|| Some(described(&error.text))),
    }
}

/// Returns the suffixes of `pattern` that start at each escape and each other character.
fn tails(pattern: &str) -> impl Iterator<Item = &str> {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        let tail = rest;
        let mut characters = tail.chars();
        if characters.next()? == '\\' {
            characters.next();
        }
        rest = characters.as_str();
        Some(tail)
    })
}

/// Describes syntax at the start of `tail` that is valid but has another meaning than in Python and PCRE.
fn misread(tail: &str) -> Option<String> {
    if let Some((escape, instead)) = ESCAPES.iter().find(|(escape, _)| tail.starts_with(escape)) {
        return Some(format!("`\\{escape}` is Python or PCRE syntax{instead}"));
    }
    let maximum = enclosed(tail, "{,", '}', |character| character.is_ascii_digit())?;
    Some(format!(
        "`{{,{maximum}}}` is a repetition in Python but literal text in ECMA-262; use `{{0,{maximum}}}`"
    ))
}

/// Describes invalid syntax at the start of `tail` that is valid in Python or PCRE.
fn foreign(tail: &str) -> Option<String> {
    let known = FOREIGN.iter().find(|(syntax, _)| tail.starts_with(syntax));
    let known = known.map(|(_, description)| (*description).to_owned());
    let inline_flags = || {
        let flags = enclosed(tail, "(?", ')', |letter| letter.is_ascii_alphabetic() || letter == '-')?;
        Some(format!("`(?{flags})` is Python and PCRE syntax; ECMA-262 has no such inline flag"))
    };
    known.or_else(inline_flags).or_else(|| misread(tail))
}

/// Returns the text between `open` and `close` at the start of `tail` if it is not empty and all its characters pass
/// the test.
fn enclosed<'p>(tail: &'p str, open: &str, close: char, test: fn(char) -> bool) -> Option<&'p str> {
    let inside = tail.strip_prefix(open)?;
    let length = inside.find(|character| !test(character))?;
    let (text, after) = inside.split_at_checked(length)?;
    (!text.is_empty() && after.starts_with(close)).then_some(text)
}

/// Rewords an error of the parser as a clause.
fn described(error: &str) -> String {
    match error {
        "Invalid atom character" | "Invalid braced quantifier" => {
            String::from("a quantifier such as `*` or `{2}` follows nothing or another quantifier")
        }
        "Quantifier not allowed here" => String::from("a quantifier cannot repeat an assertion"),
        "Invalid quantifier" => String::from("a repetition such as `{3,2}` is out of order"),
        "Invalid group modifier" | "Invalid token at named capture group identifier" => {
            String::from("`(?` does not start a valid group")
        }
        "Range values reversed, start char code is greater than end char code." => {
            String::from("a range such as `[z-a]` is out of order")
        }
        "Unbalanced bracket" => String::from("unclosed `[`"),
        other => {
            let mut characters = other.trim_end_matches('.').chars();
            let first = characters.next().map(|first| first.to_ascii_lowercase());
            first.into_iter().chain(characters).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_valid_patterns() {
        for pattern in [
            "",
            "a",
            "a|b",
            "|",
            "()",
            "(?:)",
            "^$",
            "a*?b+?c??d{1,2}?e{3}f{4,}",
            "[a-z]",
            "[]",
            "[^]",
            "[]a]",
            "[\\]a-]",
            "[-a]",
            "[a-]",
            "[\\w-a]",
            "[a-\\d]",
            "[(]",
            "[+*]",
            "(?<year>\\d{4})-\\k<year>",
            "(?<=a)b(?<!c)",
            "(?=a)*",
            "(?!a)b",
            "\\p{L}+\\P{Script=Greek}",
            "\\u{1F600}?",
            "\\u00e9",
            "\\x41",
            "\\cA",
            "\\0",
            "(a)\\1",
            "a]",
            "a}",
            "{",
            "a{x",
            "a{",
            "a{,}",
            "a{1,2,3}",
            "(?i:abc)",
            "(?-i:a)",
            "\\/\\-\\@",
            "[[:alpha:]]",
            "é+",
            "[à-é]",
            "\\(\\)",
            "\\\\",
        ] {
            assert_eq!(problem(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn reports_invalid_patterns() {
        for (pattern, expected) in [
            ("(?i)abc", "`(?i)` is Python"),
            ("(?x) a b", "`(?x)` is Python"),
            ("(?P<x>a)", "Python syntax; use `(?<…>…)`"),
            ("(?P=x)", "for a backreference"),
            ("(?P>x)", "`(?P…)` is"),
            ("(?>a)", "a PCRE atomic group"),
            ("(?#a)", "a Python and PCRE comment"),
            ("(?", "`(?` does not start"),
            ("(?|a)", "`(?` does not start"),
            ("a++", "possessive quantifiers"),
            ("(?<x>a)(?<x>b)", "duplicate"),
            ("\\k<y>(?<x>a)", "backreference"),
            ("a{2}+", "possessive quantifiers"),
            ("\\d+{2}", "follows nothing"),
            ("a**", "follows nothing"),
            ("a+??", "follows nothing"),
            ("*a", "follows nothing"),
            ("a|+", "follows nothing"),
            ("(?:*)", "follows nothing"),
            ("{2}", "follows nothing"),
            ("^*", "cannot repeat"),
            ("(?<=a)*", "cannot repeat"),
            ("a{,3}", "use `{0,3}`"),
            ("a{3,2}", "out of order"),
            ("[z-a]", "out of order"),
            ("[a", "unclosed `[`"),
            ("[\\]", "unclosed `[`"),
            ("(a", "unbalanced parenthesis"),
            ("a)", "unbalanced parenthesis"),
            ("a\\", "incomplete escape"),
            ("\\Aa\\Z", "use `^`"),
            ("a\\Z", "use `$`"),
        ] {
            let found = problem(pattern).unwrap_or_default();
            assert!(found.contains(expected), "{pattern}: {found}");
        }
    }

    #[test]
    fn a_long_pattern_takes_linear_time() {
        for piece in ["(", "[", "\\p{", "{1", "(?<", "(?i", "a{1,", "\\", "[a-", "(?<n>a|", "(?<n>a)|]"] {
            deftool_test_support::cpu::assert_linear(piece, 50_000, |size| {
                let _ = problem(&piece.repeat(size));
            });
        }
    }
}
