//! Anthropic messages.

use super::Envelope;
use crate::spec::Json;

/// `{"name", "description", "input_schema", "cache_control" …}`; a `type` says that it is no tool of theirs.
pub(super) fn read(tool: &Json) -> Envelope<'_> {
    Envelope::read(tool, &["input_schema"], &["type"])
}
