//! Converts schemas of older drafts to JSON Schema 2020-12, the only draft that the rest of this crate knows.
//!
//! `$schema` selects the draft. What no draft allows but programs send has one meaning and needs no draft: null for a
//! keyword that is not set, `[]` for an empty object (PHP), and a list under `items`.
//!
//! Definitions get names that every reader of references resolves: llama.cpp decodes no `%20`, and others require it.
//!
//! Sources: the drafts at json-schema.org; the release notes of 2019-09 and 2020-12.

use serde_json::{Map, Value};

use crate::schema::pointer::{escape, is_encoded, of_reference, steps, to_reference};
use crate::spec::keywords::{self, ValueKind, is_annotation};
use crate::text::{distinct, portable};

/// Returns `schema` as a schema of 2020-12. References to parts that move are changed.
pub fn to_current_draft(schema: &Value) -> Value {
    Converter { root: schema, draft: Draft::of(schema) }.schema(schema)
}

/// The drafts with different meanings of a keyword, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    /// Draft 4. Draft 3 is read as draft 4.
    Four,
    /// Drafts 6 and 7.
    Seven,
    /// Draft 2019-09 and later.
    Current,
}

impl Draft {
    fn of(schema: &Value) -> Self {
        let declared = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_one_of = |names: [&str; 2]| names.iter().any(|name| declared.contains(name));
        if is_one_of(["draft-03", "draft-04"]) {
            Self::Four
        } else if is_one_of(["draft-06", "draft-07"]) {
            Self::Seven
        } else {
            Self::Current
        }
    }
}

struct Converter<'v> {
    root: &'v Value,
    draft: Draft,
}

impl Converter<'_> {
    fn schema(&self, schema: &Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let is_reference = self.draft <= Draft::Seven && members.get("$ref").is_some_and(Value::is_string);
        let mut converted = Map::new();
        for (keyword, value) in members {
            if !is_unset(keyword, value) && (!is_reference || applies_beside_reference(keyword)) {
                self.member(members, keyword, value, &mut converted);
            }
        }
        Value::Object(converted)
    }

    /// Adds a member of a schema to the converted schema.
    fn member(
        &self,
        members: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        converted: &mut Map<String, Value>,
    ) {
        let is_exclusive = |keyword: &str| members.get(keyword) == Some(&Value::Bool(true));
        let mut add = |keyword: &str, value: Value| {
            converted.insert(keyword.to_owned(), value);
        };
        match (keyword, value) {
            ("$schema", _) => {}
            ("$ref" | "$recursiveRef", Value::String(reference)) => {
                add("$ref", Value::String(self.moved(reference)));
            }
            ("id", Value::String(id)) if self.draft == Draft::Four => add_id(id, add),
            ("$id", Value::String(id)) if self.draft == Draft::Seven => add_id(id, add),
            // An empty list restricts nothing.
            ("items", Value::Array(schemas)) if schemas.is_empty() => {}
            ("items", Value::Array(schemas)) => add("prefixItems", self.each(schemas)),
            // Without a list under `items` it has no effect.
            ("additionalItems", schema) if has_list_of_items(members) => add("items", self.schema(schema)),
            ("additionalItems", _) => {}
            ("minimum", limit) if is_exclusive("exclusiveMinimum") => add("exclusiveMinimum", limit.clone()),
            ("maximum", limit) if is_exclusive("exclusiveMaximum") => add("exclusiveMaximum", limit.clone()),
            // Draft 3 marks each property; the list of names came later.
            ("exclusiveMinimum" | "exclusiveMaximum" | "required", Value::Bool(_)) => {}
            ("dependencies", Value::Object(named)) => self.dependencies(named, add),
            (keyword, value) => {
                if let Some(value) = self.inside(keyword, value) {
                    add(keyword, value);
                }
            }
        }
    }

    /// Returns the value of a keyword with its schemas converted; `None` if it is an empty list instead of an object.
    fn inside(&self, keyword: &str, value: &Value) -> Option<Value> {
        Some(match (keywords::value_kind(keyword), value) {
            (ValueKind::Named, Value::Object(named)) => {
                named.iter().map(|(name, schema)| (name_in(keyword, name), self.schema(schema))).collect()
            }
            (ValueKind::Named, Value::Array(items)) if items.is_empty() => return None,
            (ValueKind::Schemas, Value::Array(schemas)) => self.each(schemas),
            (ValueKind::Schema, Value::Array(items)) if items.is_empty() => return None,
            (ValueKind::Schema, schema) => self.schema(schema),
            _ => value.clone(),
        })
    }

    fn each(&self, schemas: &[Value]) -> Value {
        schemas.iter().map(|schema| self.schema(schema)).collect()
    }

    /// Adds `dependencies` as the two keywords that replaced it.
    fn dependencies(&self, named: &Map<String, Value>, mut add: impl FnMut(&str, Value)) {
        let (required, schemas): (Vec<_>, Vec<_>) = named.iter().partition(|(_, value)| value.is_array());
        let required = required.into_iter().map(|(name, names)| (name.clone(), names.clone()));
        let schemas = schemas.into_iter().map(|(name, schema)| (name.clone(), self.schema(schema)));
        add("dependentRequired", required.collect());
        add("dependentSchemas", schemas.collect());
    }

    /// Returns a reference as a URI fragment, changed if it leads through a list under `items` or a renamed definition.
    fn moved(&self, reference: &str) -> String {
        let Some(pointer) = of_reference(reference) else { return reference.to_owned() };
        let (mut moved, mut value, mut parent) = (String::new(), Some(self.root), String::new());
        for step in steps(&pointer) {
            let has_list = value.and_then(Value::as_object).is_some_and(has_list_of_items);
            moved.push('/');
            moved.push_str(&match step.as_str() {
                "items" if has_list => String::from("prefixItems"),
                "additionalItems" if has_list => String::from("items"),
                step => escape(&name_in(&parent, step)),
            });
            parent.clone_from(&step);
            value = value.and_then(|value| match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                value => value.get(&step),
            });
        }
        if moved == pointer && is_encoded(reference) { reference.to_owned() } else { to_reference(&moved) }
    }
}

/// Adds the URI of a schema, or its name: older drafts write a name as a URI of a fragment.
fn add_id(id: &str, mut add: impl FnMut(&str, Value)) {
    match id.strip_prefix('#') {
        Some("") => {}
        Some(name) => add("$anchor", Value::from(name)),
        None => add("$id", Value::from(id)),
    }
}

/// Returns the name of a schema under a keyword: a definition gets a portable one.
fn name_in(keyword: &str, name: &str) -> String {
    let is_renamed = matches!(keyword, "$defs" | "definitions") && portable(name) != name.replace('.', "_");
    if is_renamed { distinct(&portable(name), name) } else { name.to_owned() }
}

fn has_list_of_items(members: &Map<String, Value>) -> bool {
    members.get("items").is_some_and(Value::is_array)
}

/// Returns whether a keyword is null because it is not set. Some programs emit every keyword.
fn is_unset(keyword: &str, value: &Value) -> bool {
    value.is_null() && keywords::find(keyword).is_some_and(|keyword| keyword.value_kind != ValueKind::Any)
}

/// Returns whether a keyword beside `$ref` is read in draft 7, in which a reference replaces its schema.
fn applies_beside_reference(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "definitions" | "$defs") || is_annotation(keyword)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonschema::Draft as Known;
    use serde_json::json;

    /// Schemas of older drafts with values. The validator for the declared draft gives the expected results.
    #[test]
    fn values_are_valid_under_the_declared_draft() {
        let four = "http://json-schema.org/draft-04/schema#";
        let seven = "http://json-schema.org/draft-07/schema#";
        let later = "https://json-schema.org/draft/2019-09/schema";
        let pair = json!([{"type": "string"}, {"type": "integer"}]);
        let values = [
            json!("a"),
            json!(5),
            json!(6),
            json!(null),
            json!({}),
            json!([]),
            json!(["a", 1]),
            json!(["a", 1, true]),
            json!([1, "a"]),
            json!({"a": 1}),
            json!({"a": 1, "b": "x"}),
            json!({"a": {"a": 5}}),
            json!({"a": ["x", 1], "b": "x"}),
        ];
        for (draft, declared, known, schema) in [
            ("7", seven, Known::Draft7, json!({"type": "array", "items": pair})),
            ("7", seven, Known::Draft7, json!({"type": "array", "items": pair, "additionalItems": false})),
            ("7", seven, Known::Draft7, json!({"items": pair, "additionalItems": {"type": "boolean"}})),
            ("7", seven, Known::Draft7, json!({"items": {}, "additionalItems": false})),
            (
                "7",
                seven,
                Known::Draft7,
                json!({"$ref": "#/definitions/s", "type": "integer", "definitions": {"s": {"type": "string"}}}),
            ),
            (
                "7",
                seven,
                Known::Draft7,
                json!({"properties": {"a": {"items": pair}, "b": {"$ref": "#/properties/a/items/0"}}}),
            ),
            ("7", seven, Known::Draft7, json!({"dependencies": {"a": ["b"]}})),
            ("7", seven, Known::Draft7, json!({"dependencies": {"a": {"required": ["b"]}}})),
            (
                "7",
                seven,
                Known::Draft7,
                json!({"properties": {"a": {"$ref": "#n"}}, "definitions": {"n": {"$id": "#n", "type": "string"}}}),
            ),
            ("7", seven, Known::Draft7, json!({"if": {"type": "string"}, "then": {"const": "b"}})),
            (
                "7",
                seven,
                Known::Draft7,
                json!({"properties": {"items": {"type": "string"}, "a": {"$ref": "#"}}}),
            ),
            ("4", four, Known::Draft4, json!({"type": "integer", "minimum": 5, "exclusiveMinimum": true})),
            ("4", four, Known::Draft4, json!({"type": "integer", "maximum": 5, "exclusiveMaximum": false})),
            (
                "4",
                four,
                Known::Draft4,
                json!({"properties": {"a": {"$ref": "#n"}}, "definitions": {"n": {"id": "#n", "type": "string"}}}),
            ),
            ("2019", later, Known::Draft201909, json!({"items": pair, "additionalItems": false})),
            (
                "2019",
                later,
                Known::Draft201909,
                json!({"properties": {"a": {"$recursiveRef": "#"}}, "type": "object"}),
            ),
            (
                "2019",
                later,
                Known::Draft201909,
                json!({"$ref": "#/$defs/s", "maxLength": 0, "$defs": {"s": {"type": "string"}}}),
            ),
        ] {
            let mut schema = schema;
            schema["$schema"] = json!(declared);
            let old = jsonschema::options().with_draft(known).build(&schema).unwrap();
            let converted = to_current_draft(&schema);
            let new = jsonschema::options().with_draft(Known::Draft202012).build(&converted).unwrap();
            for value in &values {
                assert_eq!(new.is_valid(value), old.is_valid(value), "{draft}: {schema} {converted} {value}");
            }
        }
    }

    #[test]
    fn what_no_draft_allows_is_read_as_it_is_meant() {
        for (schema, expected) in [
            (json!({"type": "object", "properties": []}), json!({"type": "object"})),
            (
                json!({"properties": {"a": {"type": "string", "required": true, "enum": null, "default": null}}}),
                json!({"properties": {"a": {"type": "string", "default": null}}}),
            ),
            (json!({"items": [{"type": "string"}]}), json!({"prefixItems": [{"type": "string"}]})),
            (json!({"type": "array", "items": []}), json!({"type": "array"})),
            (
                json!({"const": {"items": [1]}, "enum": [{"items": [1]}]}),
                json!({"const": {"items": [1]}, "enum": [{"items": [1]}]}),
            ),
            (json!(true), json!(true)),
            (
                json!({"$ref": "#/$defs/My Type", "$defs": {"My Type": {"$ref": "#/$defs/My%20Type/properties/a b"}, "a.B-c_1": {}}}),
                json!({"$ref": "#/$defs/My_Type_66eb2181", "$defs": {"My_Type_66eb2181": {"$ref": "#/$defs/My_Type_66eb2181/properties/a%20b"}, "a.B-c_1": {}}}),
            ),
        ] {
            assert_eq!(to_current_draft(&schema), expected, "{schema}");
        }
    }
}
