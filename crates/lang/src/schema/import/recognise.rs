//! Finds tool definitions in JSON values and detects their format.

use super::gemini::is_upper_case;
use super::messages;
use super::model::{Definition, FindingSink, ImportFormat};
use crate::spec::{Json, JsonKind, Member};
use crate::text::Span;

/// Adds the definitions in `value`: the value itself, the elements of an array, or the `tools` of a request or
/// response. `from` overrides the detected format.
pub(super) fn find_definitions<'j>(
    value: &'j Json,
    from: Option<ImportFormat>,
    found: &mut Vec<Definition<'j>>,
    sink: &mut FindingSink,
) {
    match &value.kind {
        JsonKind::Array(items) => {
            for item in items {
                find_definitions(item, from, found, sink);
            }
        }
        JsonKind::Object(_) if from == Some(ImportFormat::JsonSchema) => {
            // A JSON Schema may also have a key `tools`, so it is checked first.
            if has_schema(value, ImportFormat::JsonSchema) || !find_inside(value, from, found, sink) {
                add(ImportFormat::JsonSchema, value, found, sink);
            }
        }
        JsonKind::Object(members) => {
            if !find_inside(value, from, found, sink) {
                match (from, recognise(value)) {
                    (Some(format), _) => add(format, value, found, sink),
                    (None, Some(format)) => found.push(Definition { format, json: value }),
                    (None, None) => report_unknown(value, members, sink),
                }
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {
            sink.report(messages::unknown_format(sink.at(value.span), sink.purpose));
        }
    }
}

/// Adds the definitions in a list of tools: an array, a request or response with tools, or one tool with a schema. Reports
/// any other value, and a list without a single tool.
pub(super) fn find_list<'j>(value: &'j Json, found: &mut Vec<Definition<'j>>, sink: &mut FindingSink) {
    let (known, reported) = (found.len(), sink.findings.len());
    let is_list = match &value.kind {
        JsonKind::Array(_) => {
            find_definitions(value, None, found, sink);
            true
        }
        JsonKind::Object(_) => {
            let is_list = find_inside(value, None, found, sink);
            let alone = recognise(value).filter(|format| !is_list && has_schema(value, *format));
            found.extend(alone.map(|format| Definition { format, json: value }));
            is_list || alone.is_some()
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => false,
    };
    // A schema is not a tool: it has no place for a name.
    let mut tools = Vec::new();
    for definition in found.drain(known..) {
        if definition.format == ImportFormat::JsonSchema {
            sink.report(messages::unknown_format(sink.at(start_of(definition.json)), sink.purpose));
        } else {
            tools.push(definition);
        }
    }
    let new = sink.findings.get(reported..).unwrap_or_default();
    let has_unknown_only = tools.is_empty() && !new.is_empty() && new.iter().all(messages::is_unknown_format);
    if !is_list || has_unknown_only {
        sink.findings.truncate(reported);
        sink.report(messages::not_a_list(sink.at(start_of(value))));
    }
    found.extend(tools);
}

/// Returns the first character of a value.
fn start_of(value: &Json) -> Span {
    Span { start: value.span.start, end: value.span.start + 1 }
}

/// Adds a definition of `format`. Reports it instead if its schema is under the key of another format, because the
/// schema would be lost.
fn add<'j>(format: ImportFormat, value: &'j Json, found: &mut Vec<Definition<'j>>, sink: &mut FindingSink) {
    let other_format = recognise(value)
        .filter(|other| !has_schema(value, format) && has_schema(value, *other))
        .map(|other| (other, schema_key(value, other)));
    match other_format {
        Some((other, key)) => {
            let span = key.unwrap_or_else(|| start_of(value));
            sink.report(messages::other_format(sink.at(span), format.as_str(), other.as_str()));
        }
        None => found.push(Definition { format, json: value }),
    }
}

/// Returns the keys for the parameters schema in a format.
fn schema_keys(format: ImportFormat) -> &'static [&'static str] {
    match format {
        ImportFormat::OpenAi => &["function", "parameters"],
        ImportFormat::OpenAiResponses => &["parameters", "arguments"],
        ImportFormat::Anthropic => &["input_schema"],
        ImportFormat::Gemini => &["parameters", "parametersJsonSchema", "parameters_json_schema"],
        ImportFormat::Mcp => &["inputSchema"],
        ImportFormat::JsonSchema => &["properties", "$schema", "$ref", "$defs", "definitions"],
    }
}

fn schema_key(value: &Json, format: ImportFormat) -> Option<Span> {
    schema_keys(format).iter().find_map(|key| value.get(key)).map(|member| member.key_span)
}

fn has_schema(value: &Json, format: ImportFormat) -> bool {
    schema_key(value, format).is_some()
}

/// Finds definitions inside a request or response. Returns whether `value` is one.
fn find_inside<'j>(
    value: &'j Json,
    from: Option<ImportFormat>,
    found: &mut Vec<Definition<'j>>,
    sink: &mut FindingSink,
) -> bool {
    let array = |key: &str| {
        value.get(key).map(|member| &member.value).filter(|value| matches!(value.kind, JsonKind::Array(_)))
    };
    if let Some(declarations) = array("functionDeclarations").or_else(|| array("function_declarations")) {
        find_definitions(declarations, from.or(Some(ImportFormat::Gemini)), found, sink);
        return true;
    }
    if let Some(result) = value.get("result").filter(|_| value.get("jsonrpc").is_some()) {
        find_definitions(&result.value, from, found, sink);
        return true;
    }
    if let Some(error) = value.get("error").filter(|_| value.get("jsonrpc").is_some()) {
        let message = String::from("the server returned an error instead of tools");
        sink.report(messages::not_a_tool(sink.at(error.key_span), message));
        return true;
    }
    let Some(tools) = array("tools").or_else(|| array("functions")) else { return false };
    find_definitions(tools, from, found, sink);
    if let Some(cursor) = value.get("nextCursor").filter(|cursor| cursor.value.as_str().is_some()) {
        sink.report(messages::partial_list(sink.at(cursor.key_span)));
    }
    true
}

/// Detects the format of a definition.
fn recognise(value: &Json) -> Option<ImportFormat> {
    let get = |key: &str| value.get(key).map(|member| &member.value);
    let is_object = |key: &str| get(key).is_some_and(|value| matches!(value.kind, JsonKind::Object(_)));
    if is_object("function") {
        return Some(ImportFormat::OpenAi);
    }
    for (key, format) in [
        ("input_schema", ImportFormat::Anthropic),
        ("inputSchema", ImportFormat::Mcp),
        ("parametersJsonSchema", ImportFormat::Gemini),
        ("parameters_json_schema", ImportFormat::Gemini),
    ] {
        if get(key).is_some() {
            return Some(format);
        }
    }
    let kind = get("type").and_then(Json::as_str);
    let is_schema = kind == Some("object")
        || is_object("properties")
        || get("$schema").is_some()
        || (get("$ref").is_some() && (is_object("$defs") || is_object("definitions")));
    if is_schema {
        return Some(ImportFormat::JsonSchema);
    }
    let is_named = get("name").is_some() || is_object("parameters");
    match kind {
        Some("function") => Some(ImportFormat::OpenAiResponses),
        None if is_named => {
            let word = get("parameters").and_then(|schema| schema.get("type")?.value.as_str());
            let is_gemini = word.is_some_and(is_upper_case);
            Some(if is_gemini { ImportFormat::Gemini } else { ImportFormat::OpenAiResponses })
        }
        Some(_) | None => None,
    }
}

fn report_unknown(value: &Json, members: &[Member], sink: &mut FindingSink) {
    let named = |key: &str| members.iter().find(|member| member.key == key);
    let provider_type = named("type").and_then(|member| member.value.as_str().map(|word| (word, member)));
    // A tool without a type, such as `{"googleSearch": {}}`.
    let only = match members {
        [only] if matches!(only.value.kind, JsonKind::Object(_)) => Some((only.key.as_str(), only)),
        _ => None,
    };
    match provider_type.or(only) {
        Some((word, member)) => {
            let at = sink.at(member.key_span.to(member.value.span));
            sink.report(messages::not_a_function(at, word, sink.purpose));
        }
        None => sink.report(messages::unknown_format(sink.at(start_of(value)), sink.purpose)),
    }
}
