//! The canonical form of a call: its name and arguments as one string. Two calls with the same canonical form are the
//! same call. Key order, number notation and string escapes make no difference.
//!
//! Some call formats do not record a value's type (`5` in a tag is text). So a scalar is compared as text, and a string
//! that contains an object or an array is compared as that value.

use serde_json::{Map, Number, Value};

use super::comparable::comparable;
use crate::RawArguments;
use crate::fallback::read_literal;

/// 2^53: a float represents every integer below this exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the canonical form of a call of tool `name`.
pub(super) fn canonical(name: &str, arguments: &RawArguments) -> String {
    let mut out = comparable(name);
    out.push('\u{1}');
    match arguments {
        RawArguments::Object { value } => push_value(value, &mut out),
        RawArguments::Malformed { text, .. } => out.push_str(&comparable(text)),
    }
    out
}

// `comparable` removes control characters, so they are safe as separators.
fn push_object(object: &Map<String, Value>, out: &mut String) {
    let mut members: Vec<(String, &Value)> =
        object.iter().map(|(key, value)| (comparable(key), value)).collect();
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    out.push('\u{2}');
    for (key, value) in members {
        out.push_str(&key);
        out.push('\u{3}');
        push_value(value, out);
        out.push('\u{4}');
    }
    out.push('\u{5}');
}

fn push_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => push_string(text, out),
        Value::Array(items) => {
            out.push('\u{6}');
            for item in items {
                push_value(item, out);
                out.push('\u{4}');
            }
            out.push('\u{5}');
        }
        Value::Object(object) => push_object(object, out),
    }
}

fn push_string(text: &str, out: &mut String) {
    let text = match text.trim() {
        "True" => "true",
        "False" => "false",
        "None" => "null",
        trimmed => trimmed,
    };
    if text.starts_with(['{', '[']) {
        let value: Option<Value> = serde_json::from_str(text).ok().or_else(|| read_literal(text).ok());
        if let Some(value) = value {
            return push_value(&value, out);
        }
    } else if let Ok(number) = text.parse::<Number>() {
        return out.push_str(&number_text(&number));
    }
    out.push_str(&comparable(text));
}

fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < MAX_EXACT => format!("{float:.0}"),
        Some(float) => format!("{float:e}"),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical_of(arguments: &Value) -> String {
        let value = arguments.clone().try_into().unwrap();
        canonical("look", &RawArguments::Object { value })
    }

    #[test]
    fn notation_and_key_order_are_ignored() {
        for (one, other) in [
            (json!({"a": 1, "b": {"c": 2, "d": [3]}}), json!({"b": {"d": [3], "c": 2}, "a": 1})),
            (json!({"a": 1}), json!({"a": 1.0})),
            (json!({"a": 1}), json!({"a": "1"})),
            (json!({"a": 1.5e10}), json!({"a": 15_000_000_000_u64})),
            (json!({"a": -0.0}), json!({"a": "-0.0"})),
            (json!({"a": true, "b": null}), json!({"a": "True", "b": "None"})),
            (json!({"a": ["x", 1]}), json!({"a": "['x', 1]"})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": "{\"c\": 2, \"b\": 1}"})),
        ] {
            assert_eq!(canonical_of(&one), canonical_of(&other), "{one} {other}");
        }
        for (one, other) in [
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!({"a": 1}), json!({})),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]})),
            (json!({"a": ["1", "2"]}), json!({"a": ["12"]})),
            (json!({"a": "b", "c": "d"}), json!({"a": "bcd"})),
            (json!({"a": {}}), json!({"a": []})),
        ] {
            assert_ne!(canonical_of(&one), canonical_of(&other), "{one} {other}");
        }
    }
}
