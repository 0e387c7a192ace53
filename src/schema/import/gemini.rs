//! Gemini: declarations, and schemas in the way of `OpenAPI`.
//!
//! Source: `FunctionDeclaration` and `Schema` of the Gemini API reference: types in upper case, 64-bit integers as
//! strings, `propertyOrdering` for the order that JSON objects have anyway, `format: enum` beside an `enum`.

use super::Envelope;
use crate::spec::{Json, JsonKind, Member};

/// `{"name", "description", "parameters"}`, or `parametersJsonSchema` for a schema that is written as JSON Schema has it.
pub(super) fn read(tool: &Json) -> Envelope<'_> {
    Envelope::read(tool, &["parameters", "parametersJsonSchema", "parameters_json_schema"], &[])
}

/// Keywords whose integers are written as strings.
const COUNTS: [&str; 6] =
    ["minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"];

/// The members of one schema as JSON Schema has them; what is further inside is left as it is.
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

/// The properties that `ordering` names come first, in its order.
fn order(properties: &mut [Member], ordering: &Json) {
    let JsonKind::Array(names) = &ordering.kind else { return };
    let places: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().filter_map(|(place, name)| Some((name.as_str()?, place))).collect();
    properties.sort_by_key(|property| places.get(property.key.as_str()).copied().unwrap_or(names.len()));
}

/// Whether a type is written as Gemini's own enum has it.
pub(super) fn is_upper_case(word: &str) -> bool {
    ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"].contains(&word)
}
