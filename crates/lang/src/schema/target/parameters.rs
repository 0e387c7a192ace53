//! Shared parts of the parameters schemas of all targets.

use serde_json::{Map, Value, json};

use crate::spec::Argument;
use crate::spec::Tool;

/// Whether to close objects with `"additionalProperties": false` if the spec does not specify it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    Yes,
    No,
}

/// Returns the `properties` of a tool.
pub(super) fn emit_properties(tool: &Tool, close: Close) -> Map<String, Value> {
    tool.arguments
        .iter()
        .map(|argument| (argument.name.value.clone(), Value::Object(emit_argument(argument, close))))
        .collect()
}

/// Returns the names of the required arguments.
pub(super) fn emit_required(tool: &Tool) -> Value {
    tool.arguments
        .iter()
        .filter(|argument| !argument.optional)
        .map(|argument| json!(argument.name.value))
        .collect()
}

fn emit_argument(argument: &Argument, close: Close) -> Map<String, Value> {
    let mut schema: Map<String, Value> =
        argument.schema.iter().map(|member| (member.key.clone(), member.value.to_value())).collect();
    if argument.type_name() == Some("object") {
        schema.entry("required").or_insert_with(|| json!([]));
        if close == Close::Yes {
            schema.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }
    schema
}
