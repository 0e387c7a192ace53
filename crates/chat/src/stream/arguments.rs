//! The arguments of one call: text → objects.
//!
//! In: the text that a server sent as the arguments, complete or cut off. Out: usually one object; several if a server
//! concatenates calls; or the reason why the text is not an object.

use std::hash::{DefaultHasher, Hash, Hasher};

use deftool_lang::schema::Arguments;
use serde_json::{Deserializer, Value};

use crate::event::{RawArguments, RawCall};

/// Maximum number of calls in one reply, structured or written as text. More calls are a malfunction of the model or
/// server.
pub const MAX_CALLS: usize = 1_000;

/// The parsed arguments of one slot.
#[derive(Debug, Default)]
pub(super) struct ParsedArguments {
    pub(super) objects: Vec<Arguments>,
    pub(super) malformed: Option<RawArguments>,
    pub(super) truncated: bool,
    /// There are more objects than [`MAX_CALLS`].
    pub(super) is_cut: bool,
}

impl ParsedArguments {
    /// Returns the number of calls with these arguments.
    pub(super) fn len(&self) -> usize {
        self.objects.len() + usize::from(self.malformed.is_some())
    }

    /// Returns a hash that is equal for equal arguments, regardless of key order and layout.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.objects.hash(&mut hasher);
        if let Some(RawArguments::Malformed { text, .. }) = &self.malformed {
            text.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns whether `calls` are the calls of `name` with these arguments, regardless of key order and layout.
    pub(super) fn equals(&self, name: &str, calls: &[RawCall]) -> bool {
        let is_same = |call: &RawCall, index: usize| match (&call.arguments, self.objects.get(index)) {
            (RawArguments::Object { value }, Some(object)) => value == object,
            (RawArguments::Malformed { text, .. }, None) => {
                matches!(&self.malformed, Some(RawArguments::Malformed { text: own, .. }) if own == text)
            }
            _ => false,
        };
        calls.len() == self.len()
            && calls.iter().zip(0..).all(|(call, index)| call.name == name && is_same(call, index))
    }

    fn broken(text: &str, error: String, truncated: bool) -> Self {
        let malformed = Some(RawArguments::Malformed { text: text.to_owned(), error, truncated });
        Self { objects: Vec::new(), malformed, truncated, is_cut: false }
    }
}

/// Parses the arguments of one slot: usually one object; some servers concatenate several.
pub(super) fn parse_arguments(text: &str, empty_is_complete: bool) -> ParsedArguments {
    let mut parsed = parse_objects(text, empty_is_complete, true);
    // Gateways send `{}` before the arguments as a placeholder.
    let is_empty = |object: &Arguments| *object == Arguments::default();
    if !parsed.objects.iter().all(is_empty) || parsed.malformed.is_some() {
        parsed.objects.retain(|object| !is_empty(object));
    }
    parsed.objects.dedup();
    parsed
}

/// Parses a sequence of objects; with `decode_strings`, also a string that contains such a sequence.
fn parse_objects(text: &str, empty_is_complete: bool, decode_strings: bool) -> ParsedArguments {
    let text = text.trim();
    if text.is_empty() {
        return if empty_is_complete {
            ParsedArguments { objects: vec![Arguments::default()], ..ParsedArguments::default() }
        } else {
            ParsedArguments::broken(text, String::from("the reply ended before the arguments"), true)
        };
    }
    let mut parsed = ParsedArguments::default();
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    loop {
        if parsed.objects.len() > MAX_CALLS {
            return ParsedArguments { is_cut: true, ..parsed };
        }
        let start = values.byte_offset();
        let rest = text.get(start..).unwrap_or_default().trim_start();
        let found = match values.next() {
            None => return parsed,
            Some(Ok(Value::Object(object))) => {
                parsed.objects.push(object.into());
                continue;
            }
            Some(Ok(Value::Null)) => {
                parsed.objects.push(Arguments::default());
                continue;
            }
            Some(Ok(Value::String(inner))) if decode_strings => {
                let inner = parse_objects(&inner, true, false);
                if inner.malformed.is_some() {
                    return ParsedArguments {
                        malformed: inner.malformed,
                        truncated: inner.truncated,
                        ..parsed
                    };
                }
                parsed.objects.extend(inner.objects);
                parsed.is_cut |= inner.is_cut;
                continue;
            }
            Some(Err(error)) if error.is_eof() => {
                // Objects that are complete before the cut are kept.
                return ParsedArguments {
                    objects: parsed.objects,
                    ..ParsedArguments::broken(rest, error.to_string(), true)
                };
            }
            Some(Err(error)) => return ParsedArguments::broken(text, error.to_string(), false),
            Some(Ok(Value::String(_))) => "a string",
            Some(Ok(Value::Array(_))) => "an array",
            Some(Ok(Value::Number(_))) => "a number",
            Some(Ok(Value::Bool(_))) => "a boolean",
        };
        return ParsedArguments::broken(text, format!("the arguments are {found}, not an object"), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_is_malformed_not_a_crash() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let parsed = parse_arguments(&deep, true);
        assert!(parsed.objects.is_empty() && parsed.malformed.is_some() && !parsed.truncated);
    }
}
