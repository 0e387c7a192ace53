//! JSON pointers, and references that contain them.
//!
//! A `$ref` into its own schema is `#` and a JSON pointer, percent-encoded as a URI fragment: `#/properties/a%20b`. A
//! reference to an `$anchor`, such as `#name`, is not a pointer; only a validator follows it. llama.cpp follows
//! references differently; its support table accounts for that.
//!
//! Source: RFC 6901, its section 6 for fragments.

use std::fmt::Write;

use serde_json::Value;

use crate::spec::{Json, JsonKind, Member};

/// Escapes a key for use in a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Converts one step of a JSON pointer to a key.
pub(crate) fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Returns the keys of a JSON pointer, in order.
pub(crate) fn steps(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(unescape)
}

/// Returns the JSON pointer in a reference into the same schema; `None` for an external reference and for an anchor.
pub(crate) fn of_reference(reference: &str) -> Option<String> {
    let pointer = percent_decoded(reference.strip_prefix('#')?);
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// Returns the reference for a JSON pointer, with percent-encoded bytes where a URI fragment requires them.
pub(crate) fn to_reference(pointer: &str) -> String {
    pointer.bytes().fold(String::from("#"), |mut reference, byte| {
        if is_of_fragment(byte) {
            reference.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(reference, "%{byte:02X}");
        }
        reference
    })
}

/// Returns whether a reference is percent-encoded where a URI requires it.
pub(crate) fn is_encoded(reference: &str) -> bool {
    reference.bytes().all(|byte| is_of_fragment(byte) || matches!(byte, b'#' | b'%'))
}

fn is_of_fragment(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte)
}

/// Returns the target of a `$ref` inside the schema `root`.
pub(crate) fn resolve<'v>(root: &'v Value, reference: &Value) -> Option<&'v Value> {
    root.pointer(&of_reference(reference.as_str()?)?)
}

/// An element of an object or an array.
pub(crate) enum Inside<'j> {
    Member(&'j Member),
    Item(&'j Json),
}

impl<'j> Inside<'j> {
    pub(crate) fn value(&self) -> &'j Json {
        match self {
            Self::Member(member) => &member.value,
            Self::Item(item) => item,
        }
    }
}

/// Returns the element of `value` for one step of a JSON pointer.
pub(crate) fn enter<'j>(value: &'j Json, step: &str) -> Option<Inside<'j>> {
    match &value.kind {
        JsonKind::Object(members) => members.iter().find(|member| member.key == step).map(Inside::Member),
        JsonKind::Array(items) => items.get(index(step)?).map(Inside::Item),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => None,
    }
}

/// Parses an array index: digits only, without leading zeros.
fn index(step: &str) -> Option<usize> {
    let is_plain = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_plain)
}

/// Decodes percent-encoded bytes. A `%` without two hex digits is kept.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits =
            tail.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_pointers_in_a_fragment() {
        for (reference, pointer) in [
            ("#", Some("")),
            ("#/a~1b", Some("/a~1b")),
            ("#/a%20b%2", Some("/a b%2")),
            ("#/%C3%A9%zz%+1", Some("/é%zz%+1")),
            ("#/a%7E1b%25", Some("/a~1b%")),
            ("#name", None),
            ("other.json#/a", None),
            ("", None),
        ] {
            assert_eq!(of_reference(reference).as_deref(), pointer, "{reference}");
        }
        assert_eq!(to_reference("/a%20b/é ~1"), "#/a%2520b/%C3%A9%20~1");
        assert_eq!(of_reference(&to_reference("/a%20b")).as_deref(), Some("/a%20b"));
    }

    #[test]
    fn steps_are_keys() {
        for (pointer, keys) in [("", &[][..]), ("/a~1b~0c", &["a/b~c"]), ("/~01/", &["~1", ""])] {
            assert_eq!(steps(pointer).collect::<Vec<_>>(), keys, "{pointer}");
        }
    }

    #[test]
    fn references_and_indexes_are_resolved() {
        let value = json!({"a b": [1, {"c/d": 2}], "": 3});
        assert_eq!(resolve(&value, &json!("#/a%20b/1/c~1d")), Some(&json!(2)));
        for reference in ["#/a%20b/01", "#/a%20b/+1", "#/x", "#x"] {
            assert_eq!(resolve(&value, &json!(reference)), None, "{reference}");
        }
        for (step, number) in [("0", Some(0)), ("12", Some(12)), ("01", None), ("+1", None), ("", None)] {
            assert_eq!(index(step), number, "{step}");
        }
    }
}
