//! Asks and replies, with the scores and the problems.

use std::sync::Arc;

use deftool_eval::judge::{Choice, Verdict, confusions, judge};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use serde_json::{Value, json};

use super::notation;

/// Tools with defaults at every depth.
fn definitions() -> Value {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    json!([
        tool(
            "get_weather",
            json!({"type": "object", "properties": {
            "location": {"type": "string"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "number", "default": 1},
            "verbose": {"type": "boolean"}
        }, "required": ["location"], "additionalProperties": false})
        ),
        tool(
            "search",
            json!({"type": "object", "properties": {
                "query": {"type": "string"},
                "filter": {"$ref": "#/$defs/filter"},
                "sort": {"type": "array", "items": {"type": "object", "properties": {
                    "by": {"type": "string"}, "descending": {"type": "boolean", "default": false}
                }}},
                "page": {"anyOf": [{"$ref": "#/$defs/page"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"type": "string"}, "default": ["all"]}
            }, "$defs": {
                "filter": {"type": "object", "properties": {
                    "year": {"type": "integer"}, "language": {"type": "string", "default": "en"}
                }},
                "page": {"type": "object", "properties": {"number": {"type": "integer", "default": 1}, "size": {"type": "integer"}}}
            }})
        ),
        tool("now", json!({"type": "object", "properties": {}})),
    ])
}

fn verdict(ask: &Value, reply: &Value) -> Verdict {
    let tools = notation::tools(&definitions());
    judge(&notation::ask(ask), &notation::calls(reply, &tools), &tools)
}

/// Returns the first letters of the scores that are true.
fn scores(verdict: &Verdict) -> String {
    let scores = [(verdict.choice, 'c'), (verdict.validity, 'v'), (verdict.arguments, 'a')];
    assert_eq!(verdict.passes(), verdict.problems.is_empty(), "{verdict:?}");
    scores.into_iter().filter(|(is_true, _)| *is_true).map(|(_, letter)| letter).collect()
}

fn check(ask: &Value, reply: &Value, expected: &str, problems: &[&str]) {
    let verdict = verdict(ask, reply);
    let found: Vec<String> = verdict.problems.iter().map(ToString::to_string).collect();
    assert_eq!((scores(&verdict).as_str(), found), (expected, owned(problems)), "{ask}\n{reply}");
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// An ask about one call of a tool, with a pattern of its arguments and those of the reply, and the problems.
type Row<'r> = (&'r str, Value, Value, &'r [&'r str]);

fn check_arguments(rows: &[Row<'_>]) {
    for (tool, pattern, arguments, problems) in rows {
        let ask = json!({"calls": [{"tool": tool, "arguments": pattern}]});
        let verdict = verdict(&ask, &json!([{"tool": tool, "arguments": arguments}]));
        let found = verdict.problems.iter().map(ToString::to_string);
        // Patterns decide about invalid calls, too.
        let found: Vec<String> = found.filter(|problem| !problem.starts_with("invalid call")).collect();
        assert_eq!(found, owned(problems), "{pattern}\n{arguments}");
        assert!(verdict.choice, "{arguments}");
        assert_eq!(verdict.arguments, problems.is_empty(), "{pattern}\n{arguments}");
    }
}

#[test]
fn the_schema_decides_about_arguments_that_are_not_stated() {
    check_arguments(&[
        // Values are JSON values; blanks around strings do not matter.
        ("get_weather", json!({"location": "Oslo"}), json!({"location": " Oslo\n"}), &[]),
        (
            "get_weather",
            json!({"location": "Oslo", "days": 2}),
            json!({"location": "Oslo", "days": 2.0}),
            &[],
        ),
        (
            "get_weather",
            json!({"location": "Oslo"}),
            json!({"location": "oslo"}),
            &["`.location`: expected `\"Oslo\"`, found `\"oslo\"`"],
        ),
        (
            "get_weather",
            json!({"location": "Oslo", "unit": "fahrenheit", "days": 3}),
            json!({"location": "Oslo", "unit": "celsius", "days": 2}),
            &["`.unit`: expected `\"fahrenheit\"`, found `\"celsius\"`", "`.days`: expected `3`, found `2`"],
        ),
        // What is not stated must have its default.
        (
            "get_weather",
            json!({"location": "Oslo"}),
            json!({"location": "Oslo", "unit": "celsius", "days": 1.0}),
            &[],
        ),
        (
            "get_weather",
            json!({"location": "Oslo"}),
            json!({"location": "Oslo", "unit": "fahrenheit", "verbose": true}),
            &["extra argument `.unit`: `\"fahrenheit\"`", "extra argument `.verbose`: `true`"],
        ),
        // What is stated and absent has its default.
        ("get_weather", json!({"location": "Oslo", "unit": "celsius"}), json!({"location": "Oslo"}), &[]),
        (
            "get_weather",
            json!({"location": "Oslo", "unit": "fahrenheit", "verbose": true}),
            json!({"location": "Oslo"}),
            &[
                "missing argument `.unit`: expected `\"fahrenheit\"`",
                "missing argument `.verbose`: expected `true`",
            ],
        ),
        (
            "get_weather",
            json!({"location": "Oslo", "verbose": {"$optional": true}}),
            json!({"location": "Oslo"}),
            &[],
        ),
        (
            "get_weather",
            json!({"location": "Oslo", "verbose": {"$optional": true}}),
            json!({"location": "Oslo", "verbose": false}),
            &["`.verbose`: expected `true`, found `false`"],
        ),
    ]);
}

#[test]
fn patterns_have_alternatives_and_schemas() {
    let any_unit = json!({"location": "Oslo", "unit": {"$any": ["celsius", "kelvin"]}});
    let any_call = json!({"$any": [{"location": "Oslo"}, {"location": "Bergen", "days": 2}]});
    check_arguments(&[
        // `any`, also with patterns of all arguments, and with a default.
        ("get_weather", any_unit.clone(), json!({"location": "Oslo"}), &[]),
        (
            "get_weather",
            any_unit,
            json!({"location": "Oslo", "unit": "fahrenheit"}),
            &["`.unit`: expected one of `\"celsius\"`, `\"kelvin\"`, found `\"fahrenheit\"`"],
        ),
        ("get_weather", any_call.clone(), json!({"location": "Bergen", "days": 2}), &[]),
        (
            "get_weather",
            any_call,
            json!({"location": "Bergen"}),
            &[
                "arguments: expected one of `{\"location\":\"Oslo\"}`, `{\"location\":\"Bergen\",\"days\":2}`, found `{\"location\":\"Bergen\"}`",
            ],
        ),
        // `schema` decides about all that is in the value, and an invalid schema matches nothing.
        (
            "get_weather",
            json!({"location": {"$schema": {"pattern": "^Os"}}}),
            json!({"location": "Oslo"}),
            &[],
        ),
        (
            "search",
            json!({"filter": {"$schema": {"required": ["year"]}}}),
            json!({"filter": {"year": 1, "other": 2}}),
            &[],
        ),
        (
            "get_weather",
            json!({"$schema": {"required": ["location"]}}),
            json!({"location": "x", "verbose": true}),
            &[],
        ),
        (
            "get_weather",
            json!({"location": {"$schema": {"minLength": 9}}}),
            json!({"location": "Oslo"}),
            &["`.location`: expected a value that is valid under `{\"minLength\":9}`, found `\"Oslo\"`"],
        ),
        (
            "get_weather",
            json!({"location": {"$schema": {"type": "text"}}}),
            json!({"location": "Oslo"}),
            &["`.location`: expected a value that is valid under `{\"type\":\"text\"}`, found `\"Oslo\"`"],
        ),
        // `optional` where nothing can be absent.
        (
            "search",
            json!({"tags": [{"$optional": "a"}, {"$any": [{"$optional": "b"}, "c"]}]}),
            json!({"tags": ["a", "b"]}),
            &[],
        ),
        (
            "search",
            json!({"tags": [{"$optional": "a"}, "b"]}),
            json!({"tags": ["b"]}),
            &["`.tags`: expected `[(optional \"a\"),\"b\"]`, found `[\"b\"]`"],
        ),
        ("search", json!({"$optional": {"query": "x"}}), json!({"query": "x"}), &[]),
    ]);
}

#[test]
fn the_same_rules_apply_inside_of_objects_and_arrays() {
    let page = json!({"number": 1, "size": 10});
    check_arguments(&[
        // The same rules inside of objects: behind a reference, in items, in a branch.
        (
            "search",
            json!({"filter": {"year": 1999}}),
            json!({"filter": {"language": "en", "year": 1999}}),
            &[],
        ),
        (
            "search",
            json!({"filter": {"year": 1999, "language": "en"}}),
            json!({"filter": {"year": 1999}}),
            &[],
        ),
        (
            "search",
            json!({"filter": {"year": 1999}}),
            json!({"filter": {"year": 1999, "language": "de"}}),
            &["extra argument `.filter.language`: `\"de\"`"],
        ),
        (
            "search",
            json!({"sort": [{"by": "a"}, {"by": "b"}]}),
            json!({"sort": [{"by": "a", "descending": false}, {"by": "c", "descending": true}]}),
            &[
                "`.sort[1].by`: expected `\"b\"`, found `\"c\"`",
                "extra argument `.sort[1].descending`: `true`",
            ],
        ),
        ("search", json!({"page": page}), json!({"page": {"size": 10}}), &[]),
        ("search", json!({"page": {"size": 10}}), json!({"page": page}), &[]),
        ("search", json!({"query": "x"}), json!({"query": "x", "tags": ["all"]}), &[]),
        (
            "search",
            json!({"query": "x"}),
            json!({"query": "x", "tags": []}),
            &["extra argument `.tags`: `[]`"],
        ),
        (
            "search",
            json!({"filter": {}}),
            json!({"filter": "en"}),
            &["`.filter`: expected an object, found `\"en\"`"],
        ),
    ]);
}

#[test]
fn ignored_arguments_do_not_matter() {
    let ask =
        json!({"calls": [{"tool": "search", "arguments": {"filter": {}}, "ignore": ["query", "language"]}]});
    let reply = |arguments: Value| json!([{"tool": "search", "arguments": arguments}]);
    check(&ask, &reply(json!({"filter": {}, "query": "anything"})), "cva", &[]);
    check(&ask, &reply(json!({"filter": {}})), "cva", &[]);
    // Only at the top.
    let inside = json!({"filter": {"language": "de"}});
    check(&ask, &reply(inside), "cv", &["extra argument `.filter.language`: `\"de\"`"]);
}

/// The scores of replies with several calls, without calls, and with invalid calls.
#[test]
fn choice_validity_and_arguments_are_separate() {
    let weather = |location: &str| json!({"tool": "get_weather", "arguments": {"location": location}});
    let search = json!({"tool": "search", "arguments": {"query": "x"}});
    let now = json!({"tool": "now", "arguments": {}});
    let invalid = json!({"tool": "get_weather", "arguments": {"place": "Oslo"}});
    let one = json!({"calls": [weather("Oslo")]});
    let two = json!({"calls": [weather("Oslo"), weather("Bergen")]});
    let any = json!({"calls": [{"tool": "get_weather"}]});
    let first_now = json!({"calls": [now, search], "ordered": true});
    let invalid_text = "invalid call of `get_weather`: Additional properties are not allowed ('place' was unexpected); \"location\" is a required property";
    for (ask, reply, expected, problems) in [
        (&one, json!([weather("Oslo")]), "cva", &[][..]),
        (&one, json!([]), "v", &["missing call of `get_weather`"]),
        (&one, json!([search]), "v", &["missing call of `get_weather`", "extra call of `search`"]),
        (&one, json!([weather("Oslo"), search]), "va", &["extra call of `search`"]),
        (&one, json!([weather("Oslo"), weather("Oslo")]), "va", &["extra call of `get_weather`"]),
        (
            &one,
            json!([{"tool": "weather", "arguments": {"location": "Oslo"}}]),
            "",
            &[
                "missing call of `get_weather`",
                "extra call of `weather`",
                "invalid call of `weather`: unknown tool",
            ],
        ),
        (
            &one,
            json!([{"tool": "get_weather", "arguments": null}]),
            "c",
            &[
                "invalid call of `get_weather`: the arguments are not a JSON object",
                "arguments: expected an object, found `null`",
            ],
        ),
        // Any valid arguments.
        (&any, json!([weather("Rome")]), "cva", &[]),
        (&any, json!([invalid]), "ca", &[invalid_text]),
        // Without an order, the best pairs.
        (&two, json!([weather("Bergen"), weather("Oslo")]), "cva", &[]),
        (&two, json!([weather("Bergen")]), "va", &["missing call of `get_weather`"]),
        (
            &two,
            json!([weather("Rome"), weather("Oslo")]),
            "cv",
            &["`.location`: expected `\"Bergen\"`, found `\"Rome\"`"],
        ),
        // With an order.
        (&first_now, json!([now, search]), "cva", &[]),
        (
            &first_now,
            json!([search, now]),
            "va",
            &["calls in the wrong order: expected `now`, `search`, found `search`, `now`"],
        ),
        (&first_now, json!([now, weather("Oslo"), search]), "va", &["extra call of `get_weather`"]),
        (&first_now, json!([search]), "va", &["missing call of `now`"]),
        // No call.
        (&json!("no call"), json!([]), "cva", &[]),
        (&json!("no call"), json!([now]), "va", &["extra call of `now`"]),
        (&json!("no call"), json!([invalid]), "a", &["extra call of `get_weather`", invalid_text]),
        (&json!({"no_call_of": "search"}), json!([invalid, now]), "cva", &[]),
        (
            &json!({"no_call_of": "search"}),
            json!([now, search, search]),
            "va",
            &["extra call of `search`"; 2],
        ),
    ] {
        check(ask, &reply, expected, problems);
    }
}

/// In strict mode the model gets a schema without defaults, and the nulls of absent arguments are removed.
#[test]
fn the_schema_of_a_strict_tool_is_that_of_its_spec() {
    let definition = definitions()[0].take();
    let tool = ToolEntry::new(ToolKind::Normal, definition, None).unwrap().into_strict();
    let tools = ToolSet::new([Arc::new(tool)]);
    let ask = json!({"calls": [{"tool": "get_weather", "arguments": {"location": "Oslo", "days": 1}}]});
    let call = json!({"tool": "get_weather", "arguments": {"location": "Oslo", "unit": "celsius"}});
    assert!(judge(&notation::ask(&ask), &notation::calls(&json!([call]), &tools), &tools).passes());
}

/// A pair that a greedy choice would lose: the first call matches both expected calls.
#[test]
fn pairs_are_not_greedy() {
    let ask = json!({"calls": [
        {"tool": "get_weather", "arguments": {"location": {"$any": ["Oslo", "Bergen"]}}},
        {"tool": "get_weather", "arguments": {"location": "Oslo"}}
    ]});
    let weather = |location: &str| json!({"tool": "get_weather", "arguments": {"location": location}});
    for reply in [json!([weather("Oslo"), weather("Bergen")]), json!([weather("Bergen"), weather("Oslo")])] {
        check(&ask, &reply, "cva", &[]);
    }
    // Calls that do not match are compared with the most similar one.
    let ask = json!({"calls": [
        {"tool": "get_weather", "arguments": {"location": "Oslo"}},
        {"tool": "get_weather", "arguments": {"location": "Bergen", "unit": "fahrenheit"}}
    ]});
    let other =
        json!({"tool": "get_weather", "arguments": {"location": "Bergen", "unit": "fahrenheit", "days": 2}});
    let reply = json!([other, weather("Rome")]);
    let rome = "`.location`: expected `\"Oslo\"`, found `\"Rome\"`";
    check(&ask, &reply, "cv", &[rome, "extra argument `.days`: `2`"]);
}

/// A reply of a server that floods: the verdict is small, and complete in short time.
#[test]
fn the_work_and_the_problems_of_a_reply_are_limited() {
    let calls: Vec<Value> = (0..5000)
        .map(|day| json!({"tool": "get_weather", "arguments": {"location": "x", "days": day}}))
        .collect();
    let ask = json!({"calls": calls[..200].to_vec()});
    let verdict = verdict(&ask, &Value::from(calls));
    assert_eq!((scores(&verdict).as_str(), verdict.problems.len()), ("va", 20));
    let many: Value =
        (0..5000).map(|at| (format!("x{at}"), json!(at))).collect::<serde_json::Map<_, _>>().into();
    let two = json!({"calls": vec![json!({"tool": "search", "arguments": {}}); 2]});
    let verdict = self::verdict(&two, &json!(vec![json!({"tool": "search", "arguments": many}); 2]));
    assert_eq!((scores(&verdict).as_str(), verdict.problems.len()), ("cv", 20));
}

#[test]
fn confused_tools_are_counted() {
    let weather = json!({"tool": "get_weather", "arguments": {"location": "Oslo"}});
    let (search, now) = (json!({"tool": "search", "arguments": {}}), json!({"tool": "now", "arguments": {}}));
    let one = json!({"calls": [weather]});
    let verdicts = [
        verdict(&one, &json!([weather])),
        verdict(&one, &json!([search])),
        verdict(&one, &json!([search, now])),
        verdict(&one, &json!([])),
        verdict(&json!("no call"), &json!([])),
        verdict(&json!("no call"), &json!([now])),
    ];
    let rows = confusions(verdicts.into_iter().flat_map(|verdict| verdict.choices));
    let row = |expected, called, count| (Choice::new(expected, called), count);
    assert_eq!(
        rows.into_iter().map(|row| (row.choice, row.count)).collect::<Vec<_>>(),
        [
            row(None, Some("now"), 2),
            row(Some("get_weather"), Some("search"), 2),
            row(Some("get_weather"), None, 1),
            row(None, None, 1),
            row(Some("get_weather"), Some("get_weather"), 1),
        ]
    );
}

/// The JSON form of a verdict, for programs.
#[test]
fn problems_are_data() {
    let ask = json!({"calls": [{"tool": "get_weather", "arguments": {"location": "Oslo", "verbose": true}}]});
    let reply = json!([{"tool": "get_weather", "arguments": {"location": "Rome", "days": 3}}, {"tool": "now", "arguments": {}}]);
    let verdict = serde_json::to_value(verdict(&ask, &reply)).unwrap();
    assert_eq!(
        verdict,
        json!({
            "choice": false,
            "validity": true,
            "arguments": false,
            "problems": [
                {"problem": "extra_call", "tool": "now", "call": 1},
                {"problem": "argument", "tool": "get_weather", "call": 0, "path": ".location", "expected": "`\"Oslo\"`", "found": "Rome"},
                {"problem": "argument", "tool": "get_weather", "call": 0, "path": ".verbose", "expected": "`true`"},
                {"problem": "argument", "tool": "get_weather", "call": 0, "path": ".days", "found": 3}
            ],
            "choices": [
                {"expected": "get_weather", "called": "get_weather"},
                {"expected": null, "called": "now"}
            ]
        })
    );
}
