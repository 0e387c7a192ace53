use deftool_test_support::cpu::assert_linear;
use serde_json::json;

use super::*;
use crate::schema::ArgumentValidator;

/// Returns a schema with `levels` definitions, each of which combines the next one `width` times.
fn tower(levels: usize, width: usize, combine: impl Fn(Vec<Value>) -> Value) -> Value {
    let definition = |level: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        (format!("d{level}"), combine(vec![next; width]))
    };
    let mut definitions: Map<String, Value> = (0..levels).map(definition).collect();
    definitions.insert(format!("d{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

fn error(schema: &Value) -> Option<CostError> {
    BoundedSchema::new(schema).err()
}

/// Subschemas under a list of names.
fn named(keyword: &'static str) -> impl Fn(Vec<Value>) -> Value {
    move |schemas| {
        let named: Map<String, Value> =
            schemas.into_iter().enumerate().map(|(index, schema)| (format!("p{index}"), schema)).collect();
        json!({keyword: named})
    }
}

fn all(keyword: &'static str) -> impl Fn(Vec<Value>) -> Value {
    move |schemas| json!({keyword: schemas})
}

fn pair(keywords: [&'static str; 2]) -> impl Fn(Vec<Value>) -> Value {
    move |schemas| json!({keywords[0]: schemas[0], keywords[1]: schemas[1]})
}

#[test]
fn references_that_expand_without_end_for_one_value_are_rejected() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert_eq!(error(&tower(12, 10, all(keyword))), Some(CostError::Large), "{keyword}");
    }
    for keyword in ["dependentSchemas", "dependencies"] {
        assert_eq!(error(&tower(12, 10, named(keyword))), Some(CostError::Large), "{keyword}");
    }
    for keywords in [["if", "then"], ["if", "else"], ["not", "if"]] {
        assert_eq!(error(&tower(40, 2, pair(keywords))), Some(CostError::Large), "{keywords:?}");
    }
    assert_eq!(error(&tower(14, 2, all("allOf"))), None);
}

/// The size of these schemas has no limit: each level is for other values.
#[test]
fn references_that_expand_for_members_are_limited_by_the_value() {
    let towers = ["properties", "patternProperties"].map(|keyword| tower(12, 10, named(keyword)));
    let lists = tower(12, 10, all("prefixItems"));
    let pairs = [["items", "contains"], ["propertyNames", "additionalProperties"]];
    let pairs = pairs.map(|keywords| tower(40, 2, pair(keywords)));
    for schema in towers.iter().chain(&pairs).chain([&lists]) {
        let validator = ArgumentValidator::compile("t", schema).unwrap();
        assert!(!validator.is_valid(&json!(5)), "{schema}");
        assert!(validator.is_valid(&json!({"y": 5})), "{schema}");
    }
    let deep = |inner: fn(Value) -> Value| json!({"x": (0..12).fold(json!("a"), |value, _| inner(value))});
    let refused =
        |schema: &Value, value: &Value| !BoundedSchema::new(schema).unwrap().is_within(100_000, true, value);
    // A path through `properties` leads to one value.
    assert!(!refused(&towers[0], &deep(|value| json!({"p3": value}))));
    assert!(refused(&towers[1], &deep(|value| json!({"p0 p1 p2 p3 p4 p5 p6 p7 p8 p9": value}))));
    assert!(refused(&pairs[0], &json!({"x": (0..40).fold(json!([]), |value, _| json!([value]))})));
}

/// A validator searches for tags and for evaluated members along every path when it compiles a schema.
#[test]
fn what_compiles_without_end_is_rejected() {
    let union = |part: &Value| json!({"anyOf": [part, part, part]});
    let level = |level: usize| json!({"$ref": format!("#/$defs/d{level}")});
    for is_cyclic in [false, true] {
        let mut definitions = Map::new();
        for number in 0..12 {
            definitions.insert(format!("d{number}"), json!({"allOf": vec![level(number + 1); 10]}));
        }
        let end = if is_cyclic { json!({"properties": {"a": level(0)}}) } else { json!({}) };
        definitions.insert(String::from("d12"), end);
        let tags = json!({"properties": {"x": union(&level(0))}, "$defs": definitions});
        assert_eq!(error(&tags), Some(CostError::Large), "{is_cyclic}");
    }
    let evaluated = |schemas: Vec<Value>| json!({"allOf": schemas, "unevaluatedProperties": schemas[0]});
    assert_eq!(error(&tower(14, 2, evaluated)), Some(CostError::Large));
    assert_eq!(error(&tower(4, 2, evaluated)), None);
    let cycle = json!({"allOf": vec![level(0); 10]});
    assert_eq!(error(&json!({"anyOf": vec![level(0); 3], "$defs": {"d0": cycle}})), Some(CostError::Large));
}

#[test]
fn every_kind_of_reference_is_followed() {
    let level = |level: usize, reference: &str| {
        let (next, mut schema) = (format!("d{}", level + 1), json!({"$anchor": format!("d{level}")}));
        schema["$dynamicAnchor"] = json!(format!("d{level}"));
        schema["$id"] = json!(format!("folder/d{level}"));
        let (keyword, reference) = match reference {
            "anchor" => ("$ref", format!("d{}#{next}", level + 1)),
            "dynamic" => ("$dynamicRef", format!("d{}#{next}", level + 1)),
            "uri" => ("$ref", format!("http://example.org/folder/{next}")),
            "relative" => ("$ref", next),
            _ => ("$ref", format!("../s#/$defs/{next}")),
        };
        schema["anyOf"] = json!(vec![json!({keyword: reference}); 10]);
        schema
    };
    for kind in ["anchor", "dynamic", "uri", "relative", "pointer"] {
        let mut definitions: Map<String, Value> =
            (0..12).map(|number| (format!("d{number}"), level(number, kind))).collect();
        definitions.insert(String::from("d12"), json!({"$id": "folder/d12", "$anchor": "d12"}));
        let schema = json!({"$id": "http://example.org/s", "$ref": "#/$defs/d0", "$defs": definitions});
        assert_eq!(error(&schema), Some(CostError::Large), "{kind}");
    }
    assert_eq!(
        error(&json!({"$ref": "other.json"})),
        Some(CostError::Unresolved(String::from("other.json")))
    );
    assert_eq!(error(&json!({"default": {"$ref": "other.json"}})), None, "it is data");
    assert_eq!(error(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"})), None);
}

#[test]
fn deep_nesting_is_rejected() {
    assert_eq!(error(&tower(MAX_DEPTH, 1, |mut one| one.remove(0))), Some(CostError::Deep));
    assert_eq!(error(&tower(MAX_DEPTH / 2, 1, |mut one| one.remove(0))), None);
}

/// The deepest schemas and values that are allowed fit on the stack of a thread, which is 2 MiB.
#[test]
fn the_deepest_schemas_can_be_validated() {
    let thread = std::thread::Builder::new().stack_size(3 << 19);
    thread.spawn(validate_the_deepest_schemas).unwrap().join().unwrap();
}

fn validate_the_deepest_schemas() {
    let schema = tower(MAX_DEPTH / 2 - 2, 1, |one| json!({"allOf": one}));
    let validator = ArgumentValidator::compile("t", &schema).unwrap();
    assert!(validator.is_valid(&json!({"x": "text"})));
    assert_eq!(validator.validate(&json!({"x": 1})).unwrap_err().len(), 1);
    let list = json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]});
    let validator = ArgumentValidator::compile("t", &list).unwrap();
    let deep = |levels, end| (0..levels).fold(end, |inner, _| json!([inner]));
    let levels = MAX_DEPTH / 3 - 1;
    assert!(validator.is_valid(&deep(levels, json!(1))));
    assert_eq!(validator.validate(&deep(levels, json!("x"))).unwrap_err().len(), 1);
    let violations = validator.validate(&deep(MAX_DEPTH, json!(1))).unwrap_err();
    assert_eq!(violations[0].message, "the schema needs too many steps to validate this value");
}

/// The size of a schema without references has no limit.
#[test]
fn a_large_text_is_allowed() {
    let named: Map<String, Value> =
        (0..2 * MAX_SUBSCHEMAS).map(|number| (number.to_string(), json!({"type": "string"}))).collect();
    assert_eq!(error(&json!({"properties": named})), None);
}

#[test]
fn schemas_are_measured_in_linear_time() {
    assert_linear("definitions", 2_000, |many| {
        let definition = |number: usize| (format!("d{number}"), json!({"$ref": "#/$defs/d0"}));
        let definitions: Map<String, Value> = (1..many).map(definition).collect();
        let all: Vec<Value> = (1..many).map(|number| json!({"$ref": format!("#/$defs/d{number}")})).collect();
        assert_eq!(error(&json!({"allOf": all, "$defs": definitions})), None);
    });
}

/// A value of `depth` objects in each other.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[test]
fn a_recursive_schema_is_limited_by_the_value() {
    let twice = json!({"$ref": "#", "description": "again"});
    let schema = json!({"allOf": [{"properties": {"a": twice}}, {"properties": {"a": twice}}]});
    let schema = BoundedSchema::new(&schema).unwrap();
    assert!(schema.is_within(10_000, true, &nested(10)));
    assert!(schema.allows(&nested(60)));
    // Errors are not remembered.
    assert!(!schema.is_within(100_000, false, &nested(60)));
    // Each value is visited once.
    let tree = BoundedSchema::new(&json!({"properties": {"a": {"$ref": "#"}}})).unwrap();
    assert!(tree.allows(&nested(100)));
}

/// Twenty kinds of blocks, each with a list of blocks of any kind.
#[test]
fn schemas_that_refer_to_each_other_are_small() {
    let all: Vec<Value> = (0..20).map(|number| json!({"$ref": format!("#/$defs/d{number}")})).collect();
    let block = json!({"type": "object", "properties": {"a": {"items": {"anyOf": all}}}});
    let definitions: Map<String, Value> =
        (0..20).map(|number| (format!("d{number}"), block.clone())).collect();
    let schema = BoundedSchema::new(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).unwrap();
    assert!(schema.allows(&json!({"a": [{"a": [{"a": []}, {}]}, {}]})));
    // Each level of lists multiplies the paths by twenty.
    let deep = (0..10).fold(json!({}), |inner, _| json!({"a": [inner]}));
    assert!(!schema.is_within(100_000, true, &deep));
}

#[test]
fn a_cycle_without_progress_ends() {
    let schema = BoundedSchema::new(&json!({"anyOf": [{"$ref": "#"}, {"type": "object"}]})).unwrap();
    assert!(schema.allows(&nested(10)));
    // For one value, every order of schemas that refer to each other is a path.
    let all: Vec<Value> = (0..14).map(|number| json!({"$ref": format!("#/$defs/d{number}")})).collect();
    let definitions: Map<String, Value> =
        (0..14).map(|number| (format!("d{number}"), json!({"anyOf": all}))).collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert_eq!(error(&schema), Some(CostError::Large));
}

#[test]
fn nested_searches_for_evaluated_members_are_counted() {
    let mut schema = json!({"properties": {"b": {}}});
    for _ in 0..30 {
        schema = json!({"allOf": [schema], "unevaluatedProperties": {"$ref": "#/$defs/s"}});
    }
    schema["$defs"] = json!({"s": {"properties": {"a": {"$ref": "#/$defs/s"}}}});
    assert!(!BoundedSchema::new(&schema).unwrap().is_within(100_000, true, &json!({"b": 1})));
}

#[test]
fn long_lists_are_allowed() {
    let items = json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true});
    let schema = BoundedSchema::new(&items).unwrap();
    assert!(schema.allows(&(0..1_000_000).collect::<Value>()));
}

/// Twenty kinds of blocks, of which each may contain blocks of any kind, as in a document editor.
#[test]
fn deep_documents_are_allowed() {
    let kind = |number: usize| {
        json!({
            "properties": {
                "type": {"const": format!("k{number}")},
                "children": {"type": "array", "items": {"$ref": "#/$defs/block"}}
            },
            "required": ["type"]
        })
    };
    for union in ["oneOf", "anyOf"] {
        let kinds: Vec<Value> = (0..20).map(kind).collect();
        let schema =
            json!({"properties": {"doc": {"$ref": "#/$defs/block"}}, "$defs": {"block": {union: kinds}}});
        let block = |inner: Value| json!({"type": "k7", "children": [inner, {"type": "k3"}]});
        let deep = (0..30).fold(json!({"type": "k1"}), |inner, _| block(inner));
        assert!(BoundedSchema::new(&schema).unwrap().allows(&json!({"doc": deep})), "{union}");
    }
}

/// An expression of sixteen operators with two operands each.
#[test]
fn deep_expressions_are_allowed() {
    let operator = |number: usize| {
        let operand = json!({"$ref": "#/$defs/expression"});
        json!({"properties": {"op": {"const": number}, "left": operand, "right": operand}})
    };
    let mut all: Vec<Value> = (0..16).map(operator).collect();
    all.push(json!({"type": "number"}));
    let schema = json!({"$ref": "#/$defs/expression", "$defs": {"expression": {"anyOf": all}}});
    let balanced = (0..6).fold(json!(1), |operand, _| json!({"op": 3, "left": operand, "right": operand}));
    assert!(BoundedSchema::new(&schema).unwrap().allows(&balanced));
}

/// Kinds of nodes, each with children of any kind in a union of its own, as pydantic and zod write them.
fn kinds(count: usize, union: &str, is_required: bool) -> Value {
    let all: Vec<Value> = (0..count).map(|number| json!({"$ref": format!("#/$defs/k{number}")})).collect();
    let kind = |number: usize| {
        let mut kind = json!({"type": "object", "properties": {
            "type": {"const": format!("k{number}")},
            "children": {"type": "array", "items": {union: all}},
            "body": {union: all}
        }});
        if is_required {
            kind["required"] = json!(["type"]);
        }
        (format!("k{number}"), kind)
    };
    let definitions: Map<String, Value> = (0..count).map(kind).collect();
    json!({"type": "object", "properties": {"doc": {union: all}}, "$defs": definitions})
}

/// Validation takes 140 µs at a depth of 60 if the tag is required, and 310 µs if it is not. A tag that is not required
/// and follows the children takes 0.5 s, which is more than this model can show to be limited.
#[test]
fn deep_trees_of_tagged_kinds_are_allowed() {
    let tree = |depth: usize, is_first: bool| {
        let node = |inner: Value, level: usize| match (format!("k{}", level % 10), is_first) {
            (kind, true) => {
                json!({"type": kind, "children": [inner, {"type": "k3"}], "body": {"type": "k2"}})
            }
            (kind, false) => json!({"children": [inner, {"type": "k3"}], "type": kind}),
        };
        json!({"doc": (0..depth).fold(json!({"type": "k1"}), node)})
    };
    for union in ["oneOf", "anyOf"] {
        for (is_required, is_first) in [(true, true), (true, false), (false, true)] {
            let schema = BoundedSchema::new(&kinds(10, union, is_required)).unwrap();
            for depth in [20, 60] {
                let value = tree(depth, is_first);
                assert!(schema.is_within(100_000, true, &value), "{union} {is_required} {is_first} {depth}");
            }
            // All branches are described.
            assert!(!schema.is_within(100_000, false, &tree(20, is_first)));
        }
        let schema = BoundedSchema::new(&kinds(10, union, false)).unwrap();
        assert!(!schema.is_within(100_000, true, &tree(20, false)));
    }
    // Two branches are too few for the validator to read their tags.
    assert!(!BoundedSchema::new(&kinds(2, "oneOf", true)).unwrap().is_within(1_000, true, &tree(60, false)));
}

/// The errors of these values are too many to describe: each level has ten branches. The location of one is known.
#[test]
fn the_location_of_a_deep_failure_is_reported() {
    for (leaf, path, message) in [
        (json!({"type": "k1", "children": 5}), ".children", "5 is not of type \"array\""),
        (
            json!({"type": "k1", "body": {"type": "k2", "body": 5}}),
            ".body.body",
            "it does not match the schema",
        ),
        (json!({"type": "other"}), ".type", "`type` must be one of k0, k1, k2, k3, k4, k5, k6, k7, k8, k9"),
        (json!({}), "", "`type` must be one of k0, k1, k2, k3, k4, k5, k6, k7, k8, k9"),
        (json!(5), "", "it does not match the schema"),
    ] {
        let schema = kinds(10, "oneOf", true);
        let validator = ArgumentValidator::compile("t", &schema).unwrap();
        let deep = (0..20).fold(leaf, |inner, _| json!({"type": "k7", "children": [{"type": "k3"}, inner]}));
        let violations = validator.validate(&json!({"doc": deep})).unwrap_err();
        let expected = format!(".doc{}{path}", ".children[1]".repeat(20));
        assert_eq!(
            (violations[0].path.as_str(), violations[0].message.as_str()),
            (expected.as_str(), message)
        );
    }
}

/// The reference is the validator, which counts the texts that it visits.
#[test]
fn a_validator_takes_at_most_the_counted_steps() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let mut random = fastrand::Rng::with_seed(7);
    let mut shuffled = |mut members: Vec<(&'static str, Value)>| {
        random.shuffle(&mut members);
        let members = members.into_iter().filter(|_| random.u8(0..5) > 0);
        members.map(|(name, value)| (name.to_owned(), value)).collect::<Map<String, Value>>()
    };
    let mut visited_by_some = 0;
    for round in 0..300_usize {
        let count = 2 + round % 4;
        let union = ["anyOf", "oneOf"][round % 2];
        let all: Vec<Value> =
            (0..count).map(|number| json!({"$ref": format!("#/$defs/k{number}")})).collect();
        let kind = |(number, kind): (usize, Map<String, Value>)| {
            (
                format!("k{number}"),
                json!({"properties": kind, "required": [if number % 2 == 0 { "type" } else { "text" }]}),
            )
        };
        let members = (0..count).map(|number| {
            shuffled(vec![
                ("type", json!({"const": format!("k{number}")})),
                ("text", json!({"type": "string", "format": "probe"})),
                ("children", json!({"items": {union: all}})),
                ("body", json!({"$ref": format!("#/$defs/k{}", round % count)})),
            ])
        });
        let definitions: Map<String, Value> =
            members.collect::<Vec<_>>().into_iter().enumerate().map(kind).collect();
        let schema = json!({union: all, "$defs": definitions});
        let mut value = json!({"type": "k0", "text": "a"});
        for level in 0..6 {
            let kind = format!("k{}", (round + level) % (count + 1));
            let text = json!("a");
            value = Value::Object(shuffled(vec![
                ("type", json!(kind)),
                ("text", text),
                ("children", json!([value, {"type": "k1", "text": "b"}])),
                ("body", json!({"text": "c", "type": "k0"})),
            ]));
        }
        let visits = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&visits);
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .with_format("probe", move |_: &str| counter.fetch_add(1, Ordering::Relaxed) < usize::MAX)
            .build(&schema)
            .unwrap();
        let _ = validator.is_valid(&value);
        let visited = visits.load(Ordering::Relaxed);
        visited_by_some += usize::from(visited > 5);
        let bounded = BoundedSchema::new(&schema).unwrap();
        assert!(!bounded.is_within(visited.saturating_sub(1), true, &value), "{visited} {schema} {value}");
    }
    assert!(visited_by_some > 50, "{visited_by_some}");
}

/// What is sent does not replace references by their targets.
#[test]
fn the_output_for_targets_does_not_expand_references() {
    use crate::schema::{Target, limitations, offered_parameters, restore, strict_parameters};

    let towers = ["properties", "patternProperties"].map(|keyword| tower(12, 10, named(keyword)));
    let unions = tower(12, 10, |all| json!({"type": "object", "properties": {"a": {"anyOf": all}}}));
    for schema in towers.into_iter().chain([unions]) {
        for target in Target::ALL {
            limitations(target, &schema);
        }
        let text = schema.to_string();
        assert!(offered_parameters(&schema).unwrap().to_string().len() < 2 * text.len());
        assert!(strict_parameters(&schema).to_string().len() < 3 * text.len());
        restore(&schema, &mut json!({"x": {"p1": {"p2": null}}}));
    }
}
