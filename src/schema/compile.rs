//! A spec's tool → what a request holds of it, with findings for what its schema cannot be held to.

use super::locate::locate_near;
use super::target::emit_definition;
use super::{SchemaError, ToolEntry};
use crate::diagnostic::Diagnostic;
use crate::schema::rules;
use crate::spec::Tool;
use crate::text::Location;

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
    let location = Location { source: tool.source, span: locate_near(tool, &problem.path) };
    let message = format!("this is no JSON Schema: {}", problem.message);
    Some(
        Diagnostic::new(&rules::INVALID_SCHEMA, location, message)
            .note("it is sent as it is, which some APIs refuse, and deftool does not enforce it"),
    )
}
