//! A chat request as the body of `POST /v1/chat/completions`.
//!
//! In: a [`ChatRequest`] and the [`BodyForm`] that its server takes. Out: JSON. Keys stand in a fixed order, so that
//! two equal requests have equal bodies (prompt caches and recordings depend on it).
//!
//! Absent: merging neighbours of one role, call/result pairs, BIOS: those belong to whoever makes the messages.
//!
//! Source: the `OpenAI` chat completions API; what servers make of it is in the tables of tests/wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::message::Message;

/// A request for one reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools as the server's API wants them; none: the field is left out, since some servers refuse an empty list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// Every other member: `temperature`, `max_tokens`, `tool_choice`, a server's own. `tool_choice` is left out
    /// with the tools. Those that this module writes itself are not taken from here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

/// What a server takes; servers that refuse a member with HTTP 400 get the request once more in another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyForm {
    /// Stream the reply; off for the probe after an empty stream.
    pub stream: bool,
    /// Ask for token counts in the stream (`stream_options.include_usage`).
    pub include_usage: bool,
    /// Send `max_tokens` under its newer name, `max_completion_tokens`.
    pub max_completion_tokens: bool,
}

impl Default for BodyForm {
    fn default() -> Self {
        Self { stream: true, include_usage: true, max_completion_tokens: false }
    }
}

/// Members that are never taken from `params`.
pub const OWN_MEMBERS: &[&str] = &["model", "messages", "tools", "stream", "stream_options"];

impl ChatRequest {
    /// The body as JSON.
    pub fn encode_body(&self, form: BodyForm) -> Value {
        let mut body = Map::new();
        body.insert(String::from("model"), json!(self.model));
        body.insert(String::from("messages"), self.messages.iter().map(encode_message).collect());
        if !self.tools.is_empty() {
            body.insert(String::from("tools"), json!(self.tools));
        }
        for (name, value) in &self.params {
            let needs_tools = matches!(name.as_str(), "tool_choice" | "parallel_tool_calls");
            if OWN_MEMBERS.contains(&name.as_str()) || (needs_tools && self.tools.is_empty()) {
                continue;
            }
            let name = if form.max_completion_tokens && name == "max_tokens" {
                "max_completion_tokens"
            } else {
                name
            };
            body.insert(name.to_owned(), value.clone());
        }
        body.insert(String::from("stream"), json!(form.stream));
        if form.stream && form.include_usage {
            body.insert(String::from("stream_options"), json!({ "include_usage": true }));
        }
        Value::Object(body)
    }
}

fn encode_message(message: &Message) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Assistant { content, tool_calls } if tool_calls.is_empty() => {
            json!({ "role": "assistant", "content": content })
        }
        Message::Assistant { content, tool_calls } => {
            // Null is the API's own form for "only calls"; some templates print an empty string as a turn of its own.
            let content = if content.is_empty() { Value::Null } else { json!(content) };
            json!({ "role": "assistant", "content": content, "tool_calls": tool_calls })
        }
        Message::Tool { tool_call_id, content } => {
            json!({ "role": "tool", "tool_call_id": tool_call_id, "content": content })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::MessageToolCall;
    use super::*;

    fn request() -> ChatRequest {
        let call = MessageToolCall::new("call00001", "now", "{}");
        ChatRequest {
            model: String::from("m"),
            messages: vec![
                Message::System { content: String::from("s") },
                Message::User { content: String::from("u") },
                Message::Assistant { content: String::new(), tool_calls: vec![call] },
                Message::Tool { tool_call_id: String::from("call00001"), content: String::from("12") },
                Message::Assistant { content: String::new(), tool_calls: Vec::new() },
            ],
            ..ChatRequest::default()
        }
    }

    #[test]
    fn messages_in_the_apis_form() {
        let body = request().encode_body(BodyForm::default());
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "s" },
                { "role": "user", "content": "u" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "call00001", "type": "function", "function": { "name": "now", "arguments": "{}" } }
                ] },
                { "role": "tool", "tool_call_id": "call00001", "content": "12" },
                { "role": "assistant", "content": "" },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        assert_eq!(body.to_string(), expected.to_string());
    }

    #[test]
    fn params_never_override() {
        let mut request = request();
        request.messages.clear();
        let params = json!({
            "temperature": 0, "max_tokens": 9, "stream": false, "messages": [], "tools": [], "model": "x",
            "stream_options": {}, "tool_choice": "required",
        });
        request.params = params.as_object().cloned().unwrap();
        let form = BodyForm { stream: false, include_usage: true, max_completion_tokens: true };
        let expected = json!({ "model": "m", "messages": [], "temperature": 0, "max_completion_tokens": 9, "stream": false });
        assert_eq!(request.encode_body(form), expected);

        request.tools = vec![json!({ "type": "function" })];
        let body = request.encode_body(BodyForm { include_usage: false, ..BodyForm::default() });
        assert_eq!(body.get("tool_choice"), Some(&json!("required")));
        assert_eq!(body.get("tools"), Some(&json!([{ "type": "function" }])));
        assert_eq!(body.get("stream_options"), None);
    }

    #[test]
    fn requests_survive_storage() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ChatRequest>(&text).unwrap(), request);
    }
}
