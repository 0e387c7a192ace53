//! OpenAI chat completions. Ollama and llama.cpp use the same format.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::parameters::{Close, emit_properties, emit_required};
use crate::spec::Tool;

/// Returns one element of a request's `tools`.
pub(super) fn emit_tool(target: Target, tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name.value,
            "description": emit_description(target, tool),
            "parameters": emit_parameters(tool),
        }
    })
}

/// Returns the parameters schema with all objects closed.
pub(super) fn emit_parameters(tool: &Tool) -> Value {
    if tool.arguments.is_empty() {
        return json!({"type": "object", "properties": {}});
    }
    json!({
        "type": "object",
        "properties": emit_properties(tool, Close::Yes),
        "required": emit_required(tool),
        "additionalProperties": false,
    })
}
