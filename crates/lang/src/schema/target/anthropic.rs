//! Anthropic messages: `input_schema`; objects that the spec leaves open stay open.

use serde_json::{Value, json};

use super::model::{Target, emit_description};
use super::parameters::{Close, emit_properties, emit_required};
use crate::spec::Tool;

/// Returns one element of a request's `tools`.
pub(super) fn emit_tool(tool: &Tool) -> Value {
    json!({
        "name": tool.name.value,
        "description": emit_description(Target::Anthropic, tool),
        "input_schema": {
            "type": "object",
            "properties": emit_properties(tool, Close::No),
            "required": emit_required(tool),
        }
    })
}
