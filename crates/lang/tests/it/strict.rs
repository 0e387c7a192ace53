//! `openai-strict` preserves the meaning of a spec: every valid value can be expressed under the strict schema, and is
//! restored unchanged.

use deftool_lang::schema::{Arguments, Target, ToolEntry, ToolKind, limitations, restore, strict_parameters};
use deftool_test_support::step;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn valid(schema: &Value, instance: &Value) -> bool {
    let options =
        jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
    options.build(schema).unwrap().is_valid(instance)
}

/// Generates random schemas that strict mode can express, and instances of them.
struct Random {
    rng: fastrand::Rng,
    /// Makes the branches of an `anyOf` distinct.
    tag: usize,
}

const DEFINITIONS: [&str; 2] = ["one", "tree"];

impl Random {
    /// Returns the parameters of a tool. The first argument contains definitions.
    fn parameters(&mut self) -> Value {
        let mut properties = Map::new();
        let mut first = self.object(2);
        first["$defs"] = json!({
            "one": self.schema(0),
            "tree": {
                "type": "object",
                "properties": {
                    "label": {"type": "string"},
                    "kids": {"type": "array", "items": {"$ref": "#/properties/a0/$defs/tree"}},
                    "next": {"$ref": "#/properties/a0/$defs/tree"}
                },
                "required": ["kids"]
            }
        });
        properties.insert(String::from("a0"), first);
        for index in 1..self.rng.usize(1..5) {
            properties.insert(format!("a{index}"), self.schema(3));
        }
        let names: Vec<&String> = properties.keys().collect();
        let required: Vec<&&String> = names.iter().filter(|_| self.rng.bool()).collect();
        json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
    }

    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = match self.rng.usize(0..if depth == 0 { 7 } else { 12 }) {
            0 => json!({"type": "string", "minLength": 1, "title": "T"}),
            1 => json!({"type": "string", "enum": ["a", "b", "c"]}),
            2 => json!({"type": "integer", "minimum": -5, "maximum": 5}),
            3 => json!({"type": "boolean"}),
            4 => json!({"type": ["string", "null"]}),
            5 => json!({"const": 7}),
            6 => json!({"enum": ["x", 1, true]}),
            7 | 8 => self.object(depth),
            9 => {
                json!({"type": "array", "items": self.schema(depth - 1), "maxItems": 3, "uniqueItems": false})
            }
            10 => json!({"$ref": format!("#/properties/a0/$defs/{}", DEFINITIONS[self.rng.usize(0..2)])}),
            _ => self.branches(depth),
        };
        if self.rng.u8(0..4) == 0 && schema.get("$ref").is_none() {
            schema["description"] = json!("Said of it.");
        }
        schema
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut properties = Map::new();
        for index in 0..self.rng.usize(1..4) {
            properties.insert(format!("p{index}"), self.schema(depth.saturating_sub(1)));
        }
        let required: Vec<String> = properties.keys().filter(|_| self.rng.bool()).cloned().collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() || self.rng.bool() {
            schema["required"] = json!(required);
        }
        if self.rng.bool() {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }

    /// Returns a schema with several branches: distinguishable objects and an integer.
    fn branches(&mut self, depth: usize) -> Value {
        let mut branches = vec![json!({"type": "integer"})];
        for _ in 0..2 {
            self.tag += 1;
            let mut branch = self.object(depth - 1);
            branch["properties"]["tag"] = json!({"type": "string", "const": format!("t{}", self.tag)});
            let required = branch["required"].as_array().cloned().unwrap_or_default();
            branch["required"] = required.into_iter().chain([json!("tag")]).collect();
            branches.push(branch);
        }
        let keyword = if self.rng.bool() { "anyOf" } else { "oneOf" };
        json!({keyword: branches})
    }

    /// Returns an instance and its form under the strict schema.
    fn instance(&mut self, root: &Value, schema: &Value, depth: usize) -> (Value, Value) {
        let both = |value: Value| (value.clone(), value);
        if let Some(reference) = schema.get("$ref") {
            let target = root.pointer(reference.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
            return self.instance(root, target, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                // End the tree at this depth.
                let null = branches.iter().find(|branch| depth > 6 && branch["type"] == "null");
                let branch = null.unwrap_or(&branches[self.rng.usize(0..branches.len())]);
                return self.instance(root, branch, depth + 1);
            }
        }
        if let Some(value) = schema.get("const") {
            return both(value.clone());
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return both(values[self.rng.usize(0..values.len())].clone());
        }
        let word = match &schema["type"] {
            Value::Array(words) => words[self.rng.usize(0..words.len())].clone(),
            word => word.clone(),
        };
        match word.as_str().unwrap() {
            "string" => {
                both(json!((0..self.rng.usize(1..4)).map(|_| self.rng.alphabetic()).collect::<String>()))
            }
            "integer" => both(json!(self.rng.i32(-5..6))),
            "boolean" => both(json!(self.rng.bool())),
            "null" => both(Value::Null),
            "array" => {
                let count = if depth > 6 { 0 } else { self.rng.usize(0..3) };
                (0..count)
                    .map(|_| self.instance(root, &schema["items"], depth + 1))
                    .unzip::<_, _, Vec<_>, Vec<_>>()
                    .into_values()
            }
            "object" => {
                let (mut meant, mut written) = (Map::new(), Map::new());
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let required =
                        schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
                    // For a property that accepts null, absent and null have the same form.
                    let may_lack = !required && !accepts_null(root, property);
                    if may_lack && (depth > 6 || self.rng.bool()) {
                        written.insert(name.clone(), Value::Null);
                        continue;
                    }
                    let (value, strict) = self.instance(root, property, depth + 1);
                    meant.insert(name.clone(), value);
                    written.insert(name.clone(), strict);
                }
                (Value::Object(meant), Value::Object(written))
            }
            other => panic!("{other}"),
        }
    }
}

trait IntoValues {
    fn into_values(self) -> (Value, Value);
}

impl IntoValues for (Vec<Value>, Vec<Value>) {
    fn into_values(self) -> (Value, Value) {
        (Value::Array(self.0), Value::Array(self.1))
    }
}

fn accepts_null(root: &Value, schema: &Value) -> bool {
    // Uses a validator of the schema inside its root.
    let mut whole = root.clone();
    whole["required"] = json!(["probe"]);
    whole["properties"]["probe"] = schema.clone();
    valid(&whole, &json!({"probe": null}))
}

/// Asserts that every object is closed, every property is required, and only keywords of the subset occur.
fn assert_subset(schema: &Value) {
    let allowed = [
        "type",
        "description",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "maxItems",
        "minItems",
        "pattern",
        "format",
    ];
    for (keyword, value) in schema.as_object().unwrap() {
        assert!(allowed.contains(&keyword.as_str()), "{keyword} in {schema}");
        match keyword.as_str() {
            "properties" | "$defs" => value.as_object().unwrap().values().for_each(assert_subset),
            "items" => assert_subset(value),
            "anyOf" => value.as_array().unwrap().iter().for_each(assert_subset),
            _ => {}
        }
    }
    if schema["type"] == "object"
        || schema["type"].as_array().is_some_and(|words| words.contains(&json!("object")))
    {
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(schema["required"], json!(names));
        assert_eq!(schema["additionalProperties"], false);
    }
    let says = ["type", "anyOf", "$ref"];
    assert!(says.iter().any(|keyword| schema.get(*keyword).is_some()), "no type: {schema}");
}

/// Returns the schema without the constraints that strict mode does not support.
fn without_dropped(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .filter(|(keyword, _)| !matches!(keyword.as_str(), "minLength" | "uniqueItems" | "title"))
            .map(|(keyword, value)| (keyword.clone(), without_dropped(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_dropped).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120 / step(3) as u32))]

    #[test]
    fn values_survive_the_round_trip(seed in any::<u64>()) {
        let mut random = Random { rng: fastrand::Rng::with_seed(seed), tag: 0 };
        let parameters = random.parameters();
        let refused = limitations(Target::OpenAiStrict, &parameters).into_iter().find(|limitation| {
            limitation.support.level == deftool_lang::schema::support::SupportLevel::Refused
        });
        prop_assert!(refused.is_none(), "{refused:?} in {parameters}");
        let strict = strict_parameters(&parameters);
        assert_subset(&strict);
        for _ in 0..8 {
            let (meant, written) = random.instance(&parameters, &parameters, 0);
            prop_assert!(valid(&parameters, &meant), "bug in the test: {meant} under {parameters}");
            prop_assert!(valid(&strict, &written), "{written} is not valid under {strict} of {parameters}");
            let mut restored = written.clone();
            restore(&parameters, &mut restored);
            prop_assert_eq!(&restored, &meant, "{} was restored differently, under {}", written, parameters);
        }
    }

    #[test]
    fn restored_strict_values_are_valid_under_the_spec(seed in any::<u64>()) {
        let mut random = Random { rng: fastrand::Rng::with_seed(seed), tag: 0 };
        let parameters = random.parameters();
        let strict = strict_parameters(&parameters);
        let loose = without_dropped(&parameters);
        for _ in 0..8 {
            let (written, _) = random.instance(&strict, &strict, 0);
            prop_assert!(valid(&strict, &written), "the test errs: {written} under {strict}");
            let mut restored = written.clone();
            restore(&parameters, &mut restored);
            prop_assert!(valid(&loose, &restored), "{written} came back as {restored}, under {parameters}");
        }
    }
}

#[test]
fn a_strict_entry_removes_nulls_before_validation() {
    let definition = json!({"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 2},
            "limit": {"type": "integer"},
            "in": {"type": "array", "items": {"type": "object", "properties": {"box": {"type": "string"}, "tag": {"type": ["string", "null"]}}}}
        },
        "required": ["query"],
        "additionalProperties": false
    }}});
    let entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap().into_strict();
    assert_eq!(entry.definition["function"]["strict"], true);
    assert_eq!(entry.definition["function"]["parameters"]["required"], json!(["query", "limit", "in"]));
    let written = json!({"query": "tea", "limit": null, "in": [{"box": null, "tag": null}]});
    assert!(entry.validator.is_valid(&written));
    let arguments = |value: Value| Arguments::try_from(value).unwrap();
    assert_eq!(*entry.accept(arguments(written)).unwrap(), json!({"query": "tea", "in": [{"tag": null}]}));
    let (_, violations) =
        entry.accept(arguments(json!({"query": "t", "limit": null, "in": null}))).unwrap_err();
    assert_eq!(violations.len(), 1, "a constraint that was left out is still kept to: {violations:?}");
    assert!(entry.accept(arguments(json!({"query": null}))).is_err(), "a required property is never absent");
}

/// A schema without findings round-trips, even through a long chain of references.
#[test]
fn removes_nulls_at_the_end_of_a_long_chain() {
    let mut definitions = Map::new();
    for number in 0..200 {
        definitions
            .insert(format!("d{number}"), json!({"$ref": format!("#/properties/%78/$defs/d{}", number + 1)}));
    }
    let end = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": []});
    definitions.insert(String::from("d200"), end);
    let reference = json!({"$ref": "#/properties/x/$defs/d0"});
    let parameters = json!({"type": "object", "required": ["x", "y", "z"], "properties": {
        "x": {"$ref": "#/properties/x/$defs/d0", "$defs": definitions},
        "y": {"type": "array", "items": reference},
        "z": {"anyOf": [{"type": "string"}, reference]}
    }});
    assert!(limitations(Target::OpenAiStrict, &parameters).is_empty());
    let absent = json!({"n": null});
    let mut arguments = json!({"x": absent, "y": [absent], "z": absent});
    assert!(valid(&strict_parameters(&parameters), &arguments));
    restore(&parameters, &mut arguments);
    assert_eq!(arguments, json!({"x": {}, "y": [{}], "z": {}}));
}

#[test]
fn malicious_schemas_terminate() {
    let branches: Vec<Value> = (0..10).map(|_| json!({"$ref": "#/properties/x"})).collect();
    let parameters = json!({"type": "object", "properties": {"x": {"anyOf": branches}}});
    for target in Target::ALL {
        limitations(target, &parameters);
    }
    strict_parameters(&parameters);
    let mut arguments = json!({"x": null});
    restore(&parameters, &mut arguments);
}

#[test]
fn malicious_values_terminate() {
    // Nested branches that differ only in the last of many properties.
    let parameters = json!({"type": "object", "properties": {"x": {"anyOf": [
        {"type": "object", "properties": {"n": {"$ref": "#/properties/x"}, "k": {"const": 1}}},
        {"type": "object", "properties": {"n": {"$ref": "#/properties/x"}, "k": {"const": 2}}},
        {"$ref": "#/properties/x"}
    ]}}});
    let mut value = json!({"k": 2});
    for _ in 0..60 {
        value = json!({"n": value, "k": 2});
    }
    let mut arguments = json!({"x": value});
    restore(&parameters, &mut arguments);
    assert!(arguments["x"].is_object());
}

/// A null is removed only if the property is optional, in the branch that the value matches.
#[test]
fn removes_only_nulls_that_mean_absent() {
    let required = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let branches = json!({"type": "object", "properties": {"v": {"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "integer"}}}
    ]}}});
    for (parameters, written, meant) in [
        (&required, json!({"a": null}), json!({"a": null})),
        (&branches, json!({"v": {"a": null}}), json!({"v": {}})),
        (&branches, json!({"v": {"b": "x", "c": null}}), json!({"v": {"b": "x"}})),
        (&branches, json!({"v": null}), json!({})),
    ] {
        let mut arguments = written.clone();
        restore(parameters, &mut arguments);
        assert_eq!(arguments, meant, "{written}");
    }
}

/// Each schema reaches a limit of strict mode, and exceeds it with one more.
#[test]
fn the_limits_of_strict_mode_are_exact() {
    use deftool_lang::schema::support::SupportLevel;

    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let one = object(json!({"a": {"type": "null"}}));
    let levels = |count| (1..count).fold(one.clone(), |inner, _| object(json!({ "a": inner })));
    let properties = |count| {
        let named = (0..count).map(|number| (format!("{number:04}"), json!({"type": "null"})));
        object(Value::Object(named.collect()))
    };
    let values = |count| object(json!({"a": {"enum": (0..count).collect::<Vec<usize>>()}}));
    let characters = |count: usize| object(json!({"a": {"const": "x".repeat(count - 1)}}));
    let schemas: [(&dyn Fn(usize) -> Value, usize); 4] =
        [(&levels, 10), (&properties, 5_000), (&values, 1_000), (&characters, 120_000)];
    for (schema, limit) in schemas {
        for (count, expected) in [(limit, 0), (limit + 1, 1)] {
            let limitations = limitations(Target::OpenAiStrict, &schema(count));
            let refused =
                limitations.iter().filter(|found| found.support.level == SupportLevel::Refused).count();
            assert_eq!(refused, expected, "{count} of {limit}");
        }
    }
}
