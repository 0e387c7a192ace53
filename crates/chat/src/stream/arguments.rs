//! The arguments of one call: text → objects.
//!
//! In: the text that a server sent as the arguments, complete or cut off. Out: usually one object; several if a server
//! concatenates calls; or the reason why the text is not an object. Servers that do not use the member `arguments` send
//! the text in another member ([`crate::call_keys`]).

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use deftool_lang::schema::{Arguments, Repair, RepairKind};
use serde_json::{Deserializer, Value};

use super::loose::Loose;
use crate::call_keys::{ARGUMENT_KEYS, Content, FoundArguments, Unread, find_arguments};
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
    /// The text of a single object, if it differs from the text of the parsed object.
    pub(super) written: Option<Arc<str>>,
    /// The repairs of the text.
    pub(super) repairs: Vec<Repair>,
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
        Self { malformed, truncated, ..Self::default() }
    }
}

/// The arguments of a call, as far as they were received.
#[derive(Debug, Default)]
pub(super) struct ReceivedArguments {
    pub(super) text: String,
    /// Members that may be the arguments of a call whose text remains blank.
    pub(super) unread: Option<Unread>,
}

impl ReceivedArguments {
    /// Stores members that may be the arguments. The first are kept.
    pub(super) fn set_unread(&mut self, unread: Unread) {
        if Content::of_text(&self.text) == Content::Absent {
            self.unread.get_or_insert(unread);
        }
    }
}

/// The arguments in one call of one event.
#[derive(Debug, Default)]
pub(super) struct FoundText<'c> {
    /// JSON text, or a piece of it.
    pub(super) text: Cow<'c, str>,
    /// Members that may be the arguments, if the text is blank.
    pub(super) unread: Option<Unread>,
}

impl FoundText<'_> {
    /// Returns the length of all texts in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.unread.as_ref().map_or(0, |unread| unread.text.len())
    }
}

/// Finds the arguments in the members of `call`, or if it is wrapped, of its `function` and beside it.
pub(super) fn find_text<'c>(call: &'c Loose<'_>) -> FoundText<'c> {
    let wrapped = call.get("function").filter(|function| matches!(function, Loose::Object(_)));
    let function = wrapped.unwrap_or(call);
    let around = wrapped.into_iter().flat_map(|_| call.members()).filter(|(key, _)| *key != "function");
    let name = function.get("name").and_then(Loose::as_text).unwrap_or_default();
    let unread = match find_arguments(function.members().chain(around), name, &ARGUMENT_KEYS) {
        FoundArguments::Value(value) => return FoundText { text: value.to_text(), unread: None },
        FoundArguments::None => None,
        FoundArguments::Unread(unread) => Some(unread),
    };
    // A blank piece may be inside the arguments.
    let text = function.get("arguments").map(Loose::to_text).unwrap_or_default();
    FoundText { text, unread }
}

/// Like [`find_text`]. Moves a text out of the member `arguments`, because it may be large.
pub(super) fn take_text<'a>(call: &mut Loose<'a>) -> FoundText<'a> {
    let is_wrapped = matches!(call.get("function"), Some(Loose::Object(_)));
    let function = if is_wrapped { call.get_mut("function") } else { Some(&mut *call) };
    if let Some(Loose::String(text)) = function.and_then(|function| function.get_mut("arguments"))
        && Content::of_text(text) == Content::Filled
    {
        return FoundText { text: std::mem::take(text), unread: None };
    }
    let FoundText { text, unread } = find_text(call);
    FoundText { text: text.into_owned().into(), unread }
}

/// Parses the arguments of one slot: usually one object; some servers concatenate several.
pub(super) fn parse_arguments(received: ReceivedArguments, empty_is_complete: bool) -> ParsedArguments {
    let ReceivedArguments { text, unread } = received;
    if let Some(Unread { text: members, error }) =
        unread.filter(|_| Content::of_text(&text) == Content::Absent)
    {
        return ParsedArguments::broken(&members, error, false);
    }
    let mut parsed = parse_objects(&text, empty_is_complete, true);
    if let ([object], None) = (parsed.objects.as_slice(), &parsed.malformed)
        && text.trim_start().starts_with('{')
        && object.to_string() != text
    {
        parsed.written = Some(text.into());
    }
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
                parsed.repairs = vec![Repair::of_call(RepairKind::EncodedTwice)];
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
        let received = ReceivedArguments { text: deep, unread: None };
        let parsed = parse_arguments(received, true);
        assert!(parsed.objects.is_empty() && parsed.malformed.is_some() && !parsed.truncated);
    }
}
