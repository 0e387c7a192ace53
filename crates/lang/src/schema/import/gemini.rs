//! Gemini: function declarations and `OpenAPI` schemas.
//!
//! Source: `FunctionDeclaration` and `Schema` of the Gemini API reference. Differences from JSON Schema: upper-case
//! types, 64-bit integers as strings, `propertyOrdering` for the order of properties, `format: enum` together with
//! `enum`.

use super::model::Envelope;
use crate::spec::{Json, JsonKind, Member};

/// Reads `{"name", "description", "parameters"}`, or `parametersJsonSchema` for a standard JSON Schema.
pub(super) fn read(tool: &Json) -> Envelope<'_> {
    Envelope::read(tool, &["parameters", "parametersJsonSchema", "parameters_json_schema"], &[])
}

/// Keywords with integer values that may be written as strings.
const COUNTS: [&str; 6] =
    ["minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"];

/// Converts the members of one schema to JSON Schema. Nested schemas are not changed.
pub(super) fn as_json_schema(members: &mut Vec<Member>) {
    let has_enum = members.iter().any(|member| member.key == "enum");
    members.retain(|member| !(has_enum && member.key == "format" && member.value.as_str() == Some("enum")));
    for member in members.iter_mut() {
        match (&mut member.value.kind, member.key.as_str()) {
            (JsonKind::String(word), "type") if is_upper_case(word) => word.make_ascii_lowercase(),
            (JsonKind::String(digits), key) if COUNTS.contains(&key) => {
                if let Ok(number) = digits.parse::<u64>() {
                    member.value.kind = JsonKind::Number(number.into());
                }
            }
            _ => {}
        }
    }
    if let Some(at) = members.iter().position(|member| member.key == "propertyOrdering") {
        let ordering = members.remove(at).value;
        let properties = members.iter_mut().find(|member| member.key == "properties");
        if let Some(Member { value: Json { kind: JsonKind::Object(properties), .. }, .. }) = properties {
            order(properties, &ordering);
        }
    }
}

/// Sorts the properties by `ordering`; the others follow.
fn order(properties: &mut [Member], ordering: &Json) {
    let JsonKind::Array(names) = &ordering.kind else { return };
    let positions: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().filter_map(|(position, name)| Some((name.as_str()?, position))).collect();
    properties.sort_by_key(|property| positions.get(property.key.as_str()).copied().unwrap_or(names.len()));
}

/// Returns whether a type is spelled as in Gemini's enum.
pub(super) fn is_upper_case(word: &str) -> bool {
    ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"].contains(&word)
}
