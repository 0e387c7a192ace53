//! Random definitions with every keyword of a spec, arbitrary names and arbitrary data.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

/// Keywords that the schemas of a format may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// `additionalProperties`, `format` and types in arrays.
    pub(super) is_json_schema: bool,
}

fn key() -> impl Strategy<Value = String> {
    let odd = "type name optional required properties enum null false t nil $ref $defs items : :type description: a\u{20}b";
    let odd: Vec<String> = odd.split(' ').map(str::to_owned).collect();
    prop_oneof![
        4 => "[a-z_]{1,8}".prop_map(|name| name),
        1 => prop::sample::select(odd),
        1 => prop::collection::vec(any::<char>(), 1..6).prop_map(|name| name.into_iter().collect::<String>()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ -~\n\té(]{0,120}".prop_map(|text| text),
        prop::collection::vec(any::<char>(), 0..6).prop_map(|text| text.into_iter().collect::<String>()),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("JSON has no other", Number::from_f64).prop_map(Value::Number),
        prop::sample::select(vec![0.0, -0.0, 1.0, 1e16]).prop_map(Value::from),
    ]
}

fn data() -> impl Strategy<Value = Value> {
    let atom = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        text().prop_map(Value::String),
        prop::sample::select(vec!["string", "t", "nil", ":null"]).prop_map(Value::from),
    ];
    atom.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object(members: Vec<Option<(&str, Value)>>) -> Value {
    Value::Object(members.into_iter().flatten().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn leaf() -> impl Strategy<Value = Value> {
    let annotations = (
        prop::option::of(text().prop_map(|text| ("description", Value::String(text)))),
        prop::option::of(data().prop_map(|value| ("default", value))),
        prop::option::of(data().prop_map(|value| ("examples", json!([value])))),
    );
    let kind = prop_oneof![
        Just(vec![Some(("type", json!("string")))]),
        (0_u64..5, any::<bool>()).prop_map(|(least, has_most)| vec![
            Some(("type", json!("string"))),
            Some(("minLength", json!(least))),
            has_most.then(|| ("maxLength", json!(least + 3))),
        ]),
        prop::collection::btree_set(text(), 1..4)
            .prop_map(|words| vec![Some(("type", json!("string"))), Some(("enum", json!(words)))]),
        prop::collection::vec(data(), 1..4).prop_map(|values| vec![Some(("enum", json!(values)))]),
        data().prop_map(|value| vec![Some(("const", value))]),
        number().prop_map(|least| vec![Some(("type", json!("number"))), Some(("minimum", least))]),
        Just(vec![Some(("type", json!("integer")))]),
        Just(vec![Some(("type", json!("boolean")))]),
        Just(vec![Some(("type", json!("null")))]),
        Just(vec![]),
    ];
    // Annotations come before or after the other keywords.
    (kind, annotations, any::<bool>()).prop_map(|(mut kind, (description, default, examples), before)| {
        if before {
            kind.splice(0..0, [description]);
            kind.extend([default, examples]);
        } else {
            kind.extend([default, description]);
        }
        object(kind)
    })
}

/// Returns a schema in the format.
pub(super) fn schema(dialect: Dialect) -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 30, 4, move |inner| {
        let items = (inner.clone(), prop::option::of(0_u64..3));
        let some = || prop::collection::vec(inner.clone(), 1..3);
        let anything = prop_oneof![inner.clone(), any::<bool>().prop_map(Value::Bool)];
        let more = if dialect.is_json_schema {
            prop_oneof![
                anything.clone().prop_map(|inner| json!({"type": "object", "additionalProperties": inner})),
                anything.prop_map(|inner| json!({"not": inner, "type": ["string", "null"]})),
                some().prop_map(|all| json!({"allOf": all, "$comment": ""})),
                (key(), inner.clone()).prop_map(|(key, inner)| {
                    json!({"type": "object", "patternProperties": {(key): inner}, "propertyNames": {}})
                }),
                inner.clone().prop_map(|inner| json!({"if": inner, "then": true, "$defs": {"a": {}}})),
                Just(json!({"type": "string", "format": "date-time", "pattern": "^\\d+\\.\"$"})),
                Just(json!({"$ref": "#/properties/a", "description": "kept"})),
            ]
            .boxed()
        } else {
            Just(json!({"type": "string", "nullable": true})).boxed()
        };
        prop_oneof![
            items.prop_map(|(items, least)| object(vec![
                Some(("type", json!("array"))),
                Some(("items", items)),
                least.map(|least| ("minItems", json!(least))),
            ])),
            some().prop_map(|any| json!({"anyOf": any})),
            properties(inner).prop_map(|(properties, required, _)| {
                json!({"type": "object", "properties": properties, "required": required})
            }),
            Just(json!({"type": "object", "properties": {}})),
            more,
        ]
    })
}

type Properties = (Map<String, Value>, Vec<String>, bool);

/// Generates properties and which of them are required.
fn properties(schema: impl Strategy<Value = Value>) -> impl Strategy<Value = Properties> {
    (prop::collection::vec((key(), schema, any::<bool>()), 0..5), any::<bool>()).prop_map(|(named, flag)| {
        let mut required: Vec<String> =
            named.iter().filter(|(.., is_required)| *is_required).map(|(key, ..)| key.clone()).collect();
        let mut seen = std::collections::HashSet::new();
        required.retain(|name| seen.insert(name.clone()));
        (named.into_iter().map(|(key, schema, _)| (key, schema)).collect(), required, flag)
    })
}

/// A name, a description and the schema of the parameters.
pub(super) fn definition(dialect: Dialect) -> impl Strategy<Value = (String, String, Value)> {
    let parameters = properties(schema(dialect)).prop_map(|(properties, required, is_reversed)| {
        let mut required: Vec<Value> = required.into_iter().map(Value::String).collect();
        if is_reversed {
            required.reverse();
        }
        json!({"type": "object", "properties": properties, "required": required})
    });
    ("[A-Za-z0-9_-]{1,64}", text(), parameters)
}
