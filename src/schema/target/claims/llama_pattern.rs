//! How llama.cpp's server reads a `pattern`: it writes it into its grammar, piece by piece.
//!
//! What it does not understand makes it take any string; what is no pattern is an error. It does not think of JSON while
//! it writes: a piece that takes a bare quote, backslash or control character lets the model write what is no JSON.
//! Tried out, like everything of that target: `tests/llama_cpp/patterns.json`.

use std::iter::Peekable;
use std::str::Chars;

/// What it makes of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// What it says.
    Kept,
    /// Any string.
    Ignored,
    /// Something else.
    Misread,
    /// An error.
    Refused,
}

/// The most that something may be repeated at least.
const MAX_REPETITION: u32 = 2000;

/// Reads a pattern.
pub(super) fn read(pattern: &str) -> Reading {
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return Reading::Ignored;
    };
    let mut reader =
        Reader { rest: inner.chars().peekable(), depth: 0, misreads: false, last: Last::Nothing };
    match reader.read() {
        Err(reading) => reading,
        Ok(()) if reader.depth > 0 => Reading::Refused,
        Ok(()) if reader.misreads => Reading::Misread,
        Ok(()) => Reading::Kept,
    }
}

/// What a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    /// Nothing, at the beginning of a group.
    Opened,
    Piece,
    /// A character of several bytes, of which it repeats the last.
    Wide,
    /// A quantifier: `a+?` is an optional `a+`.
    Repeated,
    /// A quantifier that takes nothing, too, or a group of nothing.
    Optional,
}

struct Reader<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
    misreads: bool,
    last: Last,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Reading> {
        while let Some(character) = self.rest.next() {
            match character {
                '(' => {
                    if self.rest.next_if_eq(&'?').is_some() && self.rest.next_if_eq(&':').is_none() {
                        return Err(Reading::Ignored);
                    }
                    self.depth += 1;
                    self.last = Last::Opened;
                }
                ')' => {
                    self.depth = self.depth.checked_sub(1).ok_or(Reading::Refused)?;
                    self.last = if self.last == Last::Opened { Last::Optional } else { Last::Piece };
                }
                '|' => self.last = Last::Nothing,
                '*' | '+' | '?' => self.repeat(character)?,
                '{' => self.repeat_counted()?,
                '[' => self.class()?,
                '^' | '$' | ']' | '}' => return Err(Reading::Ignored),
                '.' => {
                    self.misreads = true;
                    self.last = Last::Piece;
                }
                '\\' => {
                    let escaped = self.rest.next().ok_or(Reading::Refused)?;
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

    fn repeat(&mut self, quantifier: char) -> Result<(), Reading> {
        match self.last {
            Last::Nothing | Last::Opened | Last::Wide => return Err(Reading::Refused),
            Last::Optional if quantifier != '?' => return Err(Reading::Refused),
            Last::Repeated | Last::Optional => self.misreads = true,
            Last::Piece => {}
        }
        self.last = if quantifier == '+' { Last::Repeated } else { Last::Optional };
        Ok(())
    }

    fn repeat_counted(&mut self) -> Result<(), Reading> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(character) => text.push(character),
                None => return Err(Reading::Ignored),
            }
        }
        let (least, most) = text.split_once(',').unwrap_or((&text, &text));
        if most.contains(',') {
            return Err(Reading::Ignored);
        }
        let least = self.bound(least)?.unwrap_or_default();
        let most = self.bound(most)?;
        match self.last {
            Last::Nothing | Last::Opened | Last::Wide => return Err(Reading::Refused),
            Last::Piece | Last::Repeated | Last::Optional => {}
        }
        // With fewer at most than at least the server never answers.
        if least > MAX_REPETITION || most.is_some_and(|most| most < least) {
            return Err(Reading::Refused);
        }
        self.last = Last::Repeated;
        Ok(())
    }

    /// A number in curly brackets; what stands behind it is overlooked, and blanks before it.
    fn bound(&mut self, text: &str) -> Result<Option<u32>, Reading> {
        if text.is_empty() {
            return Ok(None);
        }
        let trimmed = text.trim_start();
        let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = trimmed.get(..digits).and_then(|digits| digits.parse().ok()).ok_or(Reading::Ignored)?;
        self.misreads |= digits < text.len();
        Ok(Some(number))
    }

    fn class(&mut self) -> Result<(), Reading> {
        self.misreads |= self.rest.next_if_eq(&'^').is_some();
        // An empty class, or a bracket at its beginning.
        if self.rest.next_if_eq(&']').is_some() {
            return Err(Reading::Ignored);
        }
        let mut from: Option<char> = None;
        let mut is_range = false;
        loop {
            let character = match self.rest.next().ok_or(Reading::Refused)? {
                ']' => break,
                '-' if from.is_some() && !is_range => {
                    is_range = true;
                    continue;
                }
                '\\' => {
                    let escaped = self.rest.next().ok_or(Reading::Ignored)?;
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

    /// The character that an escape stands for, of those `known` or by its number.
    fn escape(&mut self, escaped: char, known: &str) -> Result<char, Reading> {
        match escaped {
            'x' => self.number(2),
            'u' => self.number(4),
            _ if !known.contains(escaped) => Err(Reading::Ignored),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            literal => Ok(literal),
        }
    }

    fn number(&mut self, digits: u32) -> Result<char, Reading> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.rest.next().and_then(|digit| digit.to_digit(16)).ok_or(Reading::Ignored)?;
            code = code * 16 + digit;
        }
        Ok(char::from_u32(code).unwrap_or('a'))
    }

    /// Takes note of characters that JSON does not take bare in a string.
    fn note(&mut self, first: char, last: char) {
        let holds = |character: char| (first..=last).contains(&character);
        self.misreads |= first < ' ' || holds('"') || holds('\\');
    }
}
