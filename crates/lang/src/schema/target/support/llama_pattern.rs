//! Support for `pattern` in the llama.cpp server, which translates the pattern to its grammar piece by piece.
//!
//! If the server does not support a piece, it allows any string. An invalid pattern is an error. The translation does
//! not account for JSON: a piece that matches an unescaped quote, backslash or control character lets the model
//! generate invalid JSON. Recorded from a real server, like everything for this target:
//! `tests/llama_cpp/patterns.json`.

use std::iter::Peekable;
use std::str::Chars;

/// The server's handling of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternSupport {
    /// Enforced as written.
    Enforced,
    /// Any string is allowed.
    Ignored,
    /// Interpreted differently.
    Misread,
    /// The server returns an error.
    Refused,
}

/// Maximum for the lower bound of a repetition.
const MAX_REPETITION: u32 = 2000;

/// Classifies a pattern.
pub(super) fn classify(pattern: &str) -> PatternSupport {
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return PatternSupport::Ignored;
    };
    let mut reader =
        Reader { rest: inner.chars().peekable(), depth: 0, misreads: false, last: Last::Nothing };
    match reader.read() {
        Err(support) => support,
        Ok(()) if reader.depth > 0 => PatternSupport::Refused,
        Ok(()) if reader.misreads => PatternSupport::Misread,
        Ok(()) => PatternSupport::Enforced,
    }
}

/// The element before a quantifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// The start of a group.
    Opened,
    Piece,
    /// A multi-byte character, of which the server repeats only the last byte.
    Wide,
    /// A quantifier: the server reads `a+?` as an optional `a+`.
    Repeated,
    /// A quantifier that also matches nothing, or an empty group.
    Optional,
}

struct Reader<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
    misreads: bool,
    last: Last,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), PatternSupport> {
        while let Some(character) = self.rest.next() {
            match character {
                '(' => {
                    if self.rest.next_if_eq(&'?').is_some() && self.rest.next_if_eq(&':').is_none() {
                        return Err(PatternSupport::Ignored);
                    }
                    self.depth += 1;
                    self.last = Last::Opened;
                }
                ')' => {
                    self.depth = self.depth.checked_sub(1).ok_or(PatternSupport::Refused)?;
                    self.last = if self.last == Last::Opened { Last::Optional } else { Last::Piece };
                }
                '|' => self.last = Last::Nothing,
                '*' | '+' | '?' => self.repeat(character)?,
                '{' => self.repeat_counted()?,
                '[' => self.class()?,
                '^' | '$' | ']' | '}' => return Err(PatternSupport::Ignored),
                '.' => {
                    self.misreads = true;
                    self.last = Last::Piece;
                }
                '\\' => {
                    let escaped = self.rest.next().ok_or(PatternSupport::Refused)?;
                    let literal = self.escape(escaped, "nrt\"\\-$()*+.?[]^{|}")?;
                    self.note(literal, literal);
                    self.last = Last::Piece;
                }
                plain => {
                    self.note(plain, plain);
                    self.last = if plain.is_ascii() { Last::Piece } else { Last::Wide };
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, quantifier: char) -> Result<(), PatternSupport> {
        match self.last {
            Last::Nothing | Last::Opened | Last::Wide => return Err(PatternSupport::Refused),
            Last::Optional if quantifier != '?' => return Err(PatternSupport::Refused),
            Last::Repeated | Last::Optional => self.misreads = true,
            Last::Piece => {}
        }
        self.last = if quantifier == '+' { Last::Repeated } else { Last::Optional };
        Ok(())
    }

    fn repeat_counted(&mut self) -> Result<(), PatternSupport> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(character) => text.push(character),
                None => return Err(PatternSupport::Ignored),
            }
        }
        let (least, most) = text.split_once(',').unwrap_or((&text, &text));
        if most.contains(',') {
            return Err(PatternSupport::Ignored);
        }
        let least = self.bound(least)?.unwrap_or_default();
        let most = self.bound(most)?;
        match self.last {
            Last::Nothing | Last::Opened | Last::Wide => return Err(PatternSupport::Refused),
            Last::Piece | Last::Repeated | Last::Optional => {}
        }
        // With a maximum below the minimum the server does not respond.
        if least > MAX_REPETITION || most.is_some_and(|most| most < least) {
            return Err(PatternSupport::Refused);
        }
        self.last = Last::Repeated;
        Ok(())
    }

    /// Parses a number in curly brackets. The server ignores spaces before it and any text after it.
    fn bound(&mut self, text: &str) -> Result<Option<u32>, PatternSupport> {
        if text.is_empty() {
            return Ok(None);
        }
        let trimmed = text.trim_start();
        let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number =
            trimmed.get(..digits).and_then(|digits| digits.parse().ok()).ok_or(PatternSupport::Ignored)?;
        self.misreads |= digits < text.len();
        Ok(Some(number))
    }

    fn class(&mut self) -> Result<(), PatternSupport> {
        self.misreads |= self.rest.next_if_eq(&'^').is_some();
        // An empty class, or a class that starts with a closing bracket.
        if self.rest.next_if_eq(&']').is_some() {
            return Err(PatternSupport::Ignored);
        }
        let mut from: Option<char> = None;
        let mut is_range = false;
        loop {
            let character = match self.rest.next().ok_or(PatternSupport::Refused)? {
                ']' => break,
                '-' if from.is_some() && !is_range => {
                    is_range = true;
                    continue;
                }
                '\\' => {
                    let escaped = self.rest.next().ok_or(PatternSupport::Ignored)?;
                    self.escape(escaped, "nrt\"\\-[]")?
                }
                plain => plain,
            };
            let first = if is_range { from.unwrap_or(character) } else { character };
            self.note(first, character);
            (from, is_range) = (Some(character), false);
        }
        self.last = Last::Piece;
        Ok(())
    }

    /// Returns the character of an escape: one of the `known` ones, or one given by its code.
    fn escape(&mut self, escaped: char, known: &str) -> Result<char, PatternSupport> {
        match escaped {
            'x' => self.number(2),
            'u' => self.number(4),
            _ if !known.contains(escaped) => Err(PatternSupport::Ignored),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            literal => Ok(literal),
        }
    }

    fn number(&mut self, digits: u32) -> Result<char, PatternSupport> {
        let mut code = 0;
        for _ in 0..digits {
            let digit =
                self.rest.next().and_then(|digit| digit.to_digit(16)).ok_or(PatternSupport::Ignored)?;
            code = code * 16 + digit;
        }
        Ok(char::from_u32(code).unwrap_or('a'))
    }

    /// Records whether the range contains characters that JSON strings must escape.
    fn note(&mut self, first: char, last: char) {
        let holds = |character: char| (first..=last).contains(&character);
        self.misreads |= first < ' ' || holds('"') || holds('\\');
    }
}
