//! A chat request as the body of `POST /v1/chat/completions`.
//!
//! Source: the `OpenAI` chat completions API; the cases in tests/wire record the behaviour of servers.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::attachments::completions_parts;
use super::format::{BodyFormat, Group, push_item};
use super::model::{BodyForm, ChatRequest, ItemForm};
use super::params::{OWN_MEMBERS, add_extras};
use super::returned::completions_message;
use super::tool_offer::{ToolOffer, offer};
use crate::message::{Message, MessageToolCall};

/// The member that contains the conversation.
const CONVERSATION: &str = "messages";

/// The format of chat completions.
pub(super) struct ChatCompletions;

impl BodyFormat for ChatCompletions {
    fn conversation(&self) -> &'static str {
        CONVERSATION
    }

    fn members(&self, request: &ChatRequest, form: BodyForm, _: &[Arc<Message>]) -> Map<String, Value> {
        members(request, form)
    }

    fn push_items(&self, json: &mut Vec<u8>, form: ItemForm, _: usize, group: Group<'_>) {
        for message in group.messages {
            match &**message {
                Message::Assistant { content, tool_calls, received: Some(received) }
                    if !received.parts.is_empty() =>
                {
                    push_item(json, &completions_message(content, tool_calls, &received.parts, form.empty));
                }
                message => push_item(json, &encode_message(message, form.empty)),
            }
        }
    }
}

fn members(request: &ChatRequest, form: BodyForm) -> Map<String, Value> {
    let BodyForm { stream, server, fallbacks, .. } = form;
    let ToolOffer { tools, choice } = offer(request, form);
    let mut body = Map::new();
    body.insert(String::from("model"), json!(request.model));
    body.insert(String::from(CONVERSATION), Value::Null);
    if !tools.is_empty() {
        body.insert(String::from("tools"), json!(tools));
    }
    if let Some(choice) = choice {
        body.insert(String::from("tool_choice"), choice);
    }
    for (name, value) in request.accepted_params(!tools.is_empty(), fallbacks) {
        if !OWN_MEMBERS.contains(&name)
            && let Some(name) = request.renamed(name, fallbacks)
        {
            body.insert(name.to_owned(), value.clone());
        }
    }
    if stream {
        add_extras(&mut body, server, fallbacks, !tools.is_empty());
    }
    body.insert(String::from("stream"), json!(stream));
    if stream && !fallbacks.omits("stream_options") {
        body.insert(String::from("stream_options"), json!({ "include_usage": true }));
    }
    body
}

/// A message as an item of the conversation.
#[derive(Serialize)]
struct Item<'m> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'m str>,
    /// Null is the API's value for a message without text. Some templates print an empty string as a separate turn, some
    /// servers reject null.
    content: Option<Content<'m>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'m [MessageToolCall],
}

/// The content of a message.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'m> {
    Text(&'m str),
    /// Text with images or audio.
    Parts(Vec<Value>),
}

/// Returns a message as an item of the conversation. With `empty`, a message without text has an empty string.
fn encode_message(message: &Message, empty: bool) -> Item<'_> {
    let item = |role, content| Item { role, tool_call_id: None, content: Some(content), tool_calls: &[] };
    let text = |role, content| item(role, Content::Text(content));
    match message {
        Message::System { content } => text("system", content),
        Message::User { content, attachments } if attachments.is_empty() => text("user", content),
        Message::User { content, attachments } => {
            item("user", Content::Parts(completions_parts(content, attachments)))
        }
        Message::Assistant { content, tool_calls, .. } => {
            let is_null = content.is_empty() && !tool_calls.is_empty() && !empty;
            let content = Some(Content::Text(content)).filter(|_| !is_null);
            Item { role: "assistant", tool_call_id: None, content, tool_calls }
        }
        // Its attachments follow in a message of the user.
        Message::Tool { tool_call_id, content, attachments: _ } => {
            Item { tool_call_id: Some(tool_call_id), ..text("tool", content) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::BodyFallbacks;
    use super::*;
    use crate::BodyFallback;
    use crate::MessageToolCall;

    fn request() -> ChatRequest {
        let call = MessageToolCall::new("call00001", "now", "{}");
        ChatRequest {
            model: String::from("m"),
            messages: [
                Message::System { content: String::from("s") },
                Message::user("u"),
                Message::Assistant { content: String::new(), tool_calls: vec![call], received: None },
                Message::tool("call00001", "12"),
                Message::Assistant { content: String::new(), tool_calls: Vec::new(), received: None },
            ]
            .map(Arc::new)
            .into(),
            ..ChatRequest::default()
        }
    }

    #[test]
    fn messages_have_the_format_of_the_api() {
        let body = request().encode_body(BodyForm::default()).to_value();
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
        assert_eq!(request.encode_body(form).to_value(), expected);

        request.tools = vec![json!({ "type": "function" })];
        let fallbacks = BodyFallbacks::default().with(BodyFallback::without("stream_options"));
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
            assert_eq!(request.encode_body(form).to_value(), whole, "{params}");
        }
    }

    #[test]
    fn requests_can_be_serialised() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ChatRequest>(&text).unwrap(), request);
    }
}
