//! OpenAI responses: the chat completions definition without the inner `function` object.

use serde_json::{Value, json};

use super::openai::emit_parameters;
use super::{Target, description_for};
use crate::spec::Tool;

/// Returns one element of a request's `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "name": tool.name.value,
        "description": description_for(Target::OpenAiResponses, tool).0,
        "parameters": emit_parameters(tool),
    })
}
