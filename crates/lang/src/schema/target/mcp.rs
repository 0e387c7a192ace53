//! The Model Context Protocol: a tool as `tools/list` returns it.
//!
//! `annotations` express `:effect`: a pure tool changes nothing, a keyed tool may be called again with the same
//! arguments (specification of 2025-11-25, `ToolAnnotations`). A tool that may run only once has no annotations, so
//! hosts assume the most dangerous behaviour.
//!
//! `outputSchema` is `:returns`. Before 2026-07-28 it must describe an object, so other schemas are left out.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::openai::emit_parameters;
use crate::spec::{Effect, Json, Tool};

/// Returns one element of `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    let mut definition = json!({
        "name": tool.name.value,
        "description": emit_description(Target::Mcp, tool),
        "inputSchema": emit_parameters(tool),
    });
    if let Some(schema) = tool.returns.as_ref().map(Json::to_value).filter(is_of_objects) {
        definition["outputSchema"] = schema;
    }
    definition["annotations"] = match tool.effect {
        Effect::Pure => json!({"readOnlyHint": true, "idempotentHint": true}),
        Effect::Keyed => json!({"idempotentHint": true}),
        Effect::Once => return definition,
    };
    definition
}

fn is_of_objects(schema: &Value) -> bool {
    schema["type"] == "object"
}
