//! Conversion of JSON Schemas to Luau types.

use std::fmt::Write;

use deftool_lang::spec::{Json, JsonKind, Member};

/// Maximum depth of a schema. Deeper schemas become `any`.
const MAX_DEPTH: usize = 12;
/// Maximum number of enum values or properties to include: Luau accepts at most 1,000 parts of a type.
const MAX_PARTS: usize = 100;

/// Returns the type of the values that a schema describes.
pub(super) fn luau_type(schema: &[Member]) -> String {
    // Luau also limits the total number of parts of a type.
    let mut left = 4 * MAX_PARTS;
    of_members(schema, 0, &mut left)
}

/// Returns whether a type needs no alias.
pub(super) fn is_simple(written: &str) -> bool {
    matches!(
        written,
        "any" | "string" | "number" | "boolean" | "{ any }" | "{ string }" | "{ number }" | "{ boolean }"
    )
}

fn of_members(schema: &[Member], depth: usize, left: &mut usize) -> String {
    if depth > MAX_DEPTH || *left == 0 {
        return String::from("any");
    }
    *left -= 1;
    let get = |key: &str| schema.iter().find(|member| member.key == key).map(|member| &member.value);
    if let Some(value) = get("const") {
        return literal(value).unwrap_or_else(|| plain_type(value));
    }
    if let Some(JsonKind::Array(values)) = get("enum").map(|value| &value.kind) {
        return enum_type(values, left);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(JsonKind::Array(schemas)) = get(key).map(|value| &value.kind) {
            return union(schemas.iter().map(|schema| of_value(schema, depth + 1, left)).collect());
        }
    }
    match get("type").map(|value| &value.kind) {
        Some(JsonKind::String(name)) => of_type(name, schema, depth, left),
        Some(JsonKind::Array(names)) => union(
            names.iter().filter_map(Json::as_str).map(|name| of_type(name, schema, depth, left)).collect(),
        ),
        Some(JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::Object(_)) | None => {
            String::from("any")
        }
    }
}

fn of_value(schema: &Json, depth: usize, left: &mut usize) -> String {
    match &schema.kind {
        JsonKind::Object(members) => of_members(members, depth, left),
        _ => String::from("any"),
    }
}

fn of_type(name: &str, schema: &[Member], depth: usize, left: &mut usize) -> String {
    let get = |key: &str| schema.iter().find(|member| member.key == key).map(|member| &member.value);
    match name {
        "string" | "boolean" => name.to_owned(),
        "number" | "integer" => String::from("number"),
        "array" => {
            let items = get("items").filter(|_| get("prefixItems").is_none());
            let items = items.map_or_else(|| String::from("any"), |items| of_value(items, depth + 1, left));
            format!("{{ {items} }}")
        }
        "object" => object(schema, depth, left),
        // JSON's null is `json.null`, which has no Luau type.
        _ => String::from("any"),
    }
}

fn object(schema: &[Member], depth: usize, left: &mut usize) -> String {
    let get = |key: &str| schema.iter().find(|member| member.key == key).map(|member| &member.value);
    let properties = match get("properties").map(|value| &value.kind) {
        Some(JsonKind::Object(properties)) if properties.len() <= MAX_PARTS => properties.as_slice(),
        Some(_) | None => return String::from("{ [string]: any }"),
    };
    let required: Vec<&str> = match get("required").map(|value| &value.kind) {
        Some(JsonKind::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    let mut written = String::from("{ ");
    // Further properties are included only if the schema allows them explicitly.
    let has_others = match get("additionalProperties").map(|value| &value.kind) {
        Some(JsonKind::Object(_) | JsonKind::Bool(true)) => true,
        Some(_) | None => get("patternProperties").is_some() || properties.is_empty(),
    };
    if has_others {
        written.push_str("[string]: any, ");
    }
    for property in properties {
        let is_optional = !required.contains(&property.key.as_str());
        let value = of_value(&property.value, depth + 1, left);
        let mark = if is_optional && value != "any" { "?" } else { "" };
        let key = if is_identifier(&property.key) {
            property.key.clone()
        } else {
            format!("[{}]", quoted(&property.key))
        };
        let _ = write!(written, "{key}: {value}{mark}, ");
    }
    written.truncate(written.len().saturating_sub(2));
    written.push_str(" }");
    written
}

/// Returns the type of an `enum`, with literals where Luau supports them.
fn enum_type(values: &[Json], left: &mut usize) -> String {
    if values.len() > MAX_PARTS || values.len() > *left {
        return union(values.iter().map(plain_type).collect());
    }
    *left -= values.len();
    union(values.iter().map(|value| literal(value).unwrap_or_else(|| plain_type(value))).collect())
}

fn literal(value: &Json) -> Option<String> {
    match &value.kind {
        JsonKind::String(text) => Some(quoted(text)),
        JsonKind::Bool(value) => Some(value.to_string()),
        JsonKind::Null | JsonKind::Number(_) | JsonKind::Array(_) | JsonKind::Object(_) => None,
    }
}

fn plain_type(value: &Json) -> String {
    String::from(match &value.kind {
        JsonKind::String(_) => "string",
        JsonKind::Bool(_) => "boolean",
        JsonKind::Number(_) => "number",
        JsonKind::Array(_) => "{ any }",
        JsonKind::Object(_) => "{ [string]: any }",
        JsonKind::Null => "any",
    })
}

/// Returns the union of `types`, without duplicates. A union with `any` is `any`.
fn union(types: Vec<String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in types {
        if part == "any" {
            return part;
        }
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    match parts.as_slice() {
        [] => String::from("any"),
        [only] => only.clone(),
        several => format!("({})", several.join(" | ")),
    }
}

/// Returns `text` as a Luau string literal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            control if control.is_control() => {
                for byte in control.to_string().bytes() {
                    let _ = write!(quoted, "\\{byte:03}");
                }
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether `name` is a valid Luau identifier and not a keyword.
pub(crate) fn is_identifier(name: &str) -> bool {
    const KEYWORDS: [&str; 21] = [
        "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
        "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
    ];
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !KEYWORDS.contains(&name)
}
