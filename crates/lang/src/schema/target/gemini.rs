//! Gemini: one object with all declarations, without `additionalProperties` and without `format` of strings.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::parameters::{Close, emit_properties, emit_required};
use crate::spec::Tool;
use crate::spec::keywords::{self, ValueKind};

/// Returns the value of a request's `tools`.
pub(super) fn emit_tools<'t>(tools: impl Iterator<Item = &'t Tool>) -> Value {
    let declarations: Vec<Value> = tools.map(emit_declaration).collect();
    json!([{"functionDeclarations": declarations}])
}

fn emit_declaration(tool: &Tool) -> Value {
    json!({
        "name": tool.name.value,
        "description": emit_description(Target::Gemini, tool),
        "parameters": emit_parameters(tool),
    })
}

fn emit_parameters(tool: &Tool) -> Value {
    if tool.arguments.is_empty() {
        return Value::Null;
    }
    let mut properties = emit_properties(tool, Close::No);
    for (argument, schema) in tool.arguments.iter().zip(properties.values_mut()) {
        if let (Some("string"), Some(schema)) = (argument.type_name(), schema.as_object_mut()) {
            schema.shift_remove("format");
        }
        open_schema(schema);
    }
    json!({"type": "object", "properties": properties, "required": emit_required(tool)})
}

/// Removes the keyword `additionalProperties` from a schema and its subschemas, but not a property of that name.
fn open_schema(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.shift_remove("additionalProperties");
            for (key, value) in members.iter_mut() {
                open_inside(key, value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn open_inside(key: &str, value: &mut Value) {
    // Like gptel, skip this keyword but descend into unknown keywords.
    if key == "prefixItems" {
        return;
    }
    let Some(keyword) = keywords::find(key) else { return open_schema(value) };
    match keyword.value_kind {
        ValueKind::Schema | ValueKind::Schemas => open_schema(value),
        ValueKind::Named => {
            value.as_object_mut().into_iter().flat_map(|named| named.values_mut()).for_each(open_schema);
        }
        _ => {}
    }
}
