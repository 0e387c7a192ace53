//! The Model Context Protocol: a tool as `tools/list` returns it.
//!
//! `annotations` express `:effect`: a pure tool changes nothing, a keyed tool may be called again with the same
//! arguments (specification of 2025-11-25, `ToolAnnotations`). A tool that may run only once has no annotations, so
//! hosts assume the most dangerous behaviour.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::openai::emit_parameters;
use crate::spec::{Effect, Tool};

/// Returns one element of `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    let mut definition = json!({
        "name": tool.name.value,
        "description": emit_description(Target::Mcp, tool),
        "inputSchema": emit_parameters(tool),
    });
    let annotations = match tool.effect {
        Effect::Pure => json!({"readOnlyHint": true, "idempotentHint": true}),
        Effect::Keyed => json!({"idempotentHint": true}),
        Effect::Once => return definition,
    };
    if let Value::Object(members) = &mut definition {
        members.insert(String::from("annotations"), annotations);
    }
    definition
}
