//! Values that several forms share: endings, headers, conditions, faults.

use deftool_lang::syntax::{Datum, DatumKind};
use serde_json::Value;

use super::form::{Entry, Reader, json_of, word_of};
use crate::fault::Fault;
use crate::model::Ending;
use crate::request::Condition;

/// The values of `:then`.
pub(super) const ENDINGS: [(&str, Ending); 5] = [
    ("done", Ending::Whole),
    ("end", Ending::End),
    ("close", Ending::Close),
    ("reset", Ending::Reset),
    ("silence", Ending::Silence),
];

const CONDITION_KEYS: [&str; 9] =
    [":last-role", ":contains", ":system", ":tools", ":header", ":turn", ":model", ":stream", ":body"];

pub(super) fn condition(reader: &mut Reader<'_>, of: &str, entries: Vec<Entry>) -> Condition {
    let mut condition = Condition::default();
    if entries.is_empty() {
        return condition;
    }
    for entry in entries {
        let (key, span, value) = match entry {
            Entry::Key { key, span, value } => (key, span, value),
            Entry::Item(datum) => {
                reader.report(datum.span, format!("`{of}` expects conditions such as `:last-role tool`"));
                continue;
            }
        };
        match key.as_str() {
            ":last-role" => {
                let roles = ["user", "assistant", "tool"].map(|role| (role, role));
                condition.last_role = reader.word(&key, &value, &roles).map(str::to_owned);
            }
            ":contains" => condition.contains = reader.string(&key, value),
            ":system" => condition.system = reader.string(&key, value),
            ":tools" => condition.tools = reader.strings(&key, value),
            ":header" => condition.headers = headers(reader, &key, value),
            ":turn" => condition.turn = reader.count(&key, &value),
            ":model" => condition.model = reader.string(&key, value),
            ":stream" => condition.stream = Some(matches!(word_of(&value), Some("t"))),
            ":body" => match json_of(&value) {
                Some(json @ Value::Object(_)) => condition.body = Some(in_snake_case(json)),
                _ => reader.report(value.span, "`:body` expects members such as `(:temperature 0)`"),
            },
            _ => reader.unknown(span, "condition", &key, &CONDITION_KEYS),
        }
    }
    condition
}

/// Replaces `-` with `_` in keys, like in a worker's `:params`: `:max-tokens` is `max_tokens`.
fn in_snake_case(json: Value) -> Value {
    match json {
        Value::Object(members) => {
            let renamed =
                members.into_iter().map(|(key, value)| (key.replace('-', "_"), in_snake_case(value)));
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.into_iter().map(in_snake_case).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json,
    }
}

/// `(:x-request-id "7")`
pub(super) fn headers(reader: &mut Reader<'_>, key: &str, value: Datum) -> Vec<(String, String)> {
    let expected = format!("`{key}` expects headers such as `(:x-request-id \"7\")`");
    let mut headers = Vec::new();
    for entry in reader.entries(value, &expected).unwrap_or_default() {
        match entry {
            Entry::Key { key, span, value } => {
                let name = key.trim_start_matches(':').to_ascii_lowercase();
                let is_name = !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
                match reader.scalar(&key, &value) {
                    Some(text) if is_name && !text.contains(['\r', '\n', '\0']) => headers.push((name, text)),
                    Some(_) => reader.report(span, format!("invalid header `{key}`")),
                    None => {}
                }
            }
            Entry::Item(datum) => reader.report(datum.span, expected.clone()),
        }
    }
    headers
}

/// Reads the name of a fault, or a vector of names.
pub(super) fn faults(reader: &mut Reader<'_>, value: Datum) -> Vec<&'static Fault> {
    let items = match value.kind {
        DatumKind::Vector(items) => items,
        _ => vec![value],
    };
    let mut found: Vec<&'static Fault> = Vec::new();
    for item in items {
        let Some(name) = word_of(&item) else {
            reader.report(item.span, format!("expected the name of a fault, found {}", item.describe()));
            continue;
        };
        let Some(fault) = Fault::named(name) else {
            let names: Vec<&str> = Fault::all().map(|fault| fault.name).collect();
            reader.unknown(item.span, "fault", name, &names);
            continue;
        };
        if fault.replaces_answer()
            && let Some(other) = found.iter().find(|other| other.replaces_answer())
        {
            let message =
                format!("`{name}` cannot be combined with `{}`: both replace the whole answer", other.name);
            reader.report(item.span, message);
        }
        found.push(fault);
    }
    found
}
