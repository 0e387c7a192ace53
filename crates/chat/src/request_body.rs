//! A chat request as the body of `POST /v1/chat/completions`. [`super::responses`] encodes it for the other API.
//!
//! In: a [`ChatRequest`] and the [`BodyForm`] for its server. Out: JSON. Keys are in a fixed order, so that equal
//! requests have equal bodies. Prompt caches and recordings depend on it.
//!
//! The contents of BIOS and conversation are not created here; `shape` and `tool_offer` only adapt them to the server.
//!
//! Source: the `OpenAI` chat completions API; the tables of tests/wire describe the behaviour of servers.

use deftool_lang::spec::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body_fallback::{BodyFallback, BodyFallbacks, TOKEN_LIMITS};
use super::dialect::{Capabilities, Feature};
use super::message::Message;
use super::shape::shape_messages;
use super::tool_offer::{ToolOffer, offer};
use super::{Api, responses};

/// A request for one reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tool definitions in the format of the API. An empty list is omitted, because some servers reject it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// All other members: `temperature`, `max_tokens`, `tool_choice`, server-specific ones. `tool_choice` is omitted if
    /// there are no tools. [`OWN_MEMBERS`] are ignored.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

/// The form of a body: the API, the server's capabilities, and the fallbacks after rejected requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyForm {
    /// The API that the request is sent to.
    pub api: Api,
    /// Whether the reply is streamed; false for the probe after an empty stream.
    pub stream: bool,
    /// The known properties of the server.
    pub server: Capabilities,
    /// The fallbacks that are applied.
    pub fallbacks: BodyFallbacks,
}

impl Default for BodyForm {
    fn default() -> Self {
        Self {
            api: Api::default(),
            stream: true,
            server: Capabilities::default(),
            fallbacks: BodyFallbacks::default(),
        }
    }
}

/// Members that are set by this program and ignored in `params`.
pub const OWN_MEMBERS: &[&str] = &["model", "messages", "tools", "stream", "stream_options"];

/// Members that make llama.cpp report its progress with a prompt and reuse the prompt of the previous turn.
const PROGRESS_MEMBERS: [&str; 2] = ["cache_prompt", "return_progress"];

impl ChatRequest {
    /// Returns the body as JSON.
    pub fn encode_body(&self, form: BodyForm) -> Value {
        match form.api {
            Api::ChatCompletions => self.encode_completion(form),
            Api::Responses => responses::encode_body(self, form),
        }
    }

    fn encode_completion(&self, form: BodyForm) -> Value {
        let BodyForm { stream, server, fallbacks, .. } = form;
        let ToolOffer { tools, choice } = offer(self, form);
        let mut body = Map::new();
        body.insert(String::from("model"), json!(self.model));
        let messages = shape_messages(&self.messages, fallbacks);
        body.insert(String::from("messages"), messages.iter().map(encode_message).collect());
        if !tools.is_empty() {
            body.insert(String::from("tools"), json!(tools));
        }
        if let Some(choice) = choice {
            body.insert(String::from("tool_choice"), choice);
        }
        for (name, value) in self.accepted_params(!tools.is_empty(), fallbacks) {
            if !OWN_MEMBERS.contains(&name)
                && let Some(name) = self.renamed(name, fallbacks)
            {
                body.insert(name.to_owned(), value.clone());
            }
        }
        if server.shaped && stream {
            add_extras(&mut body, server, fallbacks, !tools.is_empty());
        }
        body.insert(String::from("stream"), json!(stream));
        if stream && !fallbacks.has(BodyFallback::NoStreamOptions) {
            body.insert(String::from("stream_options"), json!({ "include_usage": true }));
        }
        Value::Object(body)
    }

    /// Returns the parameters that the server accepts, for either API. `tool_choice` is not included, see [`offer`].
    pub(super) fn accepted_params(
        &self,
        has_tools: bool,
        fallbacks: BodyFallbacks,
    ) -> impl Iterator<Item = (&str, &Value)> {
        let params = self.params.iter().map(|(name, value)| (name.as_str(), value));
        params.filter(move |(name, _)| match *name {
            "tool_choice" => false,
            "parallel_tool_calls" => has_tools && !fallbacks.has(BodyFallback::NoParallelToolCalls),
            name if PROGRESS_MEMBERS.contains(&name) => !fallbacks.has(BodyFallback::NoProgress),
            _ => true,
        })
    }

    /// Returns the name under which a parameter is sent. The token limit has two names, of which a server may accept
    /// only one. Returns `None` if the parameter is also given under the new name.
    fn renamed<'n>(&self, name: &'n str, fallbacks: BodyFallbacks) -> Option<&'n str> {
        let [old, new] = TOKEN_LIMITS;
        let (from, to) = match (
            fallbacks.has(BodyFallback::UseMaxTokens),
            fallbacks.has(BodyFallback::UseMaxCompletionTokens),
        ) {
            (true, false) => (new, old),
            (false, true) => (old, new),
            // The models of one server differ: without better knowledge, the worker's own name is used.
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

/// Adds server-specific members, unless the worker's `:params` contain them.
fn add_extras(
    body: &mut Map<String, Value>,
    server: Capabilities,
    fallbacks: BodyFallbacks,
    has_tools: bool,
) {
    let mut add = |name: &str| {
        body.entry(name).or_insert(Value::Bool(true));
    };
    if server.supports(Feature::PromptProgress) && !fallbacks.has(BodyFallback::NoProgress) {
        PROGRESS_MEMBERS.into_iter().for_each(&mut add);
    }
    // Other servers default to true.
    if server.dialect == Dialect::LlamaCpp
        && has_tools
        && server.parallel_calls == Some(true)
        && !fallbacks.has(BodyFallback::NoParallelToolCalls)
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
            // Null is the API's value for a message without text. Some templates print an empty string as a separate
            // turn.
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
    fn messages_have_the_format_of_the_api() {
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
    fn params_never_override_own_members() {
        let mut request = request();
        request.messages.clear();
        let params = json!({
            "temperature": 0, "max_tokens": 9, "stream": false, "messages": [], "tools": [], "model": "x",
            "stream_options": {}, "tool_choice": "required",
        });
        request.params = params.as_object().cloned().unwrap();
        let renamed = BodyFallbacks::default().with(BodyFallback::UseMaxCompletionTokens);
        let form = BodyForm { stream: false, fallbacks: renamed, ..BodyForm::default() };
        let expected = json!({ "model": "m", "messages": [], "temperature": 0, "max_completion_tokens": 9, "stream": false });
        assert_eq!(request.encode_body(form), expected);

        request.tools = vec![json!({ "type": "function" })];
        let fallbacks = BodyFallbacks::default().with(BodyFallback::NoStreamOptions);
        let body = request.encode_body(BodyForm { fallbacks, ..BodyForm::default() });
        assert_eq!(body.get("tool_choice"), Some(&json!("required")));
        assert_eq!(body.get("tools"), Some(&json!([{ "type": "function" }])));
        assert_eq!(body.get("stream_options"), None);
    }

    #[test]
    fn the_token_limit_is_renamed_in_one_direction() {
        let (to_new, to_old) = (BodyFallback::UseMaxCompletionTokens, BodyFallback::UseMaxTokens);
        for (params, fallbacks, expected) in [
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
            let form =
                BodyForm { stream: false, fallbacks: BodyFallbacks::from(fallbacks), ..BodyForm::default() };
            let mut whole = json!({ "model": "", "messages": [] });
            whole.as_object_mut().unwrap().extend(expected.as_object().cloned().unwrap());
            whole["stream"] = json!(false);
            assert_eq!(request.encode_body(form), whole, "{params}");
        }
    }

    #[test]
    fn requests_can_be_serialised() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ChatRequest>(&text).unwrap(), request);
    }
}
