//! Gemini: one object with all declarations, and neither `additionalProperties` nor `format` of strings.

use serde_json::{Value, json};

use super::parameters::{Close, emit_properties, emit_required};
use super::{Target, description_for};
use crate::spec::Tool;

/// The whole of a request's `tools`.
pub(super) fn emit_tools<'t>(tools: impl Iterator<Item = &'t Tool>) -> Value {
    let declarations: Vec<Value> = tools.map(emit_declaration).collect();
    json!([{"functionDeclarations": declarations}])
}

fn emit_declaration(tool: &Tool) -> Value {
    json!({
        "name": tool.name.value,
        "description": description_for(Target::Gemini, tool).0,
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

/// Removes `additionalProperties` from a schema and every schema in it. A property may have that name.
fn open_schema(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.shift_remove("additionalProperties");
            for (key, value) in members.iter_mut() {
                match (key.as_str(), value) {
                    ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                        named.values_mut().for_each(open_schema);
                    }
                    ("default" | "const" | "enum" | "examples", _) => {}
                    (_, value) => open_schema(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
