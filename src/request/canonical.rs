//! A call in a form in which it can be compared: its name and its arguments, whatever the order of keys, the spelling of
//! numbers and the escapes in strings.
//!
//! Forms differ in what they tell of a value's type (`5` in a tag is text), so scalars are compared by their text, and a
//! string that holds an object or an array by what it holds.

use serde_json::{Map, Number, Value};

use super::alike::comparable;
use crate::chat::RawArguments;
use crate::chat::fallback::read_literal;

/// Integers up to this are exact in a float: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The canonical form of a call of tool `name`.
pub(super) fn canonical(name: &str, arguments: &RawArguments) -> String {
    let mut out = comparable(name);
    out.push('\u{1}');
    match arguments {
        RawArguments::Object { value } => push_object(value, &mut out),
        RawArguments::Malformed { text, .. } => out.push_str(&comparable(text)),
    }
    out
}

// No comparable text holds a control character.
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
    let trimmed = text.trim();
    match trimmed {
        "True" => return out.push_str("true"),
        "False" => return out.push_str("false"),
        "None" => return out.push_str("null"),
        _ => {}
    }
    if trimmed.starts_with(['{', '[']) {
        let held: Option<Value> = serde_json::from_str(trimmed).ok().or_else(|| read_literal(trimmed).ok());
        if let Some(held @ (Value::Array(_) | Value::Object(_))) = held {
            return push_value(&held, out);
        }
    } else if let Ok(number) = trimmed.parse::<Number>() {
        return out.push_str(&number_text(&number));
    }
    out.push_str(&comparable(text));
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_EXACT => {
            format!("{float:.0}")
        }
        Some(float) if number.is_f64() => format!("{float:e}"),
        Some(_) | None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(arguments: &Value) -> String {
        let value = arguments.as_object().unwrap().clone();
        canonical("look", &RawArguments::Object { value })
    }

    #[test]
    fn spelling_and_order_do_not_count() {
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
            assert_eq!(form(&one), form(&other), "{one} {other}");
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
            assert_ne!(form(&one), form(&other), "{one} {other}");
        }
    }
}
