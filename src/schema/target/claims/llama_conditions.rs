//! When a claim about llama.cpp holds: what it looks at in a schema, in which order, and how it counts.

use serde_json::Value;

use super::Subjected;
use super::llama_pattern::{Reading, read};
use crate::schema::target::place::Place;
use crate::spec::keywords::TYPES;

/// The smallest bound of 17 digits.
const SEVENTEEN_DIGITS: i128 = 10_000_000_000_000_000;
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
/// Lengths and counts beyond this are no numbers to it.
const MAX_COUNT: u64 = i32::MAX as u64;

pub(super) fn is_anything(subjected: &Subjected<'_>) -> bool {
    let place = subjected.place;
    let says = ["properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
    place.has_type("object") && !says.iter().any(|keyword| place.has(keyword))
}

pub(super) fn is_type(subjected: &Subjected<'_>) -> bool {
    let is_word = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    match subjected.value() {
        Some(Value::Array(words)) => !words.is_empty() && words.iter().all(is_word),
        Some(value) => value.is_null() || is_word(value),
        None => true,
    }
}

pub(super) fn is_no_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Follows a reference as the server does: key by key, nothing unescaped.
pub(super) fn target_of<'a>(place: &Place<'a>) -> Option<&'a Value> {
    let steps = place.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let mut target = place.root.schema;
    for step in steps.split('/') {
        target = match target {
            Value::Object(members) => members.get(step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    target.is_object().then_some(target)
}

/// Whether the keyword says anything about values of the schema's type, and is looked at.
pub(super) fn is_relevant(subjected: &Subjected<'_>) -> bool {
    let place = subjected.place;
    let kind = match subjected.word {
        "minLength" | "maxLength" | "pattern" | "format" => "string",
        "minItems" | "maxItems" => "array",
        _ => "integer",
    };
    (place.has_type(kind) || (kind != "integer" && !place.has("type"))) && !is_shadowed(subjected)
}

/// Whether its grammar counts to it.
pub(super) fn is_counted(subjected: &Subjected<'_>) -> bool {
    is_relevant(subjected) && (subjected.word.ends_with("Items") || !is_text_elsewhere(subjected.place))
}

/// A length or a count.
pub(super) fn count(subjected: &Subjected<'_>) -> Option<u64> {
    subjected.value().and_then(Value::as_u64).filter(|&count| count <= MAX_COUNT)
}

/// How often its grammar repeats what the keyword counts: of items the first stands alone.
pub(super) fn repetitions(subjected: &Subjected<'_>) -> u64 {
    let count = count(subjected).unwrap_or_default();
    if subjected.word.ends_with("Items") { count.saturating_sub(1) } else { count }
}

pub(super) fn is_over_maximum(subjected: &Subjected<'_>) -> bool {
    let maximum = if subjected.word == "minLength" { "maxLength" } else { "maxItems" };
    let maximum = subjected.place.get(maximum).and_then(Value::as_u64);
    count(subjected).zip(maximum).is_some_and(|(least, most)| least > most)
}

pub(super) fn reading(subjected: &Subjected<'_>) -> Reading {
    subjected.value().and_then(Value::as_str).map_or(Reading::Refused, read)
}

pub(super) fn is_known_format(place: &Place<'_>) -> bool {
    let known = ["date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5"];
    place.get("format").and_then(Value::as_str).is_some_and(|format| known.contains(&format))
}

pub(super) fn is_text_elsewhere(place: &Place<'_>) -> bool {
    let pattern = place.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|pattern| !pattern.is_empty()) || is_known_format(place)
}

pub(super) fn has_odd_names(place: &Place<'_>) -> bool {
    let names = place.get("properties").and_then(Value::as_object);
    names.is_some_and(|names| names.keys().any(|name| name.contains([']', '\\'])))
}

/// Whether its grammar for a bound counts more digits than it has.
pub(super) fn is_bound_too_far(subjected: &Subjected<'_>) -> bool {
    let Some(value) = subjected.value() else { return false };
    if has_other_bound(subjected) {
        return false;
    }
    let exact = value.as_i64().map(i128::from);
    if is_lower(subjected) {
        return exact.is_some_and(|bound| bound >= SEVENTEEN_DIGITS);
    }
    let is_beyond = value.is_f64() && value.as_f64().is_some_and(|bound| bound >= TWO_TO_63);
    exact.is_some_and(|bound| bound <= -SEVENTEEN_DIGITS) || (is_beyond && subjected.word == "maximum")
}

fn is_lower(subjected: &Subjected<'_>) -> bool {
    matches!(subjected.word, "minimum" | "exclusiveMinimum")
}

pub(super) fn has_other_bound(subjected: &Subjected<'_>) -> bool {
    let others =
        if is_lower(subjected) { ["maximum", "exclusiveMaximum"] } else { ["minimum", "exclusiveMinimum"] };
    others.iter().any(|keyword| subjected.place.has(keyword))
}

/// Whether a stronger keyword beside it is the only one that is looked at.
pub(super) fn is_shadowed(subjected: &Subjected<'_>) -> bool {
    // The types of constants are plain from the constants.
    let is_plain = |keyword| subjected.word == "type" && matches!(keyword, "const" | "enum");
    strongest(subjected).is_some_and(|keyword| !is_plain(keyword))
}

/// The stronger keyword beside it.
pub(super) fn strongest(subjected: &Subjected<'_>) -> Option<&'static str> {
    let order = ["$ref", "oneOf", "anyOf", "const", "enum"];
    let own = order.iter().position(|keyword| *keyword == subjected.word).unwrap_or(order.len());
    order.into_iter().take(own).find(|keyword| subjected.place.has(keyword))
}

pub(super) fn is_all_of_ignored(subjected: &Subjected<'_>) -> bool {
    let place = subjected.place;
    let other = ["integer", "number", "boolean", "array", "null"].iter().any(|word| place.has_type(word));
    let closed = place.get("additionalProperties").is_some_and(|value| value != &Value::Bool(true));
    other || place.has("properties") || closed
}

pub(super) fn parts_have(subjected: &Subjected<'_>, keywords: &[&str]) -> bool {
    let parts = subjected.value().and_then(Value::as_array);
    parts.is_some_and(|parts| {
        parts.iter().all(|part| keywords.iter().any(|keyword| part.get(*keyword).is_some()))
    })
}
