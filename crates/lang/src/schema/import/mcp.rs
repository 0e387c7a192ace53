//! MCP: an element of the response to `tools/list`.
//!
//! Source: `Tool` and `ToolAnnotations` of the MCP schema, 2025-06-18. Only hints with the value true have an effect.

use super::model::{Envelope, is_null};
use crate::spec::{Effect, Json, JsonKind};

/// Reads `{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}`.
pub(super) fn read(tool: &Json) -> Envelope<'_> {
    let mut envelope = Envelope::read(tool, &["inputSchema"], &["annotations", "outputSchema"]);
    envelope.returns = tool.get("outputSchema").map(|member| &member.value).filter(|schema| !is_null(schema));
    if let Some(annotations) = tool.get("annotations").map(|member| &member.value) {
        let is_hinted =
            |key: &str| annotations.get(key).is_some_and(|hint| hint.value.kind == JsonKind::Bool(true));
        envelope.effect = if is_hinted("readOnlyHint") {
            Effect::Pure
        } else if is_hinted("idempotentHint") {
            Effect::Keyed
        } else {
            Effect::Once
        };
        envelope.leave_out(annotations, "annotations.", &["readOnlyHint", "idempotentHint"]);
    }
    envelope
}
