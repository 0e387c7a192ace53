//! The content of a request: messages, arguments and results. Off by default. Long content is cut, and secrets are
//! removed before that, so that no part of a secret remains.

use std::io::{self, Write};
use std::sync::Arc;

use deftool_chat::Message;
use deftool_record::Redaction;
use opentelemetry::KeyValue;
use serde::Serialize;
use serde_json::{Value, json};

use crate::attribute::cut;
use crate::convention::{INPUT_MESSAGES, OUTPUT_MESSAGES};

/// Maximum length of a text that is kept until it is exported, in bytes.
const MAX_CAPTURED: usize = 128 << 10;
/// Maximum length of a text in an attribute, and of a whole attribute, in bytes.
const MAX_PART: usize = 16 << 10;
const MAX_ATTRIBUTE: usize = 64 << 10;

/// The content of a reply.
#[derive(Debug, Default)]
pub(crate) struct ReplyContent {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Parts of [`call_part`].
    pub(crate) calls: Vec<Value>,
    pub(crate) finish_reason: String,
}

/// Returns the attributes of a conversation and the answer, without secrets.
pub(crate) fn messages(input: &[Arc<Message>], output: ReplyContent, redaction: &Redaction) -> [KeyValue; 2] {
    [
        KeyValue::new(INPUT_MESSAGES, input_messages(input, redaction)),
        KeyValue::new(OUTPUT_MESSAGES, output_messages(output, redaction)),
    ]
}

/// Appends `text`, up to [`MAX_CAPTURED`] bytes in total.
pub(crate) fn capture(kept: &mut String, text: &str) {
    let room = MAX_CAPTURED.saturating_sub(kept.len());
    kept.push_str(start_of(text, room));
}

/// Returns a value as JSON text, truncated to [`MAX_CAPTURED`] bytes.
pub(crate) fn captured_json(value: &impl Serialize) -> String {
    let mut text = Bounded(Vec::new());
    // Fails at the limit.
    let _ = serde_json::to_writer(&mut text, value);
    match String::from_utf8(text.0) {
        Ok(text) => text,
        Err(error) => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).unwrap_or_default()
        }
    }
}

/// A writer that fails at the limit of a kept text.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_CAPTURED.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend(bytes.iter().take(room));
        if room == 0 && !bytes.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(room) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start_of(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns the newest messages that fit into an attribute.
fn input_messages(messages: &[Arc<Message>], redaction: &Redaction) -> String {
    let mut kept = Vec::new();
    let mut length = 0;
    for message in messages.iter().rev() {
        let mut value = input_message(message);
        redaction.value(&mut value);
        shorten(&mut value);
        let text = value.to_string();
        length += text.len() + 1;
        if length > MAX_ATTRIBUTE && !kept.is_empty() {
            break;
        }
        kept.push(text);
    }
    kept.reverse();
    format!("[{}]", kept.join(","))
}

fn input_message(message: &Message) -> Value {
    let text = |content: &str| json!({"type": "text", "content": start_of(content, MAX_CAPTURED)});
    match message {
        Message::System { content } => json!({"role": "system", "parts": [text(content)]}),
        Message::User { content, .. } => json!({"role": "user", "parts": [text(content)]}),
        Message::Assistant { content, tool_calls, .. } => {
            let mut parts = Vec::new();
            if !content.is_empty() {
                parts.push(text(content));
            }
            parts.extend(tool_calls.iter().map(|call| {
                let arguments = start_of(&call.function.arguments, MAX_CAPTURED);
                call_part(&call.id, &call.function.name, arguments)
            }));
            json!({"role": "assistant", "parts": parts})
        }
        Message::Tool { tool_call_id, content, .. } => {
            let response = parsed(start_of(content, MAX_CAPTURED));
            let part = json!({"type": "tool_call_response", "id": tool_call_id, "response": response});
            json!({"role": "tool", "parts": [part]})
        }
    }
}

/// Returns a call as a part of a message. `arguments`: JSON text.
pub(crate) fn call_part(id: &str, name: &str, arguments: &str) -> Value {
    // An exit call has no id.
    let id = (!id.is_empty()).then_some(id);
    json!({"type": "tool_call", "id": id, "name": name, "arguments": parsed(arguments)})
}

fn output_messages(reply: ReplyContent, redaction: &Redaction) -> String {
    let mut parts = Vec::new();
    if !reply.reasoning.is_empty() {
        parts.push(json!({"type": "reasoning", "content": reply.reasoning}));
    }
    if !reply.text.is_empty() {
        parts.push(json!({"type": "text", "content": reply.text}));
    }
    parts.extend(reply.calls);
    let mut message = json!([{"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}]);
    redaction.value(&mut message);
    shorten(&mut message);
    cut(message.to_string(), MAX_ATTRIBUTE)
}

/// Returns arguments or a result as JSON text, without secrets.
pub(crate) fn json_attribute(value: &impl Serialize, redaction: &Redaction) -> String {
    let mut value = parsed(&captured_json(value));
    redaction.value(&mut value);
    shorten(&mut value);
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    cut(text, MAX_ATTRIBUTE)
}

/// Returns JSON text as a value, and any other text as a string.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Cuts the long texts of a value.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_PART => {
            *text = format!("{}…", start_of(text, MAX_PART));
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use deftool_record::Secrets;

    use super::*;

    #[test]
    fn a_secret_at_a_limit_leaves_no_part() {
        let secret = "sk-0123456789abcdef0123456789abcdef";
        let redaction = Redaction::new(Some(secret), Secrets::default());
        for padding in [MAX_PART - 10, MAX_ATTRIBUTE - 10] {
            let text = format!("{}{secret} and more", "x".repeat(padding));
            let user = [Arc::new(Message::user(text.clone()))];
            let reply = ReplyContent { text: text.clone(), ..ReplyContent::default() };
            for shown in [
                input_messages(&user, &redaction),
                output_messages(reply, &redaction),
                json_attribute(&json!({ "a": text }), &redaction),
                json_attribute(&text, &redaction),
            ] {
                assert!(!shown.contains("sk-01") && shown.contains("xx"), "{padding}");
                assert!(shown.len() <= MAX_ATTRIBUTE, "{padding}: {}", shown.len());
            }
        }
    }

    #[test]
    fn the_newest_messages_are_kept_and_stay_json() {
        let redaction = Redaction::new(None, Secrets::default());
        let messages: Vec<Arc<Message>> =
            (0..100).map(|nth| Arc::new(Message::user(format!("{nth} {}", "é".repeat(9_000))))).collect();
        let text = input_messages(&messages, &redaction);
        assert!(text.len() <= MAX_ATTRIBUTE + 2);
        let kept: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(
            kept.len() > 1
                && kept.last().unwrap()["parts"][0]["content"].as_str().unwrap().starts_with("99 é")
        );
    }

    #[test]
    fn captured_texts_are_bounded() {
        let mut kept = String::new();
        for _ in 0..100 {
            capture(&mut kept, &"é".repeat(5_000));
        }
        assert!(kept.len() <= MAX_CAPTURED && kept.len() > MAX_CAPTURED - 4);
        let json = captured_json(&vec!["é".repeat(10_000); 100]);
        assert!(json.len() <= MAX_CAPTURED && json.len() > MAX_CAPTURED - 4);
        assert_eq!(captured_json(&json!({"a": [1, null]})), r#"{"a":[1,null]}"#);
    }
}
