//! Places in a tool's parameters schema → where they were written.
//!
//! What is compiled for an API holds more than the spec: a closed object, an empty `required`. Those have no place.

use super::pointer::{self, Inside, enter};
use crate::spec::{Json, JsonKind, Member, Tool};
use crate::text::Span;

/// Where something of a schema was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Its key, with its value where that is one word; a value in a list.
    pub span: Span,
    /// With the whole value.
    pub whole: Span,
}

/// The place of a JSON pointer into the parameters schema, such as `/properties/unit/items/type`; `None` for what the
/// spec does not hold.
pub(crate) fn locate(tool: &Tool, pointer: &str) -> Option<Written> {
    walk(tool, pointer).ok()
}

/// As [`locate`], or the nearest place around it.
pub(crate) fn locate_near(tool: &Tool, pointer: &str) -> Span {
    walk(tool, pointer).unwrap_or_else(|near| near).whole
}

fn walk(tool: &Tool, pointer: &str) -> Result<Written, Written> {
    let at = |span: Span| Written { span, whole: span };
    let mut steps = pointer::steps(pointer).skip(1);
    let named = steps.next();
    let argument = named.and_then(|name| tool.arguments.iter().find(|known| known.name.value == name));
    let Some(argument) = argument else { return Err(at(tool.name.span)) };
    let mut written = Written { span: argument.name.span, whole: argument.span };
    let Some(first) = steps.next() else { return Ok(written) };
    let Some(member) = argument.schema.iter().find(|member| member.key == first) else { return Err(written) };
    written = of_member(member);
    let mut value: &Json = &member.value;
    for step in steps {
        let Some(inside) = enter(value, &step) else { return Err(written) };
        written = match inside {
            Inside::Member(member) => of_member(member),
            Inside::Item(item) => at(item.span),
        };
        value = inside.value();
    }
    Ok(written)
}

fn of_member(member: &Member) -> Written {
    let whole = member.key_span.to(member.value.span);
    let span = match &member.value.kind {
        JsonKind::Object(_) | JsonKind::Array(_) => member.key_span,
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => whole,
    };
    Written { span, whole }
}
