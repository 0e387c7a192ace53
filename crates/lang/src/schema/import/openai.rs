//! OpenAI: chat completions, with the definition in an inner object, and responses, without it.

use super::model::Envelope;
use crate::spec::{Json, JsonKind};

/// Reads `{"type": "function", "function": {"name", "description", "parameters", "strict"}}`.
pub(super) fn read_chat(tool: &Json) -> Envelope<'_> {
    match tool.get("function").map(|member| &member.value) {
        Some(function) if matches!(function.kind, JsonKind::Object(_)) => {
            let mut envelope = Envelope::read(function, &["parameters"], &[]);
            envelope.leave_out(tool, "", &["type", "function"]);
            envelope
        }
        Some(_) | None => read_responses(tool),
    }
}

/// Reads `{"type": "function", "name", "description", "parameters", "strict"}`. The program `llm` prints
/// `{"name", "description", "arguments", "plugin"}`.
pub(super) fn read_responses(tool: &Json) -> Envelope<'_> {
    Envelope::read(tool, &["parameters", "arguments"], &["type", "plugin"])
}
