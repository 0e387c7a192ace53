//! A chat request as the body of `POST /v1/chat/completions`, or of what [`super::responses`] makes of it.
//!
//! In: a [`ChatRequest`] and the [`BodyForm`] that its server takes. Out: JSON. Keys stand in a fixed order, so that
//! two equal requests have equal bodies (prompt caches and recordings depend on it).
//!
//! Absent: BIOS and conversation, which belong to whoever makes the messages; here they are only put where a server takes them
//! (`shape`, `tool_offer`).
//!
//! Source: the `OpenAI` chat completions API; what servers make of it is in the tables of tests/wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dialect::{Capabilities, Feature};
use super::message::Message;
use super::shape::shape_messages;
use super::swap::{Swap, Swaps, TOKEN_LIMITS};
use super::tool_offer::{Offer, offer};
use super::{Api, responses};
use crate::spec::Dialect;

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

/// How a body is written: what its server takes, and what it taught by refusing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyForm {
    /// Which API it goes to.
    pub api: Api,
    /// Stream the reply; off for the probe after an empty stream.
    pub stream: bool,
    /// What is known of the server.
    pub server: Capabilities,
    /// What it refused before.
    pub swaps: Swaps,
}

impl Default for BodyForm {
    fn default() -> Self {
        Self { api: Api::default(), stream: true, server: Capabilities::default(), swaps: Swaps::default() }
    }
}

/// Members that are never taken from `params`.
pub const OWN_MEMBERS: &[&str] = &["model", "messages", "tools", "stream", "stream_options"];

/// What llama.cpp tells more for: how far it is with a prompt. It keeps the prompt of the turn before.
const PROGRESS_MEMBERS: [&str; 2] = ["cache_prompt", "return_progress"];

impl ChatRequest {
    /// The body as JSON.
    pub fn encode_body(&self, form: BodyForm) -> Value {
        match form.api {
            Api::ChatCompletions => self.encode_completion(form),
            Api::Responses => responses::encode_body(self, form),
        }
    }

    fn encode_completion(&self, form: BodyForm) -> Value {
        let BodyForm { stream, server, swaps, .. } = form;
        let Offer { tools, choice } = offer(self, form);
        let mut body = Map::new();
        body.insert(String::from("model"), json!(self.model));
        let messages = shape_messages(&self.messages, swaps);
        body.insert(String::from("messages"), messages.iter().map(encode_message).collect());
        if !tools.is_empty() {
            body.insert(String::from("tools"), json!(tools));
        }
        if let Some(choice) = choice {
            body.insert(String::from("tool_choice"), choice);
        }
        for (name, value) in self.taken_params(!tools.is_empty(), swaps) {
            if !OWN_MEMBERS.contains(&name)
                && let Some(name) = self.renamed(name, swaps)
            {
                body.insert(name.to_owned(), value.clone());
            }
        }
        if server.shaped && stream {
            add_extras(&mut body, server, swaps, !tools.is_empty());
        }
        body.insert(String::from("stream"), json!(stream));
        if stream && !swaps.has(Swap::NoStreamOptions) {
            body.insert(String::from("stream_options"), json!({ "include_usage": true }));
        }
        Value::Object(body)
    }

    /// The parameters that the server takes, for either API, without `tool_choice`, which is the [`offer`]'s.
    pub(super) fn taken_params(&self, has_tools: bool, swaps: Swaps) -> impl Iterator<Item = (&str, &Value)> {
        let params = self.params.iter().map(|(name, value)| (name.as_str(), value));
        params.filter(move |(name, _)| match *name {
            "tool_choice" => false,
            "parallel_tool_calls" => has_tools && !swaps.has(Swap::NoParallelToolCalls),
            name if PROGRESS_MEMBERS.contains(&name) => !swaps.has(Swap::NoProgress),
            _ => true,
        })
    }

    /// A parameter's name; the token limit has two, of which a server may take one. `None`: it is there under that one.
    fn renamed<'n>(&self, name: &'n str, swaps: Swaps) -> Option<&'n str> {
        let [old, new] = TOKEN_LIMITS;
        let (from, to) = match (swaps.has(Swap::UseMaxTokens), swaps.has(Swap::UseMaxCompletionTokens)) {
            (true, false) => (new, old),
            (false, true) => (old, new),
            // Models of one server may differ: the worker's own name is as good as the other.
            (true, true) | (false, false) => return Some(name),
        };
        if name != from {
            Some(name)
        } else if self.params.contains_key(to) {
            None
        } else {
            Some(to)
        }
    }
}

/// What a server has beyond the API, unless the worker's `:params` say something of it.
fn add_extras(body: &mut Map<String, Value>, server: Capabilities, swaps: Swaps, has_tools: bool) {
    let mut add = |name: &str| {
        body.entry(name).or_insert(Value::Bool(true));
    };
    if server.takes(Feature::PromptProgress) && !swaps.has(Swap::NoProgress) {
        PROGRESS_MEMBERS.into_iter().for_each(&mut add);
    }
    // The others take it as true by themselves.
    if server.dialect == Dialect::LlamaCpp
        && has_tools
        && server.parallel_calls == Some(true)
        && !swaps.has(Swap::NoParallelToolCalls)
    {
        add("parallel_tool_calls");
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
        let swapped = Swaps::default().with(Swap::UseMaxCompletionTokens);
        let form = BodyForm { stream: false, swaps: swapped, ..BodyForm::default() };
        let expected = json!({ "model": "m", "messages": [], "temperature": 0, "max_completion_tokens": 9, "stream": false });
        assert_eq!(request.encode_body(form), expected);

        request.tools = vec![json!({ "type": "function" })];
        let swaps = Swaps::default().with(Swap::NoStreamOptions);
        let body = request.encode_body(BodyForm { swaps, ..BodyForm::default() });
        assert_eq!(body.get("tool_choice"), Some(&json!("required")));
        assert_eq!(body.get("tools"), Some(&json!([{ "type": "function" }])));
        assert_eq!(body.get("stream_options"), None);
    }

    #[test]
    fn the_token_limit_is_renamed_one_way() {
        let (to_new, to_old) = (Swap::UseMaxCompletionTokens, Swap::UseMaxTokens);
        for (params, swaps, expected) in [
            (json!({ "max_tokens": 9 }), vec![to_new], json!({ "max_completion_tokens": 9 })),
            (json!({ "max_completion_tokens": 9 }), vec![to_new], json!({ "max_completion_tokens": 9 })),
            (json!({ "max_completion_tokens": 9 }), vec![to_old], json!({ "max_tokens": 9 })),
            (json!({ "max_tokens": 9 }), vec![to_old], json!({ "max_tokens": 9 })),
            (
                json!({ "max_tokens": 9, "max_completion_tokens": 8 }),
                vec![to_new],
                json!({ "max_completion_tokens": 8 }),
            ),
            (
                json!({ "max_completion_tokens": 8, "max_tokens": 9 }),
                vec![to_old],
                json!({ "max_tokens": 9 }),
            ),
            (json!({ "max_tokens": 9 }), vec![to_old, to_new], json!({ "max_tokens": 9 })),
        ] {
            let request =
                ChatRequest { params: params.as_object().cloned().unwrap(), ..ChatRequest::default() };
            let form = BodyForm { stream: false, swaps: Swaps::from(swaps), ..BodyForm::default() };
            let mut whole = json!({ "model": "", "messages": [] });
            whole.as_object_mut().unwrap().extend(expected.as_object().cloned().unwrap());
            whole["stream"] = json!(false);
            assert_eq!(request.encode_body(form), whole, "{params}");
        }
    }

    #[test]
    fn requests_survive_storage() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ChatRequest>(&text).unwrap(), request);
    }
}
