//! What differs between two JSON values, field by field.

use serde_json::Value;

/// Differences beyond this many are only counted.
const MAX_TOLD: usize = 20;

/// One line a difference: `messages[1].content: recorded "a", now "b"`. Empty when the values are equal.
pub(super) fn differences(recorded: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", recorded, now, &mut found);
    if found.len() > MAX_TOLD {
        let more = found.len() - MAX_TOLD;
        found.truncate(MAX_TOLD);
        found.push(format!("and {more} more"));
    }
    found
}

fn walk(path: &str, recorded: &Value, now: &Value, found: &mut Vec<String>) {
    match (recorded, now) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = join(path, key);
                match after.get(key) {
                    Some(other) => walk(&path, value, other, found),
                    None => found.push(format!("{path}: recorded {}, now absent", show(value))),
                }
            }
            for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                found.push(format!("{}: not recorded, now {}", join(path, key), show(value)));
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, (value, other)) in before.iter().zip(after).enumerate() {
                walk(&format!("{path}[{index}]"), value, other, found);
            }
            for (index, value) in before.iter().enumerate().skip(after.len()) {
                found.push(format!("{path}[{index}]: recorded {}, now absent", show(value)));
            }
            for (index, value) in after.iter().enumerate().skip(before.len()) {
                found.push(format!("{path}[{index}]: not recorded, now {}", show(value)));
            }
        }
        _ if recorded == now => {}
        _ => {
            let place = if path.is_empty() { "the body" } else { path };
            let (recorded, now) = match (recorded, now) {
                (Value::String(recorded), Value::String(now)) => show_strings(recorded, now),
                _ => (show(recorded), show(now)),
            };
            found.push(format!("{place}: recorded {recorded}, now {now}"));
        }
    }
}

/// Two strings from a little before the place where they part: long prompts begin alike.
fn show_strings(recorded: &str, now: &str) -> (String, String) {
    const BEFORE: usize = 30;
    let common = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| {
        let skipped = common.saturating_sub(BEFORE);
        let rest = show(&Value::String(text.chars().skip(skipped).collect()));
        if skipped == 0 { rest } else { format!("…{rest}") }
    };
    (from(recorded), from(now))
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_is_told() {
        let recorded = json!({"model": "a", "messages": [{"content": "x"}, {"content": "y"}], "seed": 1});
        let now = json!({"model": "b", "messages": [{"content": "z"}], "stop": []});
        assert_eq!(
            differences(&recorded, &now),
            [
                "model: recorded \"a\", now \"b\"",
                "messages[0].content: recorded \"x\", now \"z\"",
                "messages[1]: recorded {\"content\":\"y\"}, now absent",
                "seed: recorded 1, now absent",
                "stop: not recorded, now []",
            ]
        );
        assert!(differences(&recorded, &recorded).is_empty());

        let long = |end: &str| json!({"content": format!("{}{end}", "é".repeat(500))});
        let told = differences(&long("left: 8"), &long("left: 9"));
        assert!(told[0].contains("left: 8") && told[0].contains("left: 9"), "{told:?}");
    }
}
