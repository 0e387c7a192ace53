//! Lossless repairs of arguments: which damage is repaired, and which values stay as they are.

use deftool_lang::schema::{Accepted, Arguments, RepairKind, ToolEntry, ToolKind, ToolSet, repair_text};
use serde_json::{Value, json};

/// Parameters with one argument of each kind. Only `n` is required.
fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "number": {"type": "number"},
            "flag": {"type": "boolean"},
            "text": {"type": "string"},
            "short": {"type": "string", "maxLength": 2},
            "word": {"enum": ["a", "b"]},
            "one": {"const": 1},
            "any": {},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]},
            "size": {"allOf": [{"type": "integer"}, {"minimum": 1}]},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "filter": {"$ref": "#/$defs/filter"},
            "defaulted": {"type": "integer", "default": 3},
            "referred": {"$ref": "#/$defs/defaulted"}
        },
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {
            "filter": {
                "type": "object",
                "properties": {
                    "limit": {"type": "integer"},
                    "within": {"$ref": "#/$defs/filter"},
                    "name": {"type": "string"}
                },
                "required": ["name"]
            },
            "defaulted": {"type": "integer", "default": 3}
        }
    })
}

fn entry(name: &str) -> ToolEntry {
    let definition = json!({"type": "function", "function": {"name": name, "parameters": parameters()}});
    ToolEntry::new(ToolKind::Normal, definition, None).unwrap()
}

/// Returns the accepted arguments and `path: kind` of each repair; `None` if the arguments are invalid and unchanged.
fn accept(arguments: &Value) -> Option<(Value, Vec<String>)> {
    let received: Arguments = arguments.clone().try_into().unwrap();
    match entry("t").accept_repaired(received) {
        Ok(Accepted { arguments, repairs }) => {
            let shown = repairs.iter().map(|repair| format!("{}: {}", repair.path, repair.kind.as_str()));
            Some((arguments.to_value(), shown.collect()))
        }
        Err((unchanged, violations)) => {
            assert!(!violations.is_empty());
            assert_eq!(*unchanged, *arguments);
            None
        }
    }
}

#[test]
fn certain_values_are_repaired_at_their_path() {
    for (sent, meant, repairs) in [
        (json!({"n": "5"}), json!({"n": 5}), vec![".n: integer_as_string"]),
        (json!({"n": "-7"}), json!({"n": -7}), vec![".n: integer_as_string"]),
        (
            json!({"n": "9007199254740992"}),
            json!({"n": 9_007_199_254_740_992_i64}),
            vec![".n: integer_as_string"],
        ),
        (json!({"n": 1, "number": "5"}), json!({"n": 1, "number": 5}), vec![".number: integer_as_string"]),
        (json!({"n": 1, "one": "1"}), json!({"n": 1, "one": 1}), vec![".one: integer_as_string"]),
        (json!({"n": 1, "size": "2"}), json!({"n": 1, "size": 2}), vec![".size: integer_as_string"]),
        (json!({"n": 1, "maybe": "2"}), json!({"n": 1, "maybe": 2}), vec![".maybe: integer_as_string"]),
        (json!({"n": 1, "flag": "true"}), json!({"n": 1, "flag": true}), vec![".flag: boolean_as_string"]),
        (json!({"n": 1, "list": "[1, 2]"}), json!({"n": 1, "list": [1, 2]}), vec![".list: encoded_value"]),
        (
            json!({"n": 1, "list": [1, "2", "3"]}),
            json!({"n": 1, "list": [1, 2, 3]}),
            vec![".list[1]: integer_as_string", ".list[2]: integer_as_string"],
        ),
        (
            json!({"n": 1, "filter": "{\"name\": \"a\nb\", \"limit\": \"3\"}"}),
            json!({"n": 1, "filter": {"name": "a\nb", "limit": 3}}),
            vec![".filter: encoded_value", ".filter: control_characters", ".filter.limit: integer_as_string"],
        ),
        (
            json!({"n": 1, "filter": {"name": "a", "within": {"name": "b", "limit": null}}}),
            json!({"n": 1, "filter": {"name": "a", "within": {"name": "b"}}}),
            vec![".filter.within.limit: null_for_absent"],
        ),
        (json!({"n": 1, "text": null}), json!({"n": 1}), vec![".text: null_for_absent"]),
        (
            json!({"n": 1, "flag": "", "list": "", "text": ""}),
            json!({"n": 1, "text": ""}),
            vec![".flag: empty_for_absent", ".list: empty_for_absent"],
        ),
        (
            json!({"n": "1", "flag": "false", "list": null}),
            json!({"n": 1, "flag": false}),
            vec![".flag: boolean_as_string", ".list: null_for_absent", ".n: integer_as_string"],
        ),
    ] {
        let repairs = repairs.into_iter().map(str::to_owned).collect();
        assert_eq!(accept(&sent), Some((meant, repairs)), "{sent}");
    }
}

#[test]
fn valid_values_are_not_changed() {
    for valid in [
        json!({"n": 5}),
        json!({"n": 1, "text": "5"}),
        json!({"n": 1, "text": "true"}),
        json!({"n": 1, "text": "{\"a\": 1}"}),
        json!({"n": 1, "either": "5"}),
        json!({"n": 1, "any": "5"}),
        json!({"n": 1, "maybe": null}),
    ] {
        assert_eq!(accept(&valid), Some((valid.clone(), Vec::new())));
    }
}

#[test]
fn uncertain_values_stay_invalid() {
    for uncertain in [
        // Not the canonical form of an integer, or not exact as a float.
        json!({"n": "05"}),
        json!({"n": "+5"}),
        json!({"n": " 5"}),
        json!({"n": "5.0"}),
        json!({"n": "-0"}),
        json!({"n": "5 apples"}),
        json!({"n": "9007199254740993"}),
        json!({"n": "five"}),
        json!({"n": 1, "number": "5.5"}),
        json!({"n": 1, "flag": "True"}),
        json!({"n": 1, "flag": "yes"}),
        json!({"n": 1, "flag": 1}),
        json!({"n": 1, "list": "1, 2"}),
        json!({"n": 1, "list": "[1, 2"}),
        json!({"n": 1, "list": "{}"}),
        json!({"n": 1, "list": 5}),
        // The schema accepts a string, but not this one.
        json!({"n": 1, "short": "123"}),
        json!({"n": 1, "either": "123"}),
        json!({"n": 1, "word": "1"}),
        // Required, with a default, or another argument is invalid, too.
        json!({"n": null}),
        json!({"n": 1, "defaulted": null}),
        json!({"n": 1, "referred": null}),
        json!({"n": 1, "list": [null]}),
        json!({"n": "5", "unknown": 1}),
        json!({"n": 1, "filter": "{\"limit\": 3}"}),
        json!({}),
    ] {
        assert_eq!(accept(&uncertain), None, "{uncertain}");
    }
}

/// With too many alternatives, or recursive ones, the work is bounded.
#[test]
fn schemas_with_many_branches_are_bounded() {
    let next = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}});
    let recursive = json!({"anyOf": [next, {"type": "integer"}]});
    let many: Vec<Value> = (0..100).map(|n| json!({"properties": {"a": {"const": n}}})).collect();
    for (root, repaired) in [
        (json!({"properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": recursive}}), true),
        (json!({"anyOf": many}), false),
    ] {
        let definition = json!({"type": "function", "function": {"name": "t", "parameters": root}});
        let entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap();
        let accepted = entry.accept_repaired(json!({"a": "5"}).try_into().unwrap());
        assert_eq!(accepted.is_ok(), repaired, "{accepted:?}");
    }
}

#[test]
fn a_strict_schema_is_restored_after_a_repair() {
    let entry = entry("t").into_strict();
    let sent = json!({"n": "1", "filter": "{\"name\": \"a\", \"limit\": null, \"within\": null}"});
    let accepted = entry.accept_repaired(sent.try_into().unwrap()).unwrap();
    assert_eq!(*accepted.arguments, json!({"n": 1, "filter": {"name": "a"}}));
}

#[test]
fn the_text_of_arguments_is_repaired() {
    let repair = |text: &str| {
        let (arguments, repairs) = repair_text(text)?;
        assert!(repairs.iter().all(|repair| repair.path.is_empty()));
        Some((arguments.to_value(), repairs.into_iter().map(|repair| repair.kind).collect::<Vec<_>>()))
    };
    let (controls, twice) = (RepairKind::ControlCharacters, RepairKind::EncodedTwice);
    for (text, meant, kinds) in [
        ("{\"a\": \"x\ny\tz\"}", json!({"a": "x\ny\tz"}), vec![controls]),
        ("{\r\n\"a\\\"\": \"\\\\\n\"\t}", json!({"a\"": "\\\n"}), vec![controls]),
        (r#""{\"a\": 1}""#, json!({"a": 1}), vec![twice]),
        (r#""{\"a\": \"x\ny\"}""#, json!({"a": "x\ny"}), vec![twice, controls]),
        ("\"{\\\"a\\\": \n1}\"", json!({"a": 1}), vec![controls, twice]),
    ] {
        assert_eq!(repair(text), Some((meant, kinds)), "{text}");
    }
    for text in [
        "",
        "5",
        "[1]",
        "{\"a\": 1}",
        "\"x\"",
        r#""\"{}\"""#,
        "{\"a\": \"x\\\ny\"}",
        "{\"a\": \"x\n",
        "{\"a\"\u{1}: 1}",
    ] {
        assert_eq!(repair(text), None, "{text}");
    }
}

#[test]
fn a_name_ends_at_a_control_token() {
    let tools = ToolSet::new([entry("get_weather").into()]);
    let called = |name: &str| {
        let (tool, repair) = tools.called(name)?;
        Some((tool.name.clone(), repair.is_some()))
    };
    assert_eq!(called("get_weather"), Some((String::from("get_weather"), false)));
    for name in [
        "get_weather<|channel|>commentary",
        "get_weather <|message|>",
        "get_weather<｜tool▁sep｜>",
        "get_weather</tool_call>",
        "get_weather[ARGS]{}",
    ] {
        assert_eq!(called(name), Some((String::from("get_weather"), true)), "{name}");
    }
    for name in
        ["get_weathers<|channel|>", "<|channel|>get_weather", "get_weather commentary", "get_weather[0]"]
    {
        assert_eq!(called(name), None, "{name}");
    }
}
