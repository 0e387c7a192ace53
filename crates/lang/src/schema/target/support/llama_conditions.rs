//! Conditions of the llama.cpp support table: which keywords the server reads, in which order, and how it counts.

use serde_json::Value;

use super::llama_pattern::{PatternSupport, classify};
use super::model::Occurrence;
use crate::schema::target::node::SchemaNode;
use crate::spec::keywords::TYPES;

/// The smallest number with 17 digits.
const SEVENTEEN_DIGITS: i128 = 10_000_000_000_000_000;
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
/// The server rejects larger lengths and counts.
const MAX_COUNT: u64 = i32::MAX as u64;

pub(super) fn is_anything(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let describing =
        ["properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
    node.has_type("object") && !describing.iter().any(|keyword| node.has(keyword))
}

pub(super) fn is_type(occurrence: &Occurrence<'_>) -> bool {
    let is_word = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    match occurrence.value() {
        Some(Value::Array(words)) => !words.is_empty() && words.iter().all(is_word),
        Some(value) => value.is_null() || is_word(value),
        None => true,
    }
}

pub(super) fn is_not_a_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Follows a reference as the server does: key by key, without unescaping.
pub(super) fn target_of<'a>(node: &SchemaNode<'a>) -> Option<&'a Value> {
    let steps = node.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let mut target = node.root.schema;
    for step in steps.split('/') {
        target = match target {
            Value::Object(members) => members.get(step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    target.is_object().then_some(target)
}

/// Returns whether the keyword applies to the schema's type and the server reads it.
pub(super) fn is_relevant(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let kind = match occurrence.word {
        "minLength" | "maxLength" | "pattern" | "format" => "string",
        "minItems" | "maxItems" => "array",
        _ => "integer",
    };
    (node.has_type(kind) || (kind != "integer" && !node.has("type"))) && !is_shadowed(occurrence)
}

/// Returns whether the server's grammar contains a repetition for the keyword.
pub(super) fn is_counted(occurrence: &Occurrence<'_>) -> bool {
    is_relevant(occurrence)
        && (occurrence.word.ends_with("Items") || !has_pattern_or_known_format(occurrence.node))
}

/// Returns the value as a length or count.
pub(super) fn count(occurrence: &Occurrence<'_>) -> Option<u64> {
    occurrence.value().and_then(Value::as_u64).filter(|&count| count <= MAX_COUNT)
}

/// Returns the number of repetitions in the server's grammar. For items, the first is not part of the repetition.
pub(super) fn repetitions(occurrence: &Occurrence<'_>) -> u64 {
    let count = count(occurrence).unwrap_or_default();
    if occurrence.word.ends_with("Items") { count.saturating_sub(1) } else { count }
}

pub(super) fn is_over_maximum(occurrence: &Occurrence<'_>) -> bool {
    let maximum = if occurrence.word == "minLength" { "maxLength" } else { "maxItems" };
    let maximum = occurrence.node.get(maximum).and_then(Value::as_u64);
    count(occurrence).zip(maximum).is_some_and(|(least, most)| least > most)
}

pub(super) fn pattern_support(occurrence: &Occurrence<'_>) -> PatternSupport {
    occurrence.value().and_then(Value::as_str).map_or(PatternSupport::Refused, classify)
}

pub(super) fn is_known_format(node: &SchemaNode<'_>) -> bool {
    let known = ["date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5"];
    node.get("format").and_then(Value::as_str).is_some_and(|format| known.contains(&format))
}

pub(super) fn has_pattern_or_known_format(node: &SchemaNode<'_>) -> bool {
    let pattern = node.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|pattern| !pattern.is_empty()) || is_known_format(node)
}

pub(super) fn has_odd_names(node: &SchemaNode<'_>) -> bool {
    let names = node.get("properties").and_then(Value::as_object);
    names.is_some_and(|names| names.keys().any(|name| name.contains([']', '\\'])))
}

/// Returns whether the server's grammar for a bound needs more digits than it supports.
pub(super) fn is_bound_too_large(occurrence: &Occurrence<'_>) -> bool {
    let Some(value) = occurrence.value() else { return false };
    if has_other_bound(occurrence) {
        return false;
    }
    let exact = value.as_i64().map(i128::from);
    if is_lower(occurrence) {
        return exact.is_some_and(|bound| bound >= SEVENTEEN_DIGITS);
    }
    let is_beyond = value.is_f64() && value.as_f64().is_some_and(|bound| bound >= TWO_TO_63);
    exact.is_some_and(|bound| bound <= -SEVENTEEN_DIGITS) || (is_beyond && occurrence.word == "maximum")
}

fn is_lower(occurrence: &Occurrence<'_>) -> bool {
    matches!(occurrence.word, "minimum" | "exclusiveMinimum")
}

pub(super) fn has_other_bound(occurrence: &Occurrence<'_>) -> bool {
    let others =
        if is_lower(occurrence) { ["maximum", "exclusiveMaximum"] } else { ["minimum", "exclusiveMinimum"] };
    others.iter().any(|keyword| occurrence.node.has(keyword))
}

/// Returns whether the server reads only a keyword with higher precedence.
pub(super) fn is_shadowed(occurrence: &Occurrence<'_>) -> bool {
    // Constants imply their type.
    let is_implied = |keyword| occurrence.word == "type" && matches!(keyword, "const" | "enum");
    strongest(occurrence).is_some_and(|keyword| !is_implied(keyword))
}

/// Returns the keyword of the same schema that takes precedence.
pub(super) fn strongest(occurrence: &Occurrence<'_>) -> Option<&'static str> {
    let order = ["$ref", "oneOf", "anyOf", "const", "enum"];
    let own = order.iter().position(|keyword| *keyword == occurrence.word).unwrap_or(order.len());
    order.into_iter().take(own).find(|keyword| occurrence.node.has(keyword))
}

pub(super) fn is_all_of_ignored(occurrence: &Occurrence<'_>) -> bool {
    let node = occurrence.node;
    let other = ["integer", "number", "boolean", "array", "null"].iter().any(|word| node.has_type(word));
    let closed = node.get("additionalProperties").is_some_and(|value| value != &Value::Bool(true));
    other || node.has("properties") || closed
}

pub(super) fn parts_have(occurrence: &Occurrence<'_>, keywords: &[&str]) -> bool {
    let parts = occurrence.value().and_then(Value::as_array);
    parts.is_some_and(|parts| {
        parts.iter().all(|part| keywords.iter().any(|keyword| part.get(*keyword).is_some()))
    })
}
