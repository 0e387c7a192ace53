//! The parameters that are sent to a model API for a schema of arguments.
//!
//! OpenAI requires an object at the top, without `anyOf`, `oneOf`, `allOf`, `enum` and `not`, and `items` in each array;
//! Anthropic rejects the same alternatives. One such tool makes every request fail. What is sent describes the same
//! calls as far as the APIs allow it; calls are validated against the complete schema.
//!
//! Sources: makenotion/notion-mcp-server#340 (2026-08-05), zereight/gitlab-mcp#286 (2025-11-19),
//! spacelift-io/spacectl#402 (2026-03-18).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::schema::pointer::resolve;
use crate::schema::target::accepts_type;
use crate::schema::walk::values_in;
use crate::spec::keywords::{self, ValueKind};

/// Keywords at the top that are not sent: those that APIs reject, and those that are replaced.
const REPLACED: [&str; 11] =
    ["$schema", "$ref", "type", "properties", "required", "anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// Returns the parameters to send for `schema`, a schema of 2020-12 of limited depth; `None` if it accepts no object.
///
/// The properties of alternatives at the top become optional properties.
pub fn offered_parameters(schema: &Value) -> Option<Value> {
    if !accepts_type(schema, schema, "object") {
        return None;
    }
    let mut reader = Reader::new(schema);
    let required = reader.read(schema, false);
    let mut parameters = Map::new();
    parameters.insert(String::from("type"), json!("object"));
    let properties = reader.properties.into_iter().map(|(name, found)| (name.to_owned(), found.merged()));
    parameters.insert(String::from("properties"), properties.collect());
    if !required.is_empty() {
        parameters.insert(String::from("required"), json!(required));
    }
    for (keyword, value) in referred(schema).into_iter().filter_map(Value::as_object).flatten() {
        if !REPLACED.contains(&keyword.as_str()) {
            parameters.entry(keyword).or_insert_with(|| value.clone());
        }
    }
    define_lost_targets(schema, &mut parameters);
    let mut parameters = Value::Object(parameters);
    add_items(&mut parameters);
    Some(parameters)
}

/// Returns `schema` and the schemas that it refers to at the top, one after the other.
fn referred(schema: &Value) -> Vec<&Value> {
    let mut chain = vec![schema];
    while let Some(next) = chain
        .last()
        .and_then(|last| resolve(schema, last.get("$ref")?))
        .filter(|next| !chain.iter().any(|known| std::ptr::eq(*known, *next)))
    {
        chain.push(next);
    }
    chain
}

/// The schemas of a property.
#[derive(Default)]
struct Property<'v> {
    /// The one that applies to all calls.
    own: Option<&'v Value>,
    /// Those of the alternatives.
    variants: Vec<&'v Value>,
}

impl Property<'_> {
    fn merged(self) -> Value {
        match (self.own, self.variants.as_slice()) {
            (Some(Value::Object(own)), [_, ..]) if !own.contains_key("anyOf") => {
                let mut merged = own.clone();
                merged.insert(String::from("anyOf"), json!(self.variants));
                Value::Object(merged)
            }
            (Some(own), _) => own.clone(),
            (None, [only]) => Value::clone(only),
            (None, variants) => json!({"anyOf": variants}),
        }
    }
}

/// Reads the properties of a schema and of its alternatives. Each schema is read once.
struct Reader<'v> {
    root: &'v Value,
    /// In the order in which they were found.
    properties: Vec<(&'v str, Property<'v>)>,
    /// The position of each property.
    positions: HashMap<&'v str, usize>,
    /// The properties of alternatives, as text.
    variants: HashSet<(&'v str, String)>,
    /// The names of the required properties of the schemas that were read, by address.
    required: HashMap<*const Value, Vec<&'v str>>,
}

impl<'v> Reader<'v> {
    fn new(root: &'v Value) -> Self {
        let (positions, variants, required) = (HashMap::new(), HashSet::new(), HashMap::new());
        Self { root, properties: Vec::new(), positions, variants, required }
    }

    /// Returns the names of the required properties. `is_variant`: the schema is one of several alternatives.
    fn read(&mut self, schema: &'v Value, is_variant: bool) -> Vec<&'v str> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.required.get(&address) {
            return known.clone();
        }
        self.required.insert(address, Vec::new());
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.add(name, property, is_variant);
        }
        let mut required = list(schema, "required").filter_map(Value::as_str).collect::<Vec<_>>();
        let target = schema.get("$ref").and_then(|reference| resolve(self.root, reference));
        for part in target.into_iter().chain(list(schema, "allOf")) {
            required.extend(self.read(part, is_variant));
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut common: Option<Vec<&str>> = None;
            for variant in list(schema, keyword).filter(|variant| accepts_type(self.root, variant, "object"))
            {
                let names = self.read(variant, true);
                common = Some(match common {
                    None => names,
                    Some(mut common) => {
                        let names: HashSet<&str> = names.into_iter().collect();
                        common.retain(|name| names.contains(name));
                        common
                    }
                });
            }
            required.extend(common.unwrap_or_default());
        }
        let mut seen = HashSet::new();
        required.retain(|name| seen.insert(*name));
        self.required.insert(address, required.clone());
        required
    }

    fn add(&mut self, name: &'v str, property: &'v Value, is_variant: bool) {
        let at = *self.positions.entry(name).or_insert_with(|| {
            self.properties.push((name, Property::default()));
            self.properties.len() - 1
        });
        let Some((_, found)) = self.properties.get_mut(at) else { return };
        if !is_variant {
            found.own.get_or_insert(property);
        } else if self.variants.insert((name, property.to_string())) {
            found.variants.push(property);
        }
    }
}

/// Returns the items of the list under a keyword.
fn list<'v>(schema: &'v Value, keyword: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// Moves the targets of references that are not sent, such as those inside an `anyOf` at the top, to `$defs`.
fn define_lost_targets(schema: &Value, parameters: &mut Map<String, Value>) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let sent = Value::Object(parameters.clone());
        let is_lost = |reference: &&str| {
            let reference = Value::from(*reference);
            resolve(&sent, &reference).is_none() && resolve(schema, &reference).is_some()
        };
        let lost: BTreeSet<&str> = references(&sent).into_iter().filter(is_lost).collect();
        if lost.is_empty() {
            return;
        }
        let definitions = parameters.entry("$defs").or_insert_with(|| json!({}));
        let Value::Object(definitions) = definitions else { return };
        for reference in lost {
            let Some(target) = resolve(schema, &Value::from(reference)) else { continue };
            if names.contains_key(reference) {
                continue;
            }
            let mut name = format!("moved{}", names.len() + 1);
            while definitions.contains_key(&name) {
                name.push('_');
            }
            names.insert(reference.to_owned(), format!("#/$defs/{name}"));
            definitions.insert(name, target.clone());
        }
        parameters.values_mut().for_each(|value| replace_references(value, &names));
    }
}

/// Returns the references in a schema.
fn references(schema: &Value) -> Vec<&str> {
    values_in(schema).filter_map(|value| value.get("$ref")?.as_str()).collect()
}

fn replace_references(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = names.get(reference)
            {
                name.clone_into(reference);
            }
            members.values_mut().for_each(|member| replace_references(member, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_references(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds `items` to each array without them. `{}` allows any item.
fn add_items(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    let is_array = match members.get("type") {
        Some(Value::String(word)) => word == "array",
        Some(Value::Array(words)) => words.iter().any(|word| word == "array"),
        Some(_) | None => false,
    };
    for (keyword, value) in members.iter_mut() {
        match (keywords::value_kind(keyword), value) {
            (ValueKind::Named, Value::Object(named)) => named.values_mut().for_each(add_items),
            (ValueKind::Schemas, Value::Array(schemas)) => schemas.iter_mut().for_each(add_items),
            (ValueKind::Schema, schema) => add_items(schema),
            _ => {}
        }
    }
    if is_array {
        members.entry("items").or_insert_with(|| json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schemas, and what is sent.
    #[test]
    fn what_is_sent_is_an_object_that_apis_accept() {
        let text = json!({"type": "string"});
        let number = json!({"type": "integer"});
        for (schema, sent) in [
            (json!({}), json!({"type": "object", "properties": {}})),
            (json!(true), json!({"type": "object", "properties": {}})),
            (json!({"type": ["object", "null"]}), json!({"type": "object", "properties": {}})),
            (
                json!({"$schema": "x", "type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": false}),
                json!({"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": false}),
            ),
            (
                json!({"properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"], "prefixItems": [{"type": "array"}]}}}),
                json!({"type": "object", "properties": {
                    "a": {"type": "array", "items": {}},
                    "b": {"type": ["array", "null"], "prefixItems": [{"type": "array", "items": {}}], "items": {}}
                }}),
            ),
            // One of several members is required.
            (
                json!({"type": "object", "properties": {"a": text, "b": text}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"type": "object", "properties": {"a": text, "b": text}}),
            ),
            (
                json!({"oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "x"}, "a": text}, "required": ["kind", "a"]},
                    {"type": "object", "properties": {"kind": {"const": "y"}, "a": text, "b": number}, "required": ["kind"]},
                    {"type": "null"}
                ]}),
                json!({"type": "object", "properties": {"kind": {"anyOf": [{"const": "x"}, {"const": "y"}]}, "a": text, "b": number}, "required": ["kind"]}),
            ),
            (
                json!({"properties": {"kind": text}, "anyOf": [{"properties": {"kind": {"const": "x"}}}, {"properties": {"kind": {"const": "y"}}}]}),
                json!({"type": "object", "properties": {"kind": {"type": "string", "anyOf": [{"const": "x"}, {"const": "y"}]}}}),
            ),
            (
                json!({"allOf": [{"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": number}, "required": ["b"]}], "not": {"required": ["c"]}}),
                json!({"type": "object", "properties": {"a": text, "b": number}, "required": ["a", "b"]}),
            ),
            (
                json!({"$ref": "#/definitions/Args", "definitions": {"Args": {"type": "object", "properties": {"a": text}, "description": "Some."}}}),
                json!({"type": "object", "properties": {"a": text}, "definitions": {"Args": {"type": "object", "properties": {"a": text}, "description": "Some."}}, "description": "Some."}),
            ),
            // A reference into a part that is not sent.
            (
                json!({"anyOf": [{"properties": {"a": {"properties": {"a": {"$ref": "#/anyOf/0/properties/a"}}}}}]}),
                json!({"type": "object", "properties": {"a": {"properties": {"a": {"$ref": "#/$defs/moved1"}}}}, "$defs": {"moved1": {"properties": {"a": {"$ref": "#/$defs/moved1"}}}}}),
            ),
            // A schema that contains itself at the top.
            (
                json!({"anyOf": [{"$ref": "#"}, {"properties": {"a": text}}]}),
                json!({"type": "object", "properties": {"a": text}}),
            ),
        ] {
            assert_eq!(offered_parameters(&schema), Some(sent), "{schema}");
        }
        for schema in [
            json!({"type": "string"}),
            json!(false),
            json!({"enum": ["a"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
            json!({"$ref": "#/$defs/s", "$defs": {"s": {"type": "string"}}}),
        ] {
            assert_eq!(offered_parameters(&schema), None, "{schema}");
        }
    }
}
