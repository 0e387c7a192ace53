//! A spec's tool → what a request holds of it, with findings for what its schema cannot be held to.

use super::target::emit_definition;
use super::{SchemaError, ToolEntry};
use crate::diagnostic::Diagnostic;
use crate::schema::rules;
use crate::spec::{Json, JsonKind, Tool};
use crate::text::{Location, Span};

/// Compiles `tool`. A keyword that is no JSON Schema is still sent, is not enforced, and is a finding.
pub fn compile_tool(tool: &Tool) -> (ToolEntry, Vec<Diagnostic>) {
    let (entry, problems) = ToolEntry::lenient(tool.kind, emit_definition(tool), tool.timeout);
    let findings = problems.iter().filter_map(|problem| report(tool, problem)).collect();
    (entry, findings)
}

fn report(tool: &Tool, problem: &SchemaError) -> Option<Diagnostic> {
    // A misplaced `:required t` has a finding of its own.
    if problem.path.ends_with("/required") {
        return None;
    }
    let location = Location { source: tool.source, span: span_of(tool, &problem.path) };
    let message = format!("this is no JSON Schema: {}", problem.message);
    Some(
        Diagnostic::new(&rules::INVALID_SCHEMA, location, message)
            .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it"),
    )
}

/// The place of a pointer into the parameters schema, such as `/properties/unit/items/type`.
fn span_of(tool: &Tool, pointer: &str) -> Span {
    let mut steps = pointer.split('/').skip(2).map(|step| step.replace("~1", "/").replace("~0", "~"));
    let argument = steps.next().and_then(|name| tool.arguments.iter().find(|known| known.name.value == name));
    let Some(argument) = argument else { return tool.name.span };
    let Some(first) = steps.next() else { return argument.span };
    let Some(member) = argument.schema.iter().find(|member| member.key == first) else {
        return argument.span;
    };
    let mut span = member.key_span.to(member.value.span);
    let mut value: &Json = &member.value;
    for step in steps {
        value = match &value.kind {
            JsonKind::Object(members) => match members.iter().find(|member| member.key == step) {
                Some(member) => {
                    span = member.key_span.to(member.value.span);
                    &member.value
                }
                None => return span,
            },
            JsonKind::Array(items) => match step.parse::<usize>().ok().and_then(|index| items.get(index)) {
                Some(item) => {
                    span = item.span;
                    item
                }
                None => return span,
            },
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => return span,
        };
    }
    span
}
