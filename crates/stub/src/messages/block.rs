//! The message and its content blocks: text, thinking, tool use.

use serde_json::{Value, json};

/// Returns a message.
pub(super) fn message(model: &str, content: Vec<Value>, stop_reason: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": "msg_stub", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
    })
}

/// A content block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The index in its events, which omit `None`.
    pub(super) index: Option<Value>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text(String),
    Thinking(String),
    ToolUse {
        id: Option<Value>,
        name: Value,
        /// Usually the JSON as a string. Another value is sent in the start of the block.
        input: Option<Value>,
        /// The index of the last chunk with a part of the call.
        last: usize,
    },
}

impl Block {
    /// Returns the block as it is when it starts.
    pub(super) fn started(&self) -> Value {
        match &self.kind {
            Kind::Text(_) => json!({"type": "text", "text": ""}),
            Kind::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Kind::ToolUse { id, name, input, last: _ } => {
                let input =
                    input.as_ref().map(|input| if input.is_string() { json!({}) } else { input.clone() });
                tool_use(id.as_ref(), name, input)
            }
        }
    }

    /// Returns the whole block. Input that is not valid JSON stays a string.
    pub(super) fn whole(&self) -> Value {
        match &self.kind {
            Kind::Text(text) => json!({"type": "text", "text": text}),
            Kind::Thinking(thought) => {
                json!({"type": "thinking", "thinking": thought, "signature": signature(thought)})
            }
            Kind::ToolUse { id, name, input, last: _ } => {
                let parsed = |text: &str| match text {
                    "" => Some(json!({})),
                    text => serde_json::from_str(text).ok(),
                };
                let input = input.clone().map(|input| input.as_str().and_then(parsed).unwrap_or(input));
                tool_use(id.as_ref(), name, input)
            }
        }
    }

    /// Returns an event of the block.
    pub(super) fn event(&self, kind: &str, member: Option<(&str, Value)>) -> Value {
        let mut event = json!({"type": kind});
        if let Value::Object(members) = &mut event {
            members.extend(self.index.clone().map(|index| (String::from("index"), index)));
            members.extend(member.map(|(name, value)| (name.to_owned(), value)));
        }
        event
    }
}

fn tool_use(id: Option<&Value>, name: &Value, input: Option<Value>) -> Value {
    let mut block = json!({"type": "tool_use", "name": name});
    if let Value::Object(members) = &mut block {
        members.extend(id.map(|id| (String::from("id"), id.clone())));
        members.extend(input.map(|input| (String::from("input"), input)));
    }
    block
}

/// The start of every signature.
const SIGNATURE: &str = "stub";

/// Returns the signature of a thought. It depends on the text only, so that a request shows whether a thought was
/// changed.
pub(crate) fn signature(thought: &str) -> String {
    // FNV-1a.
    let hash = thought.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{SIGNATURE}{hash:016x}")
}

/// Whether the stub made a signature, for this thought or for another one.
pub(super) fn is_own(signature: &str) -> bool {
    signature.len() == SIGNATURE.len() + 16 && signature.starts_with(SIGNATURE)
}
