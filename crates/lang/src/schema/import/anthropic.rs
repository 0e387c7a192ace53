//! Anthropic messages.

use super::model::Envelope;
use crate::spec::Json;

/// Reads `{"name", "description", "input_schema", "cache_control" …}`. A `type` marks a tool defined by the caller.
pub(super) fn read(tool: &Json) -> Envelope<'_> {
    Envelope::read(tool, &["input_schema"], &["type"])
}
