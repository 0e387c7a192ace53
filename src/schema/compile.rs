//! A spec's tool → what a request holds of it, with findings for what its schema cannot be held to.

use super::examples::{check_calls, check_defaults, span_at};
use super::target::emit_definition;
use super::{SchemaError, ToolEntry, references, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::Tool;
use crate::spec::keywords;
use crate::text::{Location, Span};

/// Compiles `tool`. A keyword that is no JSON Schema is still sent, is not enforced, and is a finding.
pub fn compile_tool(tool: &Tool) -> (ToolEntry, Vec<Diagnostic>) {
    let (entry, problems) = ToolEntry::lenient(tool.kind, emit_definition(tool), tool.timeout);
    let mut findings = Vec::new();
    if let Some(parameters) = entry.definition.pointer("/function/parameters") {
        references::check(tool, parameters, &mut findings);
    }
    let has_lost_references = !findings.is_empty();
    findings.extend(problems.iter().filter_map(|problem| report(tool, problem, has_lost_references)));
    check_defaults(tool, &mut findings);
    check_calls(tool, &entry.validator, &mut findings);
    (entry, findings)
}

/// What the validator says of a schema, where no rule said it already.
fn report(tool: &Tool, problem: &SchemaError, has_lost_references: bool) -> Option<Diagnostic> {
    let location = Location { source: tool.source, span: span_of(tool, &problem.path) };
    let steps: Vec<&str> = problem.path.split('/').collect();
    let is_keyword = |step: &&str| keywords::find(step).is_some();
    // `/properties/x/enum/0`: the keyword is what counts.
    let keyword =
        steps.iter().rev().find(|step| step.parse::<usize>().is_err()).filter(|step| is_keyword(step));
    match keyword {
        Some(&"pattern") => Some(rules::invalid_pattern::finding(location)),
        Some(&("dependentRequired" | "const" | "default")) => {
            Some(rules::invalid_schema::finding(location, problem))
        }
        // Everything else that a keyword takes was looked at when it was read.
        Some(_) => None,
        None if has_lost_references => None,
        None => Some(rules::invalid_schema::finding(location, problem)),
    }
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
    let rest: String = steps.flat_map(|step| [String::from("/"), step]).collect();
    if rest.is_empty() { member.span() } else { span_at(&member.value, &rest) }
}
