//! OpenAI, strict: the parameters as strict mode takes them, their meaning kept.
//!
//! Every property is required, so an optional one takes null, which [`crate::schema::restore`] reads as absent; every
//! object is closed; what a reference leads to moves into `$defs` of the parameters. Which keywords go and which cannot
//! be said at all is in the target's claims: a tool that has one of the latter is not emitted.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::claims::Fate;
use super::openai::emit_parameters;
use super::place::{Parameters, Place};
use super::{Target, description_for};
use crate::spec::Tool;

/// One element of a request's `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name.value,
            "description": description_for(Target::OpenAiStrict, tool).0,
            "strict": true,
            "parameters": strict_parameters(&emit_parameters(tool)),
        }
    })
}

/// The parameters schema of `openai` as strict mode takes it. Of a schema that strict mode cannot say, the part that it
/// can.
pub fn strict_parameters(parameters: &Value) -> Value {
    let parameters = Parameters::new(parameters);
    let mut strict = Strict::default();
    let mut root = strict.schema(&Place::root(&parameters));
    // A definition may lead to the next: not one in the other, a chain may be as long as a file.
    while let Some((name, target)) = strict.pending.pop_front() {
        let place = Place { schema: target, ..Place::root(&parameters) };
        let schema = strict.schema(&place);
        strict.definitions.insert(name, schema);
    }
    if let Value::Object(members) = &mut root
        && !strict.definitions.is_empty()
    {
        members.insert(String::from("$defs"), Value::Object(strict.definitions));
    }
    root
}

/// What references lead to.
#[derive(Default)]
struct Strict<'v> {
    definitions: Map<String, Value>,
    /// The definition of each reference.
    names: HashMap<String, String>,
    /// How often each base of a name was taken.
    numbers: HashMap<String, usize>,
    /// Definitions that are not written yet.
    pending: VecDeque<(String, &'v Value)>,
}

impl<'v> Strict<'v> {
    fn schema(&mut self, place: &Place<'v>) -> Value {
        let Some(members) = place.members() else { return place.schema.clone() };
        let mut schema = Map::new();
        if let Some(words) = implied_type(members) {
            schema.insert(String::from("type"), words);
        }
        for (keyword, value) in members {
            let fate = Target::OpenAiStrict.claim_of(place, keyword).map(|claim| claim.fate);
            if matches!(fate, Some(Fate::Dropped)) {
                continue;
            }
            match keyword.as_str() {
                // Written anew below, or where a reference leads to it.
                "required" | "additionalProperties" | "$defs" | "definitions" => {}
                "properties" => {
                    let properties = place.children(keyword).into_iter();
                    let named = properties
                        .map(|child| (child.name.unwrap_or_default().to_owned(), self.schema(&child.place)));
                    schema.insert(keyword.clone(), Value::Object(named.collect()));
                }
                "items" => {
                    if let Some(child) = place.children(keyword).first() {
                        schema.insert(keyword.clone(), self.schema(&child.place));
                    }
                }
                "anyOf" | "oneOf" => {
                    let branches = place.children(keyword);
                    let branches = branches.iter().map(|child| self.schema(&child.place)).collect();
                    schema.insert(String::from("anyOf"), Value::Array(branches));
                }
                "$ref" => {
                    schema.insert(keyword.clone(), Value::String(self.reference(place, value)));
                }
                _ => {
                    schema.insert(keyword.clone(), value.clone());
                }
            }
        }
        if place.has_type("object") {
            close(&mut schema);
        }
        if place.is_optional && !place.accepts_null() {
            schema = nullable(schema);
        }
        Value::Object(schema)
    }

    /// The reference to the definition of what `reference` leads to.
    fn reference(&mut self, place: &Place<'v>, reference: &Value) -> String {
        let pointer = reference.as_str().unwrap_or_default();
        if pointer == "#" {
            return pointer.to_owned();
        }
        if let Some(name) = self.names.get(pointer) {
            return format!("#/$defs/{name}");
        }
        let name = self.new_name(pointer);
        self.names.insert(pointer.to_owned(), name.clone());
        // Its place in the order.
        self.definitions.insert(name.clone(), Value::Null);
        self.pending.extend(place.target().map(|target| (name.clone(), target)));
        format!("#/$defs/{name}")
    }

    /// After the last step of the pointer, in plain characters.
    fn new_name(&mut self, pointer: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let base: String = pointer.rsplit('/').next().unwrap_or_default().chars().map(plain).collect();
        let number = self.numbers.entry(base.clone()).or_default();
        loop {
            *number += 1;
            let name = if *number == 1 { base.clone() } else { format!("{base}{number}") };
            if !self.definitions.contains_key(&name) {
                return name;
            }
        }
    }
}

/// Every property required, no other allowed.
fn close(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let names: Vec<Value> =
        properties.as_object().into_iter().flat_map(Map::keys).map(|name| json!(name)).collect();
    schema.insert(String::from("required"), Value::Array(names));
    schema.insert(String::from("additionalProperties"), Value::Bool(false));
}

/// The schema that takes null, too.
fn nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.contains_key("$ref") {
        let wrapped = json!([Value::Object(schema), {"type": "null"}]);
        return Map::from_iter([(String::from("anyOf"), wrapped)]);
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
        return schema;
    }
    if let Some(words) = schema.get_mut("type") {
        let mut list = match words.take() {
            Value::Array(list) => list,
            word => vec![word],
        };
        if !list.iter().any(|word| word == "null") {
            list.push(json!("null"));
        }
        *words = Value::Array(list);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match schema.get("const") {
        Some(Value::Null) | None => schema,
        // The one value or null, in the same place.
        Some(_) => schema
            .into_iter()
            .map(|(keyword, value)| match keyword.as_str() {
                "const" => (String::from("enum"), json!([value, null])),
                _ => (keyword, value),
            })
            .collect(),
    }
}

/// The types of a schema that says only which values it takes.
fn implied_type(members: &Map<String, Value>) -> Option<Value> {
    if members.contains_key("type") {
        return None;
    }
    let values = match (members.get("enum"), members.get("const")) {
        (Some(Value::Array(values)), _) => values.iter().collect(),
        (None, Some(value)) => vec![value],
        (Some(_), _) | (None, None) => return None,
    };
    let mut words: Vec<&str> = Vec::new();
    for value in values {
        let word = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) | Value::Object(_) => return None,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.as_slice() {
        [] => None,
        [word] => Some(json!(word)),
        words => Some(json!(words)),
    }
}
