//! Iterates over the schemas of a tool, at every depth, as written in the spec, and over the values in JSON.

use serde_json::Value;

use crate::spec::keywords::{self, ValueKind};
use crate::spec::{Argument, Json, JsonKind, Member, Tool};
use crate::text::Span;

/// Returns a value and every value in it, an outer one before those in it.
pub(super) fn values_in(root: &Value) -> impl Iterator<Item = &Value> {
    let mut pending = vec![root];
    std::iter::from_fn(move || {
        let value = pending.pop()?;
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Some(value)
    })
}

/// Returns every schema with its argument, in pre-order.
pub(super) fn schemas_of(tool: &Tool) -> impl Iterator<Item = (&Argument, &[Member])> {
    tool.arguments
        .iter()
        .flat_map(|argument| schemas_under(&argument.schema).map(move |schema| (argument, schema)))
}

/// Returns a schema and every schema in it, in pre-order.
pub(super) fn schemas_under(schema: &[Member]) -> impl Iterator<Item = &[Member]> {
    let mut pending = vec![schema];
    std::iter::from_fn(move || {
        let schema = pending.pop()?;
        pending.extend(schema.iter().rev().flat_map(|member| schemas_in(member).into_iter().rev()));
        Some(schema)
    })
}

/// Returns the largest `:maxLength` in the `:returns` of a tool, with its position.
pub fn longest_returned_string(tool: &Tool) -> Option<(u64, Span)> {
    let JsonKind::Object(schema) = &tool.returns.as_ref()?.kind else { return None };
    let limits = schemas_under(schema).flatten().filter(|member| member.key == "maxLength");
    let lengths = limits.filter_map(|member| match &member.value.kind {
        JsonKind::Number(length) => Some((length.as_u64()?, member.value.span)),
        _ => None,
    });
    lengths.max_by_key(|(length, _)| *length)
}

/// Returns the schemas directly inside a keyword.
fn schemas_in(member: &Member) -> Vec<&[Member]> {
    match (keywords::value_kind(&member.key), &member.value.kind) {
        (ValueKind::Schema, JsonKind::Object(members)) => vec![members.as_slice()],
        (ValueKind::Schema | ValueKind::Schemas, JsonKind::Array(items)) => {
            items.iter().filter_map(object).collect()
        }
        (ValueKind::Named, JsonKind::Object(named)) => {
            named.iter().filter_map(|member| object(&member.value)).collect()
        }
        _ => Vec::new(),
    }
}

fn object(value: &Json) -> Option<&[Member]> {
    match &value.kind {
        JsonKind::Object(members) => Some(members),
        _ => None,
    }
}
