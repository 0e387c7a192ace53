//! OpenAI responses: the chat completions definition without the inner `function` object.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::openai::emit_parameters;
use crate::spec::Tool;

/// Returns one element of a request's `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "name": tool.name.value,
        "description": emit_description(Target::OpenAiResponses, tool),
        "parameters": emit_parameters(tool),
    })
}
