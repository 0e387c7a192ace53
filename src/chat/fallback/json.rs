//! Tells, character by character, where a JSON object ends or stops being one.
//!
//! It only has to find the end: numbers and literals are taken loosely, `serde_json` judges the whole.

use serde::{Deserialize, Serialize};

/// Deeper than this is no call; `serde_json` refuses it as well.
const MAX_DEPTH: usize = 120;

/// The longest first key that is kept.
const MAX_KEY: usize = 16;

/// What one more character made of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonStep {
    /// Not over.
    More,
    /// This character closed the object.
    End,
    /// This character cannot stand here.
    Bad,
}

/// An object being read. Starts after its `{`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JsonScan {
    /// Open containers; `true` is an object.
    stack: Vec<bool>,
    state: State,
    /// The first key as far as it was read, up to [`MAX_KEY`] bytes.
    first_key: String,
    /// Whether the first key and its colon are read.
    first_key_read: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
    Word,
    String { key: bool },
    Escape { key: bool },
    Unicode { key: bool, left: u8 },
}

impl JsonScan {
    /// An object whose `{` was just read.
    pub(super) fn new() -> Self {
        Self { stack: vec![true], state: State::KeyOrEnd, first_key: String::new(), first_key_read: false }
    }

    /// The first key as far as it was read, and whether its colon was seen.
    pub(super) fn first_key(&self) -> (&str, bool) {
        (&self.first_key, self.first_key_read)
    }

    /// Reads one more character.
    pub(super) fn push(&mut self, ch: char) -> JsonStep {
        match self.state {
            State::String { key } => return self.push_string(ch, key),
            State::Escape { key } => {
                self.state = match ch {
                    'u' => State::Unicode { key, left: 4 },
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => State::String { key },
                    _ => return JsonStep::Bad,
                };
                return JsonStep::More;
            }
            State::Unicode { key, left } => {
                if !ch.is_ascii_hexdigit() {
                    return JsonStep::Bad;
                }
                self.state =
                    if left > 1 { State::Unicode { key, left: left - 1 } } else { State::String { key } };
                return JsonStep::More;
            }
            State::Word => {
                if ch.is_ascii_alphanumeric() || matches!(ch, '+' | '-' | '.') {
                    return JsonStep::More;
                }
                self.state = State::CommaOrEnd;
            }
            State::KeyOrEnd
            | State::Key
            | State::Colon
            | State::Value
            | State::ValueOrEnd
            | State::CommaOrEnd => {}
        }
        if matches!(ch, ' ' | '\t' | '\r' | '\n') {
            return JsonStep::More;
        }
        let next = match (self.state, ch) {
            (State::KeyOrEnd | State::Key, '"') => Some(State::String { key: true }),
            (State::KeyOrEnd, '}') => return self.close(true),
            (State::ValueOrEnd, ']') => return self.close(false),
            (State::CommaOrEnd, '}' | ']') => return self.close(ch == '}'),
            (State::CommaOrEnd, ',') => {
                Some(if self.stack.last() == Some(&true) { State::Key } else { State::Value })
            }
            (State::Colon, ':') => {
                self.first_key_read = true;
                Some(State::Value)
            }
            (State::Value | State::ValueOrEnd, _) => self.open_value(ch),
            _ => None,
        };
        match next {
            Some(state) => {
                self.state = state;
                JsonStep::More
            }
            None => JsonStep::Bad,
        }
    }

    fn push_string(&mut self, ch: char, key: bool) -> JsonStep {
        match ch {
            '"' => self.state = if key { State::Colon } else { State::CommaOrEnd },
            '\\' => self.state = State::Escape { key },
            // A raw line break in a string is not JSON; without this a lost quote would swallow the reply.
            '\0'..='\x1f' => return JsonStep::Bad,
            _ => {
                if key && !self.first_key_read && self.first_key.len() < MAX_KEY {
                    self.first_key.push(ch);
                }
            }
        }
        JsonStep::More
    }

    fn open_value(&mut self, ch: char) -> Option<State> {
        match ch {
            '"' => Some(State::String { key: false }),
            '{' | '[' if self.stack.len() < MAX_DEPTH => {
                self.stack.push(ch == '{');
                Some(if ch == '{' { State::KeyOrEnd } else { State::ValueOrEnd })
            }
            '-' | '0'..='9' | 't' | 'f' | 'n' => Some(State::Word),
            _ => None,
        }
    }

    fn close(&mut self, object: bool) -> JsonStep {
        if self.stack.pop() != Some(object) {
            return JsonStep::Bad;
        }
        self.state = State::CommaOrEnd;
        if self.stack.is_empty() { JsonStep::End } else { JsonStep::More }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(text: &str) -> Result<Option<usize>, usize> {
        let mut scan = JsonScan::new();
        for (at, ch) in text.char_indices().skip(1) {
            match scan.push(ch) {
                JsonStep::More => {}
                JsonStep::End => return Ok(Some(at)),
                JsonStep::Bad => return Err(at),
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_is_found_and_so_is_the_first_wrong_character() {
        assert_eq!(end_of("{}"), Ok(Some(1)));
        assert_eq!(end_of(r#"{"a": [1, {"b": "}\"]"}], "c": -1.5e3} x"#), Ok(Some(37)));
        assert_eq!(end_of(r#"{"a": "\u00e9"}"#), Ok(Some(14)));
        assert_eq!(end_of(r#"{"a": 1"#), Ok(None));
        assert_eq!(end_of("{'a': 1}"), Err(1));
        assert_eq!(end_of(r#"{"a" 1}"#), Err(5));
        assert_eq!(end_of("{\"a\": \"x\ny\"}"), Err(8));
        assert_eq!(end_of(r#"{"a": 1]"#), Err(7));
        assert_eq!(end_of(r#"{"a": 1,}"#), Err(8));
        assert_eq!(end_of(r#"{"a": [}"#), Err(7));
        assert!(end_of(&format!("{{\"a\":{}", "[".repeat(500))).is_err());
    }
}
