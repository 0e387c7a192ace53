//! OpenAI strict mode: rewrites the parameters to the strict subset without changing their meaning.
//!
//! Every property is required, so an optional one also accepts null, which [`crate::schema::restore`] removes again.
//! Every object is closed. Targets of references move into `$defs` of the parameters. The target's support table lists
//! the keywords that are dropped and those that strict mode cannot express; a tool with one of the latter is omitted.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::model::{Target, emit_description};
use super::node::{Parameters, SchemaNode};
use super::openai::emit_parameters;
use super::support::SupportLevel;
use crate::spec::Tool;

/// Returns one element of a request's `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name.value,
            "description": emit_description(Target::OpenAiStrict, tool),
            "strict": true,
            "parameters": strict_parameters(&emit_parameters(tool)),
        }
    })
}

/// Converts a parameters schema in its `openai` form to strict mode. Omits the parts that strict mode cannot express.
pub fn strict_parameters(parameters: &Value) -> Value {
    let parameters = Parameters::new(parameters);
    let mut strict = Strict::default();
    let mut root = strict.schema(&SchemaNode::root(&parameters));
    // A loop instead of recursion: a chain of definitions may be as long as the file.
    while let Some((name, target)) = strict.pending.pop_front() {
        let node = SchemaNode { schema: target, ..SchemaNode::root(&parameters) };
        let schema = strict.schema(&node);
        strict.definitions.insert(name, schema);
    }
    if let Value::Object(members) = &mut root
        && !strict.definitions.is_empty()
    {
        members.insert(String::from("$defs"), Value::Object(strict.definitions));
    }
    root
}

/// The definitions that references point to.
#[derive(Default)]
struct Strict<'v> {
    definitions: Map<String, Value>,
    /// The definition name of each reference.
    names: HashMap<String, String>,
    /// Number of uses of each base name.
    numbers: HashMap<String, usize>,
    /// Definitions that are not emitted yet.
    pending: VecDeque<(String, &'v Value)>,
}

impl<'v> Strict<'v> {
    fn schema(&mut self, node: &SchemaNode<'v>) -> Value {
        let Some(members) = node.members() else { return node.schema.clone() };
        let mut schema = Map::new();
        if let Some(words) = implied_type(members) {
            schema.insert(String::from("type"), words);
        }
        for (keyword, value) in members {
            let level = Target::OpenAiStrict.support_for(node, keyword).map(|support| support.level);
            if matches!(level, Some(SupportLevel::Dropped)) {
                continue;
            }
            match keyword.as_str() {
                // Written again below, or in `$defs` if a reference points to it.
                "required" | "additionalProperties" | "$defs" | "definitions" => {}
                "properties" => {
                    let properties = node.children(keyword).into_iter();
                    let named = properties
                        .map(|child| (child.name.unwrap_or_default().to_owned(), self.schema(&child.node)));
                    schema.insert(keyword.clone(), Value::Object(named.collect()));
                }
                "items" => {
                    if let Some(child) = node.children(keyword).first() {
                        schema.insert(keyword.clone(), self.schema(&child.node));
                    }
                }
                "anyOf" | "oneOf" => {
                    let branches = node.children(keyword);
                    let branches = branches.iter().map(|child| self.schema(&child.node)).collect();
                    schema.insert(String::from("anyOf"), Value::Array(branches));
                }
                "$ref" => {
                    schema.insert(keyword.clone(), Value::String(self.reference(node, value)));
                }
                _ => {
                    schema.insert(keyword.clone(), value.clone());
                }
            }
        }
        if node.has_type("object") {
            close(&mut schema);
        }
        if node.is_optional && !node.accepts_null() {
            schema = nullable(schema);
        }
        Value::Object(schema)
    }

    /// Returns the reference to the definition of the target of `reference`.
    fn reference(&mut self, node: &SchemaNode<'v>, reference: &Value) -> String {
        let pointer = reference.as_str().unwrap_or_default();
        if pointer == "#" {
            return pointer.to_owned();
        }
        if let Some(name) = self.names.get(pointer) {
            return format!("#/$defs/{name}");
        }
        let name = self.new_name(pointer);
        self.names.insert(pointer.to_owned(), name.clone());
        // Reserves its position in the order.
        self.definitions.insert(name.clone(), Value::Null);
        self.pending.extend(node.target().map(|target| (name.clone(), target)));
        format!("#/$defs/{name}")
    }

    /// Returns a new name: the last step of the pointer in letters, digits and `_`.
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

/// Makes every property required and forbids all others.
fn close(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let names: Vec<Value> =
        properties.as_object().into_iter().flat_map(Map::keys).map(|name| json!(name)).collect();
    schema.insert(String::from("required"), Value::Array(names));
    schema.insert(String::from("additionalProperties"), Value::Bool(false));
}

/// Returns the schema extended to accept null.
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
        // The value or null, at the same position in the schema.
        Some(_) => schema
            .into_iter()
            .map(|(keyword, value)| match keyword.as_str() {
                "const" => (String::from("enum"), json!([value, null])),
                _ => (keyword, value),
            })
            .collect(),
    }
}

/// Returns the types of the values of a schema that has `enum` or `const` but no `type`.
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
