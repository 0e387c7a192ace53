#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn reported(recorded: &Value, now: &Value) -> Vec<String> {
    differences(recorded, now).iter().map(ToString::to_string).collect()
}

#[test]
fn each_changed_field_is_reported() {
    let recorded = json!({"model": "a", "messages": [{"content": "x"}, {"content": "y"}], "seed": 1});
    let now = json!({"model": "b", "messages": [{"content": "z"}], "stop": []});
    assert_eq!(
        reported(&recorded, &now),
        [
            "model: recorded \"a\", now \"b\"",
            "messages[0].content: recorded \"x\", now \"z\"",
            "messages[1]: recorded {\"content\":\"y\"}, now absent",
            "seed: recorded 1, now absent",
            "stop: not recorded, now []",
        ]
    );
    assert_eq!(reported(&json!(1), &json!("1")), ["(root): recorded 1, now \"1\""]);
    assert_eq!(
        reported(&json!({"a b": {"c.d": 1}}), &json!({"a b": {"c.d": 2}})),
        ["[\"a b\"][\"c.d\"]: recorded 1, now 2"]
    );
}

#[test]
fn long_texts_are_shown_from_their_first_difference() {
    let long = |end: &str| json!({"content": format!("{}{end}", "é".repeat(500))});
    let reported = reported(&long("left: 8"), &long("left: 9"));
    assert!(reported[0].contains("left: 8") && reported[0].contains("left: 9"), "{reported:?}");
    assert!(reported[0].chars().count() < 400, "{reported:?}");
    let big = json!({"items": vec!["x".repeat(100); 10_000]});
    let reported = differences(&json!({}), &big);
    assert!(reported[0].now.as_ref().unwrap().chars().count() <= 121);
}

#[test]
fn lists_are_aligned() {
    let tool =
        |name: &str, about: &str| json!({"type": "function", "function": {"name": name, "about": about}});
    let before = json!({"tools": [tool("a", "1"), tool("b", "2"), tool("c", "3")]});
    // An added item in the middle is one difference.
    let now = json!({"tools": [tool("a", "1"), tool("x", "9"), tool("b", "2"), tool("c", "3")]});
    let found = reported(&before, &now);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .starts_with("tools[1]: not recorded, now {\"type\":\"function\",\"function\":{\"name\":\"x\"")
    );
    // So is a removed item; a change of another item is reported separately.
    let now = json!({"tools": [tool("b", "2"), tool("c", "4")]});
    let found = reported(&before, &now);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("tools[0]: recorded {") && found[0].ends_with("now absent"), "{found:?}");
    assert_eq!(found[1], "tools[2].function.about: recorded \"3\", now \"4\"");
    let now = json!({"tools": [tool("b", "2"), tool("c", "3"), tool("a", "1")]});
    assert_eq!(reported(&before, &now), ["tools[0]: recorded at position 1 (a), now at position 3"]);
    // Messages are aligned by role.
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let before =
        json!([message("system", "s"), message("user", "u"), message("tool", "t"), message("user", "v")]);
    let now = json!([
        message("system", "S"),
        message("system", "new"),
        message("user", "u"),
        message("tool", "T"),
        message("user", "v")
    ]);
    assert_eq!(
        reported(&before, &now),
        [
            "[0].content: recorded \"s\", now \"S\"",
            "[1]: not recorded, now {\"role\":\"system\",\"content\":\"new\"}",
            "[2].content: recorded \"t\", now \"T\"",
        ]
    );
}

#[test]
fn redacted_text_equals_any_text() {
    let recorded =
        json!({"a": "Bearer [redacted-1], twice [redacted-1].", "n": "[redacted]", "[redacted-2]": 1});
    let now = json!({"a": "Bearer hunter2, twice hunter2.", "n": 1234, "hunter3": 1});
    assert!(differences(&recorded, &now).is_empty(), "{:?}", differences(&recorded, &now));
    let other = json!({"a": "Bearer hunter2, thrice hunter2.", "n": 1234, "hunter3": 2});
    assert_eq!(differences(&recorded, &other).len(), 2);
}

#[test]
fn many_differences_and_large_lists_are_bounded() {
    let many = |value: i32| Value::Array(vec![json!(value); 100_000]);
    let found = reported(&many(1), &many(2));
    assert_eq!((found.len(), found[20].as_str()), (21, "and 99980 more"));
    assert!(differences(&many(1), &many(1)).is_empty());
}

/// Generates values with few distinct names, so that they have items in common.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-c]{0,2}", Just(String::from("é\"\\\n"))];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        (0..3_i8).prop_map(|n| Value::from(f64::from(n) + 0.5)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = prop_oneof![Just("name"), Just("role"), Just("a b"), Just("x"), Just("")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

/// Returns the value at a path.
fn resolve<'v>(mut value: &'v Value, mut path: &str) -> Option<&'v Value> {
    while !path.is_empty() {
        if path.starts_with("[\"") {
            let mut keys = serde_json::Deserializer::from_str(&path[1..]).into_iter::<String>();
            let key = keys.next()?.ok()?;
            let end = keys.byte_offset();
            value = value.get(&key)?;
            path = &path[1 + end + 1..];
        } else if let Some(rest) = path.strip_prefix('[') {
            let (index, rest) = rest.split_once(']')?;
            value = value.get(index.parse::<usize>().ok()?)?;
            path = rest;
        } else {
            let rest = path.strip_prefix('.').unwrap_or(path);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = value.get(&rest[..end])?;
            path = &rest[end..];
        }
    }
    Some(value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_are_no_differences_exactly_if_values_are_equal(one in values(), other in values()) {
        prop_assert!(differences(&one, &one).is_empty());
        prop_assert_eq!(differences(&one, &other).is_empty(), one == other);
    }

    #[test]
    fn every_path_refers_to_an_existing_value(one in values(), other in values()) {
        for difference in differences(&one, &other) {
            match difference.change {
                Change::More => {}
                Change::Added => {
                    let found = resolve(&other, &difference.path).expect(&difference.path);
                    prop_assert_eq!(Some(show(found)), difference.now);
                }
                Change::Removed => {
                    let found = resolve(&one, &difference.path).expect(&difference.path);
                    prop_assert_eq!(Some(show(found)), difference.recorded);
                }
                Change::Changed | Change::Moved => {
                    prop_assert!(resolve(&one, &difference.path).is_some(), "{}", difference.path);
                }
            }
        }
    }

    #[test]
    fn one_change_is_one_difference(
        items in prop::collection::vec("[a-z]{4}", 1..30), at in any::<prop::sample::Index>(), how in 0..2,
    ) {
        let message = |text: &String| json!({"role": "user", "content": text});
        let before: Vec<Value> = items.iter().map(message).collect();
        let mut after = before.clone();
        let at = at.index(before.len());
        let expected = if how == 0 {
            after.insert(at, json!({"role": "user", "content": "ENTIRELY NEW"}));
            Change::Added
        } else {
            after.remove(at);
            Change::Removed
        };
        let found = differences(&Value::from(before), &Value::from(after));
        prop_assert_eq!(found.len(), 1, "{:?}", found);
        prop_assert_eq!(found[0].change, expected);
    }
}
