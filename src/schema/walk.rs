//! The schemas of a tool as they were written, at every depth.

use crate::spec::keywords::{self, Takes};
use crate::spec::{Argument, Json, JsonKind, Member, Tool};

/// Every schema, with the argument that it is or stands in; the outer before the inner.
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

/// The schemas that a keyword holds.
fn schemas_in(member: &Member) -> Vec<&[Member]> {
    match (keywords::takes(&member.key), &member.value.kind) {
        (Takes::Schema, JsonKind::Object(members)) => vec![members.as_slice()],
        (Takes::Schema | Takes::Schemas, JsonKind::Array(items)) => items.iter().filter_map(object).collect(),
        (Takes::Named, JsonKind::Object(named)) => {
            named.iter().filter_map(|member| object(&member.value)).collect()
        }
        (
            Takes::Schema
            | Takes::Schemas
            | Takes::Named
            | Takes::Text
            | Takes::Flag
            | Takes::Count
            | Takes::Number
            | Takes::Positive
            | Takes::Vector
            | Takes::Own
            | Takes::Any,
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
