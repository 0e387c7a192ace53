//! Generates strings that match an ECMA-262 regular expression, for the subset that tool patterns use.
//!
//! Supports sequences, alternatives, groups, classes, escapes, repetitions and anchors at the ends. Patterns with other
//! assertions, backreferences or Unicode properties are not supported.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum extra repetitions for an unbounded quantifier.
const MANY: u32 = 8;
/// Maximum length of the generated string, in bytes.
const MAX_LENGTH: usize = 4_000;
/// Maximum group nesting.
const MAX_DEPTH: usize = 32;

/// Generates a string that matches `pattern`; `None` if the pattern is not supported.
pub(super) fn matching(pattern: &str, random: &mut fastrand::Rng) -> Option<String> {
    let mut parser = Parser { rest: pattern.chars().peekable(), depth: 0 };
    let node = parser.alternatives()?;
    if parser.rest.next().is_some() {
        return None;
    }
    let mut text = String::new();
    write(&node, random, &mut text)?;
    Some(text)
}

enum Node {
    Alternatives(Vec<Node>),
    Sequence(Vec<Node>),
    /// Ranges of characters; negated if the flag is true.
    Class(Vec<(char, char)>, bool),
    Repeat(Box<Node>, u32, Option<u32>),
}

struct Parser<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut branches = vec![self.sequence()?];
        while self.rest.next_if_eq(&'|').is_some() {
            branches.push(self.sequence()?);
        }
        self.depth -= 1;
        Some(Node::Alternatives(branches))
    }

    fn sequence(&mut self) -> Option<Node> {
        let mut nodes = Vec::new();
        while let Some(&next) = self.rest.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            self.rest.next();
            let node = match next {
                // Not at an end, an anchor never matches; the validator then rejects the string.
                '^' | '$' => continue,
                '(' => self.group()?,
                '[' => self.class()?,
                '.' => Node::Class(vec![('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')], true),
                '\\' => self.escape()?,
                '*' | '+' | '?' => return None,
                other => single(other),
            };
            nodes.push(self.repeated(node)?);
        }
        Some(Node::Sequence(nodes))
    }

    fn group(&mut self) -> Option<Node> {
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next()? {
                ':' => {}
                '<' => {
                    // A named group, not a lookbehind.
                    if matches!(self.rest.peek(), Some('=' | '!')) {
                        return None;
                    }
                    self.rest.find(|character| *character == '>')?;
                }
                _ => return None,
            }
        }
        let inside = self.alternatives()?;
        self.rest.next_if_eq(&')')?;
        Some(inside)
    }

    fn repeated(&mut self, node: Node) -> Option<Node> {
        let (least, most) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let counted: String = self.rest.clone().skip(1).take_while(|c| *c != '}').collect();
                let (least, most) = match counted.split_once(',') {
                    None => (counted.parse().ok(), counted.parse().ok().map(Some)),
                    Some((least, "")) => (least.parse().ok(), Some(None)),
                    Some((least, most)) => (least.parse().ok(), most.parse().ok().map(Some)),
                };
                // A brace without a valid count is a literal.
                let (Some(least), Some(most)) = (least, most) else { return Some(node) };
                self.rest.find(|character| *character == '}')?;
                self.rest.next_if_eq(&'?');
                return Some(Node::Repeat(Box::new(node), least, most));
            }
            Some(_) | None => return Some(node),
        };
        self.rest.next();
        self.rest.next_if_eq(&'?');
        Some(Node::Repeat(Box::new(node), least, most))
    }

    fn escape(&mut self) -> Option<Node> {
        let (ranges, is_outside) = self.escaped()?;
        Some(Node::Class(ranges, is_outside))
    }

    /// Parses the part of an escape after the backslash.
    fn escaped(&mut self) -> Option<(Vec<(char, char)>, bool)> {
        let digits = vec![('0', '9')];
        let word = vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
        let blank = vec![('\t', '\r'), (' ', ' '), ('\u{a0}', '\u{a0}'), ('\u{feff}', '\u{feff}')];
        let one = |character: char| Some((vec![(character, character)], false));
        match self.rest.next()? {
            'd' => Some((digits, false)),
            'D' => Some((digits, true)),
            'w' => Some((word, false)),
            'W' => Some((word, true)),
            's' => Some((blank, false)),
            'S' => Some((blank, true)),
            'n' => one('\n'),
            'r' => one('\r'),
            't' => one('\t'),
            'f' => one('\u{c}'),
            'v' => one('\u{b}'),
            '0' => one('\0'),
            'x' => self.hex(2).and_then(one),
            'u' => {
                if self.rest.next_if_eq(&'{').is_none() {
                    return self.hex(4).and_then(one);
                }
                let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).and_then(one)
            }
            other if other.is_ascii_alphanumeric() => None,
            other => one(other),
        }
    }

    fn hex(&mut self, digits: usize) -> Option<char> {
        let text: String = self.rest.by_ref().take(digits).collect();
        u32::from_str_radix(&text, 16).ok().and_then(char::from_u32)
    }

    fn class(&mut self) -> Option<Node> {
        let is_outside = self.rest.next_if_eq(&'^').is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let from = match self.rest.next()? {
                ']' => return Some(Node::Class(ranges, is_outside)),
                '\\' => match self.escaped()? {
                    (inside, false) if inside.len() == 1 && is_single(&inside) => inside.first()?.0,
                    (inside, false) => {
                        ranges.extend(inside);
                        continue;
                    }
                    (_, true) => return None,
                },
                other => other,
            };
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']') {
                self.rest.next();
                let to = match self.rest.next()? {
                    '\\' => match self.escaped()? {
                        (inside, false) if is_single(&inside) => inside.first()?.0,
                        _ => return None,
                    },
                    other => other,
                };
                if to < from {
                    return None;
                }
                ranges.push((from, to));
            } else {
                ranges.push((from, from));
            }
        }
    }
}

fn is_single(ranges: &[(char, char)]) -> bool {
    matches!(ranges, [(from, to)] if from == to)
}

fn single(character: char) -> Node {
    Node::Class(vec![(character, character)], false)
}

fn write(node: &Node, random: &mut fastrand::Rng, text: &mut String) -> Option<()> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    match node {
        Node::Alternatives(branches) => write(random.choice(branches)?, random, text),
        Node::Sequence(nodes) => nodes.iter().try_for_each(|node| write(node, random, text)),
        Node::Class(ranges, false) => {
            let (from, to) = *random.choice(ranges)?;
            text.push(random.char(from..=to));
            Some(())
        }
        Node::Class(ranges, true) => {
            let is_outside = |c: char| !ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
            let mut printable = (' '..='~').filter(|c| is_outside(*c)).collect::<Vec<_>>();
            printable.extend(['é', '日', '🦀', '\u{202e}'].into_iter().filter(|c| is_outside(*c)));
            text.push(*random.choice(&printable)?);
            Some(())
        }
        Node::Repeat(node, least, most) => {
            let most = most.unwrap_or_else(|| least.saturating_add(MANY)).min(least.saturating_add(64));
            let times = match random.u32(..4) {
                0 => *least,
                1 => most,
                _ => random.u32(*least..=most.max(*least)),
            };
            (0..times).try_for_each(|_| write(node, random, text))
        }
    }
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
        ] {
            let schema = json!({"type": "string", "pattern": pattern});
            let validator = ArgumentValidator::compile("t", &schema).unwrap();
            for _ in 0..50 {
                let text = matching(pattern, &mut random).unwrap_or_else(|| panic!("nothing for {pattern}"));
                assert!(validator.is_valid(&json!(text)), "{pattern}: {text:?}");
            }
        }
        for pattern in ["(?=a)", "\\p{L}", "(a)\\1", "(", "a)", "[", "*", &"(".repeat(1000)] {
            assert_eq!(matching(pattern, &mut random), None, "{pattern}");
        }
    }
}
