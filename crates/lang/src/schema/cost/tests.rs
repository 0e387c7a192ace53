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

#[test]
fn references_that_expand_without_end_are_rejected() {
    let all = |keyword: &'static str| move |schemas: Vec<Value>| json!({keyword: schemas});
    for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
        assert_eq!(error(&tower(12, 10, all(keyword))), Some(CostError::Large), "{keyword}");
    }
    let named = |keyword: &'static str| {
        move |schemas: Vec<Value>| {
            let named: Map<String, Value> = schemas
                .into_iter()
                .enumerate()
                .map(|(index, schema)| (format!("p{index}"), schema))
                .collect();
            json!({keyword: named})
        }
    };
    for keyword in ["properties", "patternProperties", "dependentSchemas", "dependencies"] {
        assert_eq!(error(&tower(12, 10, named(keyword))), Some(CostError::Large), "{keyword}");
    }
    let single = |keywords: [&'static str; 2]| move |schemas: Vec<Value>| json!({keywords[0]: schemas[0], keywords[1]: schemas[1]});
    for keywords in [
        ["if", "then"],
        ["if", "else"],
        ["not", "contains"],
        ["items", "additionalItems"],
        ["propertyNames", "additionalProperties"],
        ["unevaluatedProperties", "unevaluatedItems"],
    ] {
        assert_eq!(error(&tower(40, 2, single(keywords))), Some(CostError::Large), "{keywords:?}");
    }
    assert_eq!(error(&tower(14, 2, all("allOf"))), None);
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
    // Schemas that all refer to each other are small. For one value, every order of them is a path.
    let all: Vec<Value> = (0..14).map(|number| json!({"$ref": format!("#/$defs/d{number}")})).collect();
    let definitions: Map<String, Value> =
        (0..14).map(|number| (format!("d{number}"), json!({"anyOf": all}))).collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert!(!BoundedSchema::new(&schema).unwrap().is_within(100_000, true, &json!(1)));
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
