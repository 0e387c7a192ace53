//! Schemas of tools in the form of servers that accept less than JSON Schema.
//!
//! In: the definition of a tool in the format of chat completions. Out: the same with a type for each schema, and with all
//! definitions under `$defs`. Arguments are validated by the schema of the tool, not by what is sent.
//!
//! Source: the errors of Moonshot AI's API, which refuses a whole request for one tool (`NousResearch/hermes-agent#14804`).

use serde_json::{Map, Value, json};

/// Maximum nesting of a schema.
const MAX_DEPTH: usize = 64;

/// Keywords that determine which values a schema accepts.
const TYPING: [&str; 5] = ["type", "anyOf", "$ref", "enum", "allOf"];

/// Keywords with one schema, with a list of schemas, and with named schemas.
const ONE: [&str; 3] = ["items", "additionalProperties", "not"];
const LISTS: [&str; 3] = ["anyOf", "allOf", "prefixItems"];
const NAMED: [&str; 3] = ["properties", "$defs", "patternProperties"];

/// Returns a tool whose parameters have a type everywhere.
pub(super) fn with_types(tool: &Value) -> Value {
    let mut typed = tool.clone();
    if let Some(parameters) = typed.pointer_mut("/function/parameters") {
        add_types(parameters, 0);
    }
    typed
}

fn add_types(schema: &mut Value, depth: usize) {
    let Value::Object(members) = schema else {
        // `true` accepts any value.
        if *schema == Value::Bool(true) {
            *schema = json!({ "anyOf": any_value() });
        }
        return;
    };
    if depth > MAX_DEPTH {
        return;
    }
    rename(members, "definitions", "$defs");
    rename(members, "oneOf", "anyOf");
    if let Some(Value::String(reference)) = members.get_mut("$ref")
        && let Some(name) = reference.strip_prefix("#/definitions/")
    {
        *reference = format!("#/$defs/{name}");
    }
    for keyword in ONE {
        // `additionalProperties` is a flag for most servers.
        if let Some(inner) = members.get_mut(keyword).filter(|inner| inner.is_object()) {
            add_types(inner, depth + 1);
        }
    }
    for keyword in LISTS {
        let inner = members.get_mut(keyword).and_then(Value::as_array_mut);
        for inner in inner.into_iter().flatten() {
            add_types(inner, depth + 1);
        }
    }
    for keyword in NAMED {
        let inner = members.get_mut(keyword).and_then(Value::as_object_mut);
        for (_, inner) in inner.into_iter().flatten() {
            add_types(inner, depth + 1);
        }
    }
    // Only objects have properties.
    if members.contains_key("properties") {
        members.entry("type").or_insert_with(|| json!("object"));
    }
    if !TYPING.iter().any(|keyword| members.contains_key(*keyword)) {
        members.insert(String::from("anyOf"), any_value());
    }
}

/// Any value but a list, whose items would need a type again.
fn any_value() -> Value {
    ["string", "number", "boolean", "object", "null"]
        .into_iter()
        .map(|name| json!({ "type": name }))
        .collect()
}

/// Renames a keyword, unless the other one exists.
fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if !members.contains_key(to)
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_gets_a_type_and_definitions_move() {
        let typed = |parameters: Value| {
            with_types(&json!({"type": "function", "function": {"name": "f", "parameters": parameters}}))["function"]
                ["parameters"]
                .take()
        };
        assert_eq!(
            typed(json!({
                "type": "object",
                "properties": {
                    "p": {"$ref": "#/definitions/P"},
                    "any": {"description": "Anything."},
                    "one": {"enum": [1, 2]},
                    "some": {"oneOf": [{"type": "string"}, {}]},
                    "list": {"type": "array", "items": {"properties": {"x": true}}},
                },
                "definitions": {"P": {"type": "string"}},
            })),
            json!({
                "type": "object",
                "properties": {
                    "p": {"$ref": "#/$defs/P"},
                    "any": {"description": "Anything.", "anyOf": any_value()},
                    "one": {"enum": [1, 2]},
                    "some": {"anyOf": [{"type": "string"}, {"anyOf": any_value()}]},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"anyOf": any_value()}}}},
                },
                "$defs": {"P": {"type": "string"}},
            })
        );
    }
}
