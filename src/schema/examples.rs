//! What a spec gives as values of its own schemas: `:default`, `:examples`, `:accepts` and `:rejects`.
//!
//! A [`Judge`] says whether a default fits; the calls are held against the tool's own validator.

use super::judge::Judge;
use super::pointer::{self, enter};
use super::walk::schemas_of;
use super::{ArgumentValidator, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::{Json, JsonKind, Member, Tool};
use crate::text::{Location, Span};

/// Most of the `:examples` of one schema that are told.
const MAX_MISFITS: usize = 5;

/// Holds every `:default` and `:examples` of a tool against the schema that it stands in.
pub(super) fn check_defaults(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for (_, schema) in schemas_of(tool) {
        let judge = Judge::new(schema);
        for member in schema {
            match (member.key.as_str(), &member.value.kind) {
                ("default", _) if !is_nil_elsewhere(schema, &member.value) => {
                    if let Some(misfit) = judge.misfit(&member.value) {
                        findings.push(rules::default_misfit::finding(at(member.value.span), &misfit));
                    }
                }
                ("examples", JsonKind::Array(values)) => {
                    let misfits = values.iter().filter_map(|value| Some((value.span, judge.misfit(value)?)));
                    for (span, misfit) in misfits.take(MAX_MISFITS) {
                        findings.push(rules::example_misfit::finding(at(span), &misfit));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Holds the calls that a tool gives as examples against its parameters.
pub(super) fn check_calls(tool: &Tool, validator: &ArgumentValidator, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for example in &tool.accepts {
        if let Some((pointer, violation)) = validator.first_violation(&example.to_value()) {
            let span = span_at(example, &pointer);
            findings.push(rules::accepted_example_fails::finding(at(span), &violation));
        }
    }
    for example in &tool.rejects {
        if validator.is_valid(&example.to_value()) {
            findings.push(rules::rejected_example_passes::finding(at(example.span)));
        }
    }
}

/// The place in `value` that a JSON pointer leads to, or the nearest around it.
pub(super) fn span_at(value: &Json, pointer: &str) -> Span {
    let mut value = value;
    for step in pointer::steps(pointer) {
        let Some(inside) = enter(value, &step) else { break };
        value = inside.value();
    }
    value.span
}

/// nil is told by a rule of its own.
fn is_nil_elsewhere(schema: &[Member], value: &Json) -> bool {
    let type_name =
        schema.iter().find(|member| member.key == "type").and_then(|member| member.value.as_str());
    matches!(&value.kind, JsonKind::Object(members) if members.is_empty())
        && type_name.is_some_and(|name| name != "object" && name != "null")
}
