//! Finds the end or the first syntax error of a JSON object, character by character, and reports which keys it has.
//! Also of a JSON string, which may contain an object that was encoded twice.
//!
//! Strings in single quotation marks are accepted, because models also write Python literals. Numbers and literals are
//! not validated: the complete object is parsed later.

use serde::{Deserialize, Serialize};

use crate::call_keys::{NAME_KEYS, UNMARKED_ARGUMENT_KEYS, UNMARKED_OWN_KEYS};

/// Maximum nesting depth of a call. `serde_json` has a similar limit.
const MAX_DEPTH: usize = 120;

/// Maximum length of a stored key, in bytes.
const MAX_KEY: usize = 16;

/// The result of one more character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonStep {
    /// The object goes on.
    More,
    /// The character closes the object.
    End,
    /// The character is a syntax error.
    Bad,
    /// A key that no call has, so the object is ordinary JSON.
    Other,
}

/// A streaming scan of an object, after its `{`, or of a string, after its `"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JsonScan {
    /// Whether strings may contain control characters that are not escaped.
    allows_controls: bool,
    /// Open containers: `true` for an object, `false` for an array.
    stack: Vec<bool>,
    state: State,
    /// The quotation mark of the current or last string.
    quote: char,
    /// The current or last top-level key, up to [`MAX_KEY`] bytes.
    key: String,
    keys: Keys,
}

/// The top-level keys that were read, each with its colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent of each other
struct Keys {
    any: bool,
    name: bool,
    arguments: bool,
    /// The first key alone identifies a call.
    call: bool,
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
    /// A scan after the object's `{`. Raw line breaks in strings are not JSON. Before the object is certainly a call,
    /// they end the scan unless they are allowed, so that a missing quotation mark does not hide the rest of the reply.
    pub(super) fn object(allows_controls: bool) -> Self {
        let (state, key, keys) = (State::KeyOrEnd, String::new(), Keys::default());
        Self { allows_controls, stack: vec![true], state, quote: '"', key, keys }
    }

    /// A scan after the string's `"`.
    pub(super) fn string() -> Self {
        Self { stack: Vec::new(), state: State::String { key: false }, ..Self::object(true) }
    }

    /// Whether the keys so far identify a call.
    pub(super) fn is_call(&self) -> bool {
        self.keys.call || (self.keys.name && self.keys.arguments)
    }

    /// Whether the object is complete except for its last brace.
    pub(super) fn lacks_brace(&self) -> bool {
        self.stack == [true] && self.state == State::CommaOrEnd
    }

    /// The number of open containers.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Reads one more character. With `only_calls`, a key that no call has returns [`JsonStep::Other`].
    pub(super) fn push(&mut self, ch: char, only_calls: bool) -> JsonStep {
        match self.step(ch) {
            JsonStep::More if only_calls && !self.may_be_call() => JsonStep::Other,
            step => step,
        }
    }

    /// Whether a call may have the current or last key.
    fn may_be_call(&self) -> bool {
        if self.stack.len() != 1 {
            return true;
        }
        match self.state {
            State::String { key: true } => call_keys().any(|key| key.starts_with(self.key.as_str())),
            State::Colon => call_keys().any(|key| key == self.key),
            State::KeyOrEnd
            | State::Key
            | State::Value
            | State::ValueOrEnd
            | State::CommaOrEnd
            | State::Word
            | State::String { key: false }
            | State::Escape { .. }
            | State::Unicode { .. } => true,
        }
    }

    fn step(&mut self, ch: char) -> JsonStep {
        match self.state {
            State::String { key } => return self.push_string(ch, key),
            State::Escape { key } => {
                self.state = match ch {
                    'u' => State::Unicode { key, left: 4 },
                    '"' | '\'' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => State::String { key },
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
            (State::KeyOrEnd | State::Key, '"' | '\'') => {
                self.quote = ch;
                if self.stack.len() == 1 {
                    self.key.clear();
                }
                Some(State::String { key: true })
            }
            (State::KeyOrEnd, '}') => return self.close(true),
            (State::ValueOrEnd, ']') => return self.close(false),
            (State::CommaOrEnd, '}' | ']') => return self.close(ch == '}'),
            (State::CommaOrEnd, ',') => {
                Some(if self.stack.last() == Some(&true) { State::Key } else { State::Value })
            }
            (State::Colon, ':') => {
                if self.stack.len() == 1 {
                    self.keys.take(&self.key);
                }
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
            _ if ch == self.quote && self.stack.is_empty() => return JsonStep::End,
            _ if ch == self.quote => self.state = if key { State::Colon } else { State::CommaOrEnd },
            '\\' => self.state = State::Escape { key },
            '\0'..='\x1f' if !self.allows_controls && !self.is_call() => return JsonStep::Bad,
            _ => {
                if key && self.stack.len() == 1 && self.key.len() < MAX_KEY {
                    self.key.push(ch);
                }
            }
        }
        JsonStep::More
    }

    fn open_value(&mut self, ch: char) -> Option<State> {
        match ch {
            '"' | '\'' => {
                self.quote = ch;
                Some(State::String { key: false })
            }
            '{' | '[' if self.stack.len() < MAX_DEPTH => {
                self.stack.push(ch == '{');
                Some(if ch == '{' { State::KeyOrEnd } else { State::ValueOrEnd })
            }
            '-' | '0'..='9' | 't' | 'f' | 'n' | 'T' | 'F' | 'N' => Some(State::Word),
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

/// The keys of an object that is a call.
fn call_keys() -> impl Iterator<Item = &'static str> {
    NAME_KEYS.into_iter().chain(UNMARKED_ARGUMENT_KEYS).chain(UNMARKED_OWN_KEYS)
}

impl Keys {
    fn take(&mut self, key: &str) {
        self.call |= !self.any && matches!(key, "tool" | "arguments");
        self.any = true;
        self.name |= NAME_KEYS.contains(&key);
        self.arguments |= UNMARKED_ARGUMENT_KEYS.contains(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(text: &str) -> Result<Option<usize>, usize> {
        let mut scan = JsonScan::object(false);
        for (at, ch) in text.char_indices().skip(1) {
            match scan.push(ch, false) {
                JsonStep::More => {}
                JsonStep::End => return Ok(Some(at)),
                JsonStep::Bad | JsonStep::Other => return Err(at),
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_and_the_first_syntax_error_are_found() {
        assert_eq!(end_of("{}"), Ok(Some(1)));
        assert_eq!(end_of(r#"{"a": [1, {"b": "}\"]"}], "c": -1.5e3} x"#), Ok(Some(37)));
        assert_eq!(end_of(r#"{"a": "\u00e9"}"#), Ok(Some(14)));
        assert_eq!(end_of(r#"{"a": 1"#), Ok(None));
        assert_eq!(end_of(r#"{'a': 'x"}\''} x"#), Ok(Some(13)));
        assert_eq!(end_of(r#"{"a" 1}"#), Err(5));
        assert_eq!(end_of("{\"a\": \"x\ny\"}"), Err(8));
        assert_eq!(end_of(r#"{"a": 1]"#), Err(7));
        assert_eq!(end_of(r#"{"a": 1,}"#), Err(8));
        assert_eq!(end_of(r#"{"a": [}"#), Err(7));
        assert!(end_of(&format!("{{\"a\":{}", "[".repeat(500))).is_err());
    }

    #[test]
    fn the_end_of_a_string_and_of_an_object_with_control_characters_are_found() {
        let ends = |mut scan: JsonScan, text: &str| {
            let steps = text.chars().map(|ch| scan.push(ch, false));
            steps.take_while(|step| *step == JsonStep::More).count() + 1 == text.chars().count()
        };
        assert!(ends(JsonScan::string(), r#"{\"a\": \"}\"}""#));
        assert!(ends(JsonScan::object(true), "\"a\": \"x\ny\"}"));
        assert!(!ends(JsonScan::object(false), "\"a\": \"x\ny\"}"));
    }

    #[test]
    fn top_level_keys_identify_a_call() {
        let other_at = |text: &str| {
            let mut scan = JsonScan::object(false);
            text.char_indices()
                .skip(1)
                .find(|(_, ch)| scan.push(*ch, true) == JsonStep::Other)
                .map(|(at, _)| at)
        };
        assert_eq!(other_at(r#"{"total": 1}"#), Some(4));
        assert_eq!(other_at(r#"{"to": 1}"#), Some(4));
        assert_eq!(other_at(r#"{"name": "Ada", "age": 3}"#), Some(18));
        assert_eq!(other_at(r#"{"name": "f", "parameters": {"age": {"tool": 1}}, "id": 1}"#), None);
        let is_call = |text: &str| {
            let mut scan = JsonScan::object(false);
            text.chars().skip(1).for_each(|ch| {
                scan.push(ch, true);
            });
            scan.is_call()
        };
        assert!(is_call(r#"{"tool":"#) && is_call(r#"{"name": "f", "parameters":"#));
        assert!(!is_call(r#"{"name": "f", "id":"#) && !is_call(r#"{"type": {"tool": 1}"#));
    }
}
