//! Checks whether a pattern is a valid ECMA-262 regular expression, and names the dialect if it is not.
//!
//! The engine that enforces patterns also accepts Python and PCRE syntax, and does not support everything that is
//! valid. This module checks the syntax only. It accepts the extensions of Annex B (`{` and `]` as characters), because
//! JSON Schema does not specify whether they apply. Not checked: group names, Unicode properties, backreference
//! numbers.
//!
//! Source: ECMA-262, 2025, "Patterns" and Annex B.1.2, read 2026-11.

use std::iter::Peekable;
use std::str::CharIndices;

/// Returns a clause that describes the first error in `pattern`, if any.
pub(super) fn problem(pattern: &str) -> Option<String> {
    Scanner { pattern, rest: pattern.char_indices().peekable(), groups: Vec::new(), before: Before::Nothing }
        .scan()
        .err()
}

/// The element before a quantifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// An assertion such as `^`, which cannot be repeated.
    Assertion,
    Atom,
    Repeated,
    /// Repeated with a lazy quantifier.
    Lazy,
}

struct Scanner<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    /// The element that each open group becomes when it is closed.
    groups: Vec<Before>,
    before: Before,
}

impl<'p> Scanner<'p> {
    fn scan(mut self) -> Result<(), String> {
        while let Some((at, character)) = self.rest.next() {
            match character {
                '\\' => self.scan_escape()?,
                '[' => self.scan_class()?,
                '(' => self.open_group(at)?,
                ')' => {
                    self.before = self.groups.pop().ok_or_else(|| String::from("unmatched `)`"))?;
                }
                '|' => self.before = Before::Nothing,
                '^' | '$' => self.before = Before::Assertion,
                '*' | '+' | '?' => self.repeat(character, &character.to_string())?,
                '{' => self.scan_brace(at)?,
                _ => self.before = Before::Atom,
            }
        }
        if self.groups.is_empty() { Ok(()) } else { Err(String::from("unclosed `(`")) }
    }

    /// Returns the pattern from `at`.
    fn tail(&self, at: usize) -> &'p str {
        self.pattern.get(at..).unwrap_or("")
    }

    fn skip(&mut self, characters: usize) {
        self.rest.by_ref().take(characters).for_each(drop);
    }

    fn scan_escape(&mut self) -> Result<(), String> {
        let Some((at, letter)) = self.rest.next() else {
            return Err(String::from("trailing backslash"));
        };
        let instead = match letter {
            'A' => "; use `^` for the start of the text",
            'Z' | 'z' => "; use `$` for the end of the text",
            'Q' | 'E' | 'G' | 'K' | 'R' | 'X' | 'h' => "",
            'b' | 'B' => {
                self.before = Before::Assertion;
                return Ok(());
            }
            'p' | 'P' | 'u' if self.tail(at + 1).starts_with('{') => {
                let inside = self.tail(at + 2);
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
                let length = inside.len() - inside.trim_start_matches(is_name).len();
                if inside.get(length..).is_some_and(|rest| rest.starts_with('}')) {
                    self.skip(length + 2);
                }
                self.before = Before::Atom;
                return Ok(());
            }
            _ => {
                self.before = Before::Atom;
                return Ok(());
            }
        };
        Err(format!("`\\\\{letter}` is Python or PCRE syntax{instead}"))
    }

    /// Scans a character class after its opening bracket. `[]` is an empty class.
    fn scan_class(&mut self) -> Result<(), String> {
        self.rest.next_if(|(_, next)| *next == '^');
        let mut first: Option<char> = None;
        let mut in_range = false;
        while let Some((_, character)) = self.rest.next() {
            let atom = match character {
                ']' => {
                    self.before = Before::Atom;
                    return Ok(());
                }
                // Only escapes that stand for themselves can be compared in a range.
                '\\' => self.rest.next().map(|(_, letter)| letter).filter(|c| !c.is_ascii_alphanumeric()),
                '-' if first.is_some() && !in_range => {
                    in_range = true;
                    continue;
                }
                other => Some(other),
            };
            match (first, atom) {
                (Some(from), Some(to)) if in_range => {
                    if to < from {
                        return Err(format!("range `{from}-{to}` is out of order"));
                    }
                    first = None;
                }
                _ => first = atom.filter(|_| !in_range),
            }
            in_range = false;
        }
        Err(String::from("unclosed `[`"))
    }

    /// Scans the start of a group after its opening parenthesis.
    fn open_group(&mut self, at: usize) -> Result<(), String> {
        let mut group = Before::Atom;
        if let Some(inside) = self.tail(at + 1).strip_prefix('?') {
            let is_letter = |c: char| c.is_ascii_alphabetic() || c == '-';
            let letters = inside.len() - inside.trim_start_matches(is_letter).len();
            let (flags, after) = inside.split_at_checked(letters).unwrap_or_default();
            let is_local = flags.bytes().all(|flag| b"ims-".contains(&flag)) && after.starts_with(':');
            if inside.starts_with("<=") || inside.starts_with("<!") {
                group = Before::Assertion;
            } else if let Some(name) = flags.strip_prefix('P') {
                let instead = match after.chars().next() {
                    Some('<') if name.is_empty() => {
                        "`(?P<…>…)` is Python syntax; use `(?<…>…)` for a named group"
                    }
                    Some('=') if name.is_empty() => {
                        "`(?P=…)` is Python syntax; use `\\\\k<…>` for a backreference"
                    }
                    Some(_) | None => "`(?P…)` is Python and PCRE syntax",
                };
                return Err(String::from(instead));
            } else if !flags.is_empty() && !is_local {
                return Err(format!(
                    "`(?{flags})` is Python and PCRE syntax; ECMA-262 has no such inline flag"
                ));
            } else if inside.starts_with('#') {
                return Err(String::from("`(?#…)` is a Python and PCRE comment"));
            } else if inside.starts_with('>') {
                return Err(String::from("`(?>…)` is a PCRE atomic group; use `(?:…)`"));
            } else if !is_local && !inside.starts_with([':', '=', '!', '<']) {
                return Err(String::from("`(?` does not start a valid group"));
            }
            // The characters after the question mark are not a quantifier.
            self.skip(1 + letters);
            if letters == 0 {
                self.skip(1);
            }
            if group == Before::Assertion {
                self.skip(1);
            }
        }
        self.groups.push(group);
        self.before = Before::Nothing;
        Ok(())
    }

    /// Scans `{2}`, `{2,}`, `{2,3}`, or a literal brace.
    fn scan_brace(&mut self, at: usize) -> Result<(), String> {
        let inside = self.tail(at + 1);
        let length = inside.len() - inside.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',').len();
        let (counts, after) = inside.split_at_checked(length).unwrap_or_default();
        let (from, to) = counts.split_once(',').map_or((counts, None), |(from, to)| (from, Some(to)));
        let is_repetition =
            after.starts_with('}') && !counts.is_empty() && to.is_none_or(|to| !to.contains(','));
        if !is_repetition || counts == "," {
            self.before = Before::Atom;
            return Ok(());
        }
        if from.is_empty() {
            return Err(format!(
                "`{{{counts}}}` is a repetition in Python but literal text in ECMA-262; use `{{0{counts}}}`"
            ));
        }
        let number = |digits: &str| digits.parse::<u64>().unwrap_or(u64::MAX);
        if to.is_some_and(|to| !to.is_empty() && number(to) < number(from)) {
            return Err(format!("repetition `{{{counts}}}` is out of order"));
        }
        self.skip(length + 1);
        self.repeat('{', &format!("{{{counts}}}"))
    }

    fn repeat(&mut self, sign: char, shown: &str) -> Result<(), String> {
        self.before = match (self.before, sign) {
            (Before::Nothing, _) => return Err(format!("nothing to repeat before `{shown}`")),
            (Before::Assertion, _) => return Err(format!("`{shown}` cannot repeat an assertion")),
            (Before::Atom, _) => Before::Repeated,
            (Before::Repeated, '?') => Before::Lazy,
            (Before::Repeated, '+') => {
                return Err(String::from("possessive quantifiers such as `++` are PCRE and Python syntax"));
            }
            (Before::Repeated | Before::Lazy, _) => {
                return Err(format!(
                    "`{shown}` follows another quantifier; wrap the repeated part in `(?:…)`"
                ));
            }
        };
        Ok(())
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
            ("a{2}+", "possessive quantifiers"),
            ("\\d+{2}", "`{2}` follows another"),
            ("a**", "`*` follows another"),
            ("a+??", "`?` follows another"),
            ("*a", "nothing to repeat before `*`"),
            ("a|+", "nothing to repeat before `+`"),
            ("(?:*)", "nothing to repeat before `*`"),
            ("{2}", "nothing to repeat before `{2}`"),
            ("^*", "`*` cannot repeat"),
            ("\\b+", "`+` cannot repeat"),
            ("(?<=a)*", "`*` cannot repeat"),
            ("a{,3}", "use `{0,3}`"),
            ("a{3,2}", "`{3,2}` is out of order"),
            ("[z-a]", "`z-a` is out of order"),
            ("[a", "unclosed `[`"),
            ("[\\]", "unclosed `[`"),
            ("(a", "unclosed `(`"),
            ("a)", "unmatched `)`"),
            ("a\\", "trailing backslash"),
            ("\\Aa\\Z", "use `^`"),
            ("a\\Z", "use `$`"),
        ] {
            let found = problem(pattern).unwrap_or_default();
            assert!(found.contains(expected), "{pattern}: {found}");
        }
    }

    #[test]
    fn a_long_pattern_takes_linear_time() {
        for piece in ["(", "[", "\\p{", "{1", "(?<", "(?i", "a{1,", "\\", "[a-"] {
            deftool_test_support::cpu::assert_linear(piece, 50_000, |size| {
                let _ = problem(&piece.repeat(size));
            });
        }
    }
}
