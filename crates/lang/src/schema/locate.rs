//! Maps locations in a tool's parameters schema to the spec source.
//!
//! The compiled schema contains more than the spec, such as `additionalProperties: false` or an empty `required`. Those
//! have no source location.

use super::pointer::{self, Inside, enter};
use crate::spec::{Json, JsonKind, Member, Tool};
use crate::text::Span;

/// The source spans of a part of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceSpans {
    /// The key, with the value if it is scalar; for a list item, the value.
    pub span: Span,
    /// The key with the whole value.
    pub whole: Span,
}

/// Returns the source of a JSON pointer into the parameters schema, such as `/properties/unit/items/type`; `None` if it
/// is not part of the spec.
pub(crate) fn locate(tool: &Tool, pointer: &str) -> Option<SourceSpans> {
    walk(tool, pointer).ok()
}

/// Like [`locate`], but falls back to the nearest enclosing part.
pub(crate) fn locate_near(tool: &Tool, pointer: &str) -> Span {
    walk(tool, pointer).unwrap_or_else(|near| near).whole
}

fn walk(tool: &Tool, pointer: &str) -> Result<SourceSpans, SourceSpans> {
    let at = |span: Span| SourceSpans { span, whole: span };
    let mut steps = pointer::steps(pointer).skip(1);
    let named = steps.next();
    let argument = named.and_then(|name| tool.arguments.iter().find(|known| known.name.value == name));
    let Some(argument) = argument else { return Err(at(tool.name.span)) };
    let mut found = SourceSpans { span: argument.name.span, whole: argument.span };
    let Some(first) = steps.next() else { return Ok(found) };
    let Some(member) = argument.schema.iter().find(|member| member.key == first) else { return Err(found) };
    found = of_member(member);
    let mut value: &Json = &member.value;
    for step in steps {
        let Some(inside) = enter(value, &step) else { return Err(found) };
        found = match inside {
            Inside::Member(member) => of_member(member),
            Inside::Item(item) => at(item.span),
        };
        value = inside.value();
    }
    Ok(found)
}

fn of_member(member: &Member) -> SourceSpans {
    let whole = member.key_span.to(member.value.span);
    let span = match &member.value.kind {
        JsonKind::Object(_) | JsonKind::Array(_) => member.key_span,
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => whole,
    };
    SourceSpans { span, whole }
}
