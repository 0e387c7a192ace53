//! `$ref`: where the references of a tool lead, seen without a validator.

use serde_json::Value;

use super::examples::schemas_in;
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::spec::{Json, Member, Tool};
use crate::text::Location;

/// Tells of references that lead nowhere, out of the tool or to themselves. `parameters` is the schema as it is sent.
pub(super) fn check(tool: &Tool, parameters: &Value, findings: &mut Vec<Diagnostic>) {
    for argument in &tool.arguments {
        check_members(tool, &argument.name.value, &argument.schema, parameters, findings);
    }
}

fn check_members(
    tool: &Tool,
    argument: &str,
    schema: &[Member],
    parameters: &Value,
    findings: &mut Vec<Diagnostic>,
) {
    for member in schema {
        if let ("$ref", Some(target)) = (member.key.as_str(), member.value.as_str()) {
            findings.extend(check_reference(tool, argument, target, &member.value, parameters));
        }
        for inside in schemas_in(member) {
            check_members(tool, argument, inside, parameters, findings);
        }
    }
}

fn check_reference(
    tool: &Tool,
    argument: &str,
    target: &str,
    value: &Json,
    parameters: &Value,
) -> Option<Diagnostic> {
    let at = Location { source: tool.source, span: value.span };
    let Some(pointer) = target.strip_prefix('#') else {
        return Some(rules::unresolved_reference::finding(at, target, None));
    };
    // A name in place of a path is an `$anchor`, and may be there.
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    if parameters.pointer(pointer).is_none() {
        let argument = argument.replace('~', "~0").replace('/', "~1");
        let inside = format!("/properties/{argument}{pointer}");
        let found = parameters.pointer(&inside).map(|_| format!("#{inside}"));
        return Some(rules::unresolved_reference::finding(at, target, found.as_deref()));
    }
    is_endless(pointer, parameters).then(|| rules::unresolved_reference::endless(at, target))
}

/// Whether following references alone never comes to a schema.
fn is_endless(pointer: &str, parameters: &Value) -> bool {
    let mut at = pointer.to_owned();
    // No tool has so many in a row.
    for _ in 0..32 {
        let next = parameters.pointer(&at).and_then(|schema| schema.get("$ref")).and_then(Value::as_str);
        match next.and_then(|target| target.strip_prefix('#')) {
            Some(next) => next.clone_into(&mut at),
            None => return false,
        }
    }
    true
}
