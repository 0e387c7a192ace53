//! The API key spelled over several deltas, which no redaction of single reads can see.
//!
//! Nothing can be taken back that was shown, and holding text back would make a replay differ; so the reply ends before
//! the piece that would complete the key is shown or recorded.

use super::transport::Transport;
use crate::chat::{ChatEvent, RawArguments, RawCall};

/// As much of what was said before is kept, in bytes: more than any key has.
const KEPT: usize = 1024;

/// Watches one reply.
#[derive(Debug, Default)]
pub(super) struct EchoGuard {
    text: String,
    reasoning: String,
}

impl EchoGuard {
    /// Whether `events` complete the key, with what came before them.
    pub(super) fn completes_key(&mut self, events: &[ChatEvent], transport: &dyn Transport) -> bool {
        events.iter().any(|event| match event {
            ChatEvent::Text { text } => completes(&mut self.text, text, transport),
            ChatEvent::Reasoning { text } => completes(&mut self.reasoning, text, transport),
            ChatEvent::ToolCallDelta { name, .. } => transport.holds_secret(name),
            ChatEvent::Progress { .. } => false,
            ChatEvent::Ended { reply } => reply.calls.iter().any(|call| is_in_call(call, transport)),
        })
    }
}

fn completes(before: &mut String, piece: &str, transport: &dyn Transport) -> bool {
    before.push_str(piece);
    if transport.holds_secret(before) {
        return true;
    }
    let mut cut = before.len().saturating_sub(KEPT);
    while !before.is_char_boundary(cut) {
        cut += 1;
    }
    before.drain(..cut);
    false
}

fn is_in_call(call: &RawCall, transport: &dyn Transport) -> bool {
    let arguments = match &call.arguments {
        RawArguments::Object { value } => serde_json::to_string(value).unwrap_or_default(),
        RawArguments::Malformed { text, .. } => text.clone(),
    };
    transport.holds_secret(&arguments) || transport.holds_secret(&call.name)
}
