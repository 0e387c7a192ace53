//! Iterates over the schemas of a tool, at every depth, as written in the spec.

use crate::spec::keywords::{self, ValueKind};
use crate::spec::{Argument, Json, JsonKind, Member, Tool};

/// Returns every schema with its argument, in pre-order.
pub(super) fn schemas_of(tool: &Tool) -> impl Iterator<Item = (&Argument, &[Member])> {
    let arguments = tool.arguments.iter().rev();
    let mut pending: Vec<_> = arguments.map(|argument| (argument, argument.schema.as_slice())).collect();
    std::iter::from_fn(move || {
        let (argument, schema) = pending.pop()?;
        let inside = schema.iter().rev().flat_map(|member| schemas_in(member).into_iter().rev());
        pending.extend(inside.map(|inside| (argument, inside)));
        Some((argument, schema))
    })
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
        (
            ValueKind::Schema
            | ValueKind::Schemas
            | ValueKind::Named
            | ValueKind::Text
            | ValueKind::Flag
            | ValueKind::Count
            | ValueKind::Number
            | ValueKind::Positive
            | ValueKind::Vector
            | ValueKind::Own
            | ValueKind::Any,
            _,
        ) => Vec::new(),
    }
}

fn object(value: &Json) -> Option<&[Member]> {
    match &value.kind {
        JsonKind::Object(members) => Some(members),
        JsonKind::Null
        | JsonKind::Bool(_)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Array(_) => None,
    }
}
