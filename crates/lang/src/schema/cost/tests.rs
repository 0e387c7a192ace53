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

/// Each level of these schemas is for other values, but several subschemas of a level are for the same one.
#[test]
fn references_that_expand_for_one_member_are_rejected() {
    for pair in [["items", "contains"], ["propertyNames", "additionalProperties"]].map(pair) {
        assert_eq!(error(&tower(40, 2, pair)), Some(CostError::Large));
    }
    assert_eq!(error(&tower(12, 10, named("patternProperties"))), Some(CostError::Large));
    // One path leads to each value.
    for schema in [tower(12, 10, named("properties")), tower(12, 10, all("prefixItems"))] {
        let validator = ArgumentValidator::compile("t", &schema).unwrap();
        assert!(!validator.is_valid(&json!(5)), "{schema}");
        assert!(validator.is_valid(&json!({"y": 5})), "{schema}");
        assert_eq!(validator.validate(&json!({"x": 5})), Ok(()));
    }
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
    assert_eq!(error(&json!({"anyOf": vec![level(0); 3], "$defs": {"d0": cycle}})), Some(CostError::Endless));
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
    assert_eq!(validator.validate(&deep(levels, json!("x"))).unwrap_err().len(), 1);
    // The schema has four levels for each of the list.
    let levels = MAX_RECURSION / 4 - 1;
    assert!(validator.is_valid(&deep(levels, json!(1))));
    assert!(!validator.is_valid(&deep(levels + 1, json!(1))));
    let violations = validator.validate(&deep(levels + 1, json!(1))).unwrap_err();
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
fn errors_are_not_remembered() {
    let twice = json!({"$ref": "#", "description": "again"});
    let schema = json!({"allOf": [{"properties": {"a": twice}}, {"properties": {"a": twice}}]});
    let schema = BoundedSchema::new(&schema).unwrap();
    assert!(schema.allows(&nested(60)) && !schema.allows_errors(&nested(60)));
    assert!(schema.allows_errors(&nested(10)));
    // Each value is visited once.
    let tree = BoundedSchema::new(&json!({"properties": {"a": {"$ref": "#"}}})).unwrap();
    assert!(tree.allows(&nested(100)) && tree.allows_errors(&nested(100)));
}

#[test]
fn a_cycle_without_progress_ends() {
    let schema = BoundedSchema::new(&json!({"anyOf": [{"$ref": "#"}, {"type": "object"}]})).unwrap();
    assert!(schema.allows(&nested(10)) && schema.allows_errors(&nested(10)));
    // For one value, every order of schemas that refer to each other is a path.
    let all: Vec<Value> = (0..12).map(|number| json!({"$ref": format!("#/$defs/d{number}")})).collect();
    let definitions: Map<String, Value> =
        (0..12).map(|number| (format!("d{number}"), json!({"anyOf": all}))).collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert_eq!(error(&schema), Some(CostError::Large));
}

#[test]
fn nested_searches_for_evaluated_members_are_counted() {
    let mut schema = json!({"properties": {"b": {}}});
    for _ in 0..30 {
        schema = json!({"allOf": [schema], "unevaluatedProperties": {"type": "string"}});
    }
    assert_eq!(error(&schema), Some(CostError::Large));
    // Each value is visited 2^12 times, which multiplies from level to level.
    let mut schema = json!({"properties": {"a": {"$ref": "#"}}});
    for _ in 0..12 {
        schema = json!({"allOf": [schema], "unevaluatedProperties": {"type": "string"}});
    }
    let schema = BoundedSchema::new(&schema).unwrap();
    assert!(schema.allows_errors(&nested(0)) && !schema.allows_errors(&nested(3)));
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

/// Validation takes less than a millisecond at a depth of 60, and 0.5 s if the tag follows the children.
#[test]
fn deep_trees_of_tagged_kinds_are_allowed() {
    let node = |inner: Value, level: usize| {
        let kind = format!("k{}", level % 10);
        json!({"type": kind, "children": [inner, {"type": "k3"}], "body": {"type": "k2"}})
    };
    let tree = |depth: usize| json!({"doc": (0..depth).fold(json!({"type": "k1"}), node)});
    for union in ["oneOf", "anyOf"] {
        for is_required in [true, false] {
            let schema = BoundedSchema::new(&kinds(10, union, is_required)).unwrap();
            assert!(schema.allows(&tree(20)) && schema.allows(&tree(60)), "{union} {is_required}");
            // All branches are described.
            assert!(!schema.allows_errors(&tree(20)));
        }
    }
    let validator = ArgumentValidator::compile("t", &kinds(10, "oneOf", true)).unwrap();
    let wrong = json!({"doc": (0..20).fold(json!({"type": "other"}), node)});
    assert_eq!(validator.validate(&wrong).unwrap_err()[0].to_string(), "it does not match the schema");
}

/// Counts the texts that a validator visits, which are at most the subschemas for one value times the values.
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
    let mut most = 0;
    for round in 0..120_usize {
        let count = 2 + round % 6;
        let union = ["anyOf", "oneOf", "allOf"][round % 3];
        let all: Vec<Value> =
            (0..count).map(|number| json!({"$ref": format!("#/$defs/k{number}")})).collect();
        let kind = |number: usize| {
            let members = shuffled(vec![
                ("text", json!({"type": "string", "format": "probe"})),
                ("children", json!({"items": {union: all}})),
                ("body", json!({"$ref": format!("#/$defs/k{}", round % count)})),
                ("more", json!({union: all})),
            ]);
            (format!("k{number}"), json!({"properties": members}))
        };
        let definitions: Map<String, Value> = (0..count).map(kind).collect();
        let schema = json!({union: all, "$defs": definitions});
        let leaf = json!({"text": "a"});
        let value = (0..7).fold(leaf, |inner, _| {
            let parts = vec![
                ("text", json!("a")),
                ("children", json!([inner, {"text": "b"}])),
                ("body", json!({"text": "c"})),
                ("more", inner.clone()),
            ];
            Value::Object(shuffled(parts))
        });
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
        most = most.max(visited);
        let bounded = BoundedSchema::new(&schema).unwrap();
        assert!(visited <= bounded.size * size_of(&value), "{visited} {schema} {value}");
    }
    assert!(most > 1_000, "{most}");
}

/// What is sent does not replace references by their targets.
#[test]
fn the_output_for_targets_does_not_expand_references() {
    use crate::schema::{Target, limitations, offered_parameters, restore, strict_parameters};

    let towers = [tower(12, 10, named("properties")), tower(12, 10, all("prefixItems"))];
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
