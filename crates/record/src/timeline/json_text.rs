//! JSON text for people: a list or an object is on one line if it fits, otherwise it has a line for each item.

use serde_json::Value;

/// Maximum length of a line with a list or an object, in bytes.
const WIDTH: usize = 100;

/// Returns the JSON text of a value.
pub(super) fn json_text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

/// Appends a value whose items are indented by `indent` and two more columns.
fn write(value: &Value, indent: usize, out: &mut String) {
    if fits(value, &mut WIDTH.saturating_sub(indent)) {
        return write_line(value, out);
    }
    let begin = |index: usize, open: char, out: &mut String| {
        out.push(if index == 0 { open } else { ',' });
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent + 2));
    };
    let close = match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                begin(index, '[', out);
                write(item, indent + 2, out);
            }
            ']'
        }
        Value::Object(members) => {
            for (index, (key, member)) in members.iter().enumerate() {
                begin(index, '{', out);
                write_key(key, out);
                write(member, indent + 2, out);
            }
            '}'
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return write_line(value, out),
    };
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(close);
}

/// Whether a value fits into `room` bytes on one line. Stops as soon as it does not.
fn fits(value: &Value, room: &mut usize) -> bool {
    match value {
        Value::Array(items) => take(room, 2 + 2 * items.len()) && items.iter().all(|item| fits(item, room)),
        Value::Object(members) => {
            take(room, 2 + 6 * members.len())
                && members.iter().all(|(key, member)| take(room, key.len()) && fits(member, room))
        }
        Value::String(text) => take(room, text.len() + 2),
        Value::Null | Value::Bool(_) | Value::Number(_) => take(room, value.to_string().len()),
    }
}

/// Takes `length` bytes of the room. Returns `false` if there are fewer.
fn take(room: &mut usize, length: usize) -> bool {
    let is_enough = length <= *room;
    *room = room.saturating_sub(length);
    is_enough
}

/// Appends a value on one line.
fn write_line(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_line(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_key(key, out);
                write_line(member, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn write_key(key: &str, out: &mut String) {
    out.push_str(&Value::from(key).to_string());
    out.push_str(": ");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_are_on_one_line() {
        assert_eq!(json_text(&json!({"a": [1, "x\n"], "b": {}})), r#"{"a": [1, "x\n"], "b": {}}"#);
        assert_eq!(json_text(&json!([])), "[]");
        assert_eq!(json_text(&json!(u64::MAX)), "18446744073709551615");
        let long = "é".repeat(200);
        assert_eq!(json_text(&json!(long)), format!("\"{long}\""));
        let nested = json!({"days": [{"day": "Sat", "note": "n".repeat(80)}, {"day": "Sun"}]});
        let expected = format!(
            "{{\n  \"days\": [\n    {{\n      \"day\": \"Sat\",\n      \"note\": \"{}\"\n    }},\n    {{\"day\": \"Sun\"}}\n  ]\n}}",
            "n".repeat(80)
        );
        assert_eq!(json_text(&nested), expected);
        assert_eq!(serde_json::from_str::<Value>(&json_text(&nested)).unwrap(), nested);
    }
}
