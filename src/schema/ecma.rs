//! Whether a pattern is a regular expression of ECMA-262, and whose it is otherwise.
//!
//! The engine that enforces patterns takes what Python and PCRE write, too, and does not take all that is legal. This looks
//! at the form alone, with what Annex B allows (`{` and `]` as characters), for JSON Schema leaves open which of both is
//! meant. Deliberately absent: names of groups, Unicode properties, numbers of references.
//!
//! Source: ECMA-262, 2025, "Patterns" and Annex B.1.2, read 2026-11.

use std::iter::Peekable;
use std::str::CharIndices;

/// What is wrong with `pattern`, in a clause.
pub(super) fn problem(pattern: &str) -> Option<String> {
    Scanner { pattern, rest: pattern.char_indices().peekable(), groups: Vec::new(), before: Before::Nothing }
        .scan()
        .err()
}

/// What stands before a repetition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A place, as `^` is: it cannot be repeated.
    Place,
    Atom,
    Repeated,
    /// Repeated, as few times as will do.
    Lazy,
}

struct Scanner<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    /// What each open group will be.
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
                    self.before = self.groups.pop().ok_or_else(|| String::from("`)` closes nothing"))?;
                }
                '|' => self.before = Before::Nothing,
                '^' | '$' => self.before = Before::Place,
                '*' | '+' | '?' => self.repeat(character, &character.to_string())?,
                '{' => self.scan_brace(at)?,
                _ => self.before = Before::Atom,
            }
        }
        if self.groups.is_empty() { Ok(()) } else { Err(String::from("`(` is never closed")) }
    }

    /// The text from `at` on.
    fn tail(&self, at: usize) -> &'p str {
        self.pattern.get(at..).unwrap_or("")
    }

    fn skip(&mut self, characters: usize) {
        self.rest.by_ref().take(characters).for_each(drop);
    }

    fn scan_escape(&mut self) -> Result<(), String> {
        let Some((at, letter)) = self.rest.next() else {
            return Err(String::from("the last backslash stands before nothing"));
        };
        let instead = match letter {
            'A' => "; a text's start is `^`",
            'Z' | 'z' => "; a text's end is `$`",
            'Q' | 'E' | 'G' | 'K' | 'R' | 'X' | 'h' => "",
            'b' | 'B' => {
                self.before = Before::Place;
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
        Err(format!("`\\\\{letter}` is of Python or PCRE{instead}"))
    }

    /// A class, after its bracket; `[]` is one that holds nothing.
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
                // Which character an escape is does not matter but for those that are themselves.
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
                        return Err(format!("the range `{from}-{to}` runs backwards"));
                    }
                    first = None;
                }
                _ => first = atom.filter(|_| !in_range),
            }
            in_range = false;
        }
        Err(String::from("`[` is never closed"))
    }

    /// A group, after its parenthesis.
    fn open_group(&mut self, at: usize) -> Result<(), String> {
        let mut group = Before::Atom;
        if let Some(inside) = self.tail(at + 1).strip_prefix('?') {
            let is_letter = |c: char| c.is_ascii_alphabetic() || c == '-';
            let letters = inside.len() - inside.trim_start_matches(is_letter).len();
            let (flags, after) = inside.split_at_checked(letters).unwrap_or_default();
            let is_local = flags.bytes().all(|flag| b"ims-".contains(&flag)) && after.starts_with(':');
            if inside.starts_with("<=") || inside.starts_with("<!") {
                group = Before::Place;
            } else if let Some(name) = flags.strip_prefix('P') {
                let instead = match after.chars().next() {
                    Some('<') if name.is_empty() => "`(?P<…>…)` is Python's; a named group is `(?<…>…)`",
                    Some('=') if name.is_empty() => "`(?P=…)` is Python's; what a group took is `\\\\k<…>`",
                    Some(_) | None => "`(?P…)` is of Python and PCRE",
                };
                return Err(String::from(instead));
            } else if !flags.is_empty() && !is_local {
                return Err(format!(
                    "`(?{flags})` is of Python and PCRE; ECMA-262 sets no flag inside of a pattern"
                ));
            } else if inside.starts_with('#') {
                return Err(String::from("`(?#…)` is a comment of Python and PCRE"));
            } else if inside.starts_with('>') {
                return Err(String::from("`(?>…)` is a group of PCRE; write `(?:…)`"));
            } else if !is_local && !inside.starts_with([':', '=', '!', '<']) {
                return Err(String::from("`(?` begins no group of ECMA-262"));
            }
            // What follows the question mark is no repetition.
            self.skip(1 + letters);
            if letters == 0 {
                self.skip(1);
            }
            if group == Before::Place {
                self.skip(1);
            }
        }
        self.groups.push(group);
        self.before = Before::Nothing;
        Ok(())
    }

    /// `{2}`, `{2,}`, `{2,3}`, or a brace that stands for itself.
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
                "`{{{counts}}}` is a repetition for Python only, and for ECMA-262 these characters; write `{{0{counts}}}`"
            ));
        }
        let number = |digits: &str| digits.parse::<u64>().unwrap_or(u64::MAX);
        if to.is_some_and(|to| !to.is_empty() && number(to) < number(from)) {
            return Err(format!("the repetition `{{{counts}}}` runs backwards"));
        }
        self.skip(length + 1);
        self.repeat('{', &format!("{{{counts}}}"))
    }

    fn repeat(&mut self, sign: char, shown: &str) -> Result<(), String> {
        self.before = match (self.before, sign) {
            (Before::Nothing, _) => return Err(format!("nothing stands before `{shown}`")),
            (Before::Place, _) => return Err(format!("`{shown}` repeats a place, which is no text")),
            (Before::Atom, _) => Before::Repeated,
            (Before::Repeated, '?') => Before::Lazy,
            (Before::Repeated, '+') => {
                return Err(String::from("a second `+` is of PCRE and Python, which then do not try again"));
            }
            (Before::Repeated | Before::Lazy, _) => {
                return Err(format!("`{shown}` repeats what is repeated already; put that into `(?:…)`"));
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_legal_has_no_problem() {
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
    fn what_is_not_legal_is_told() {
        for (pattern, told) in [
            ("(?i)abc", "`(?i)` is of"),
            ("(?x) a b", "`(?x)` is of"),
            ("(?P<x>a)", "Python's; a named group"),
            ("(?P=x)", "Python's; what a group"),
            ("(?P>x)", "`(?P…)` is"),
            ("(?>a)", "a group of PCRE"),
            ("(?#a)", "a comment"),
            ("(?", "`(?` begins no group"),
            ("(?|a)", "`(?` begins no group"),
            ("a++", "a second `+`"),
            ("a{2}+", "a second `+`"),
            ("\\d+{2}", "`{2}` repeats what"),
            ("a**", "`*` repeats what"),
            ("a+??", "`?` repeats what"),
            ("*a", "nothing stands before `*`"),
            ("a|+", "nothing stands before `+`"),
            ("(?:*)", "nothing stands before `*`"),
            ("{2}", "nothing stands before `{2}`"),
            ("^*", "`*` repeats a place"),
            ("\\b+", "`+` repeats a place"),
            ("(?<=a)*", "`*` repeats a place"),
            ("a{,3}", "write `{0,3}`"),
            ("a{3,2}", "`{3,2}` runs backwards"),
            ("[z-a]", "`z-a` runs backwards"),
            ("[a", "`[` is never closed"),
            ("[\\]", "`[` is never closed"),
            ("(a", "`(` is never closed"),
            ("a)", "`)` closes nothing"),
            ("a\\", "stands before nothing"),
            ("\\Aa\\Z", "a text's start is `^`"),
            ("a\\Z", "a text's end is `$`"),
        ] {
            let found = problem(pattern).unwrap_or_default();
            assert!(found.contains(told), "{pattern}: {found}");
        }
    }

    #[test]
    fn a_long_pattern_takes_linear_time() {
        let started = std::time::Instant::now();
        for piece in ["(", "[", "\\p{", "{1", "(?<", "(?i", "a{1,", "\\", "[a-"] {
            let _ = problem(&piece.repeat(200_000));
        }
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }
}
