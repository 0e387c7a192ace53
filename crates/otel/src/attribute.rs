//! The values of attributes.

use opentelemetry::{Array, Value};

/// Returns a number of tokens.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a list with one text.
pub(crate) fn list_of(text: &str) -> Value {
    Value::Array(Array::String(vec![text.to_owned().into()]))
}

/// Returns the start of a text.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
