//! Compiles a tool of a spec for use in requests, and reports the parts of its schema that cannot be enforced.

use serde_json::Value;

use super::asks::check_asks;
use super::confirm::{check_confirm, compile_confirm};
use super::examples::{check_calls, check_defaults, span_at};
use super::locate::locate_near;
use super::plain::is_plain;
use super::problems::{check_patterns, check_schema, report};
use super::target::{Target, description_for, emit_definition};
use super::walk::schemas_of;
use super::{ArgumentValidator, ToolEntry, cost, references, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::{Api, Tool};
use crate::text::Location;

/// Compiles `tool`. A keyword that is not valid JSON Schema is sent but not enforced.
pub fn compile_tool(tool: &Tool) -> ToolEntry {
    let (mut entry, _) = ToolEntry::lenient(tool.kind, emit_definition(tool), tool.timeout);
    entry.confirm = compile_confirm(tool);
    entry.effect = tool.effect;
    entry.max_result = tool.max_result;
    entry.returns = tool
        .returns
        .as_ref()
        .map(|schema| ArgumentValidator::compile_lenient(&tool.name.value, schema.to_value()).0);
    entry
}

/// Compiles `tool` for requests to `api`. Returns `None` if the result is the same as for chat completions; only the
/// description from `:targets` can differ.
pub fn compile_tool_for(api: Api, tool: &Tool) -> Option<ToolEntry> {
    let target = match api {
        Api::ChatCompletions => Target::OpenAi,
        Api::Responses => Target::OpenAiResponses,
        Api::Messages => Target::Anthropic,
    };
    let description = description_for(target, tool).0;
    if description == description_for(Target::OpenAi, tool).0 {
        return None;
    }
    let mut entry = compile_tool(tool);
    if let Some(sent) = entry.definition.pointer_mut("/function/description") {
        *sent = Value::from(description);
    }
    Some(entry)
}

/// Checks the schema of `tool`, its defaults, its confirmation conditions, its examples and its asks.
pub fn check_tool(tool: &Tool) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let is_plain = tool.arguments.iter().all(|argument| is_plain(&argument.schema));
    if !is_plain || !tool.accepts.is_empty() || !tool.rejects.is_empty() {
        check_compiled(tool, &mut findings);
    }
    check_defaults(tool, &mut findings);
    check_confirm(tool, &mut findings);
    check_returns(tool, &mut findings);
    check_asks(tool, &mut findings);
    findings
}

/// Checks the schema of the results, and the results in `:accepts`.
fn check_returns(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let Some(returns) = &tool.returns else { return };
    let at = |span| Location { source: tool.source, span };
    let Some(validator) = check_schema(&tool.name.value, at(returns.span), returns, findings) else { return };
    for result in tool.accepts.iter().filter_map(|sample| sample.returns.as_ref()) {
        if let Some((pointer, violation)) = validator.first_violation(&result.to_value()) {
            let location = at(span_at(result, &pointer));
            findings.push(rules::accepted_example_fails::result(location, &violation));
        }
    }
}

fn check_compiled(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let definition = emit_definition(tool);
    let parameters = definition.pointer("/function/parameters").unwrap_or(&Value::Null);
    references::check(tool, parameters, findings);
    if let Some(excess) = cost::excess(parameters) {
        let location = Location { source: tool.source, span: tool.name.span };
        return findings.push(rules::costly_schema::finding(location, &excess));
    }
    let (entry, problems) = ToolEntry::lenient(tool.kind, definition, tool.timeout);
    let parameters = entry.definition.pointer("/function/parameters").unwrap_or(&Value::Null);
    let has_lost_references = !findings.is_empty();
    check_patterns(tool.source, schemas_of(tool).map(|(_, schema)| schema), findings);
    for problem in &problems {
        let text = parameters.pointer(&problem.path).and_then(Value::as_str);
        let at = Location { source: tool.source, span: locate_near(tool, &problem.path) };
        findings.extend(report(at, problem, text, has_lost_references));
    }
    check_calls(tool, &entry.validator, findings);
}
