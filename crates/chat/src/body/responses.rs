//! A chat request as the body of `POST /v1/responses`.
//!
//! In: a [`ChatRequest`] with tools and parameters in the format of chat completions, and the [`BodyForm`] for the
//! server. Out: JSON with its keys in a fixed order. A parameter with a different name in this API is renamed. A
//! parameter without an equivalent (`stop`, `seed`, `logit_bias`, `n`) is sent unchanged: servers that support it use
//! it, other servers report an error. `stream::responses` lists the behaviour of servers.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::attachments::responses_parts;
use super::change::BodyFallback;
use super::format::{BodyFormat, Group, push_item};
use super::model::{BodyForm, ChatRequest, ItemForm};
use super::returned::response_items;
use super::tool_offer::{ToolOffer, offer};
use crate::message::Message;

/// Members that are never taken from the parameters. Continuing a stored response would send the conversation twice.
const OWN_MEMBERS: &[&str] = &[
    "model",
    "messages",
    "input",
    "tools",
    "stream",
    "stream_options",
    "previous_response_id",
    "conversation",
];

/// The member that contains the conversation.
const CONVERSATION: &str = "input";

/// The format of responses.
pub(super) struct Responses;

impl BodyFormat for Responses {
    fn conversation(&self) -> &'static str {
        CONVERSATION
    }

    fn members(&self, request: &ChatRequest, form: BodyForm, _: &[Arc<Message>]) -> Map<String, Value> {
        members(request, form)
    }

    fn push_items(&self, json: &mut Vec<u8>, form: ItemForm, number: usize, group: Group<'_>) {
        for item in group.messages.iter().flat_map(|message| encode_message(number, message, form)) {
            push_item(json, &item);
        }
    }
}

fn members(request: &ChatRequest, form: BodyForm) -> Map<String, Value> {
    let ToolOffer { tools, choice } = offer(request, form);
    let mut body = Map::new();
    body.insert(String::from("model"), json!(request.model));
    body.insert(String::from(CONVERSATION), Value::Null);
    if !tools.is_empty() {
        body.insert(String::from("tools"), tools.iter().map(|tool| flatten_tool(tool)).collect());
    }
    if let Some(choice) = choice {
        body.insert(String::from("tool_choice"), flatten_choice(&choice));
    }
    for (name, value) in request.accepted_params(!tools.is_empty(), form.fallbacks) {
        if OWN_MEMBERS.contains(&name) {
            continue;
        }
        let (name, value) = match name {
            "max_tokens" | "max_completion_tokens" => ("max_output_tokens", value.clone()),
            "reasoning_effort" => ("reasoning", json!({ "effort": value })),
            "response_format" => ("text", json!({ "format": flatten_format(value) })),
            "verbosity" => ("text", json!({ "verbosity": value })),
            name => (name, value.clone()),
        };
        merge(&mut body, name, value);
    }
    body.insert(String::from("stream"), json!(form.stream));
    // A server that stores by default would keep every conversation.
    body.entry("store").or_insert(Value::Bool(false));
    if body.get("store") == Some(&Value::Bool(false)) && takes_encrypted_reasoning(&request.model, form) {
        let include = body.entry("include").or_insert_with(|| json!([]));
        if let Some(members) = include.as_array_mut()
            && !members.iter().any(|member| member == ENCRYPTED_REASONING)
        {
            members.push(Value::from(ENCRYPTED_REASONING));
        }
    }
    body
}

/// The member of the output that restores reasoning without storage on the server.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Whether to request encrypted reasoning: from a hosted server, unless its model is known not to reason. `OpenAI` answers
/// 400 for such a model; a fallback then omits it.
fn takes_encrypted_reasoning(model: &str, form: BodyForm) -> bool {
    let is_hosted = form.server.is_hosted();
    let reasons = !["gpt-3", "gpt-4", "chatgpt"].iter().any(|name| model.contains(name));
    is_hosted && reasons && !form.fallbacks.has(BodyFallback::NoEncryptedReasoning)
}

/// Sets a member. Two objects are merged: `:reasoning-effort` can be combined with `:reasoning (:summary "auto")`.
pub(super) fn merge(body: &mut Map<String, Value>, name: &str, value: Value) {
    match (body.get_mut(name), value) {
        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
        (_, value) => {
            body.insert(name.to_owned(), value);
        }
    }
}

/// Returns the items of a message. `number` is its position in the conversation.
fn encode_message(number: usize, message: &Message, form: ItemForm) -> Vec<Value> {
    match message {
        Message::System { content } => vec![input("system", responses_parts(content, &[]))],
        Message::User { content, attachments } => vec![input("user", responses_parts(content, attachments))],
        Message::Assistant { content, tool_calls, received } => {
            let received = received.as_ref().map(|received| received.parts.items.as_slice());
            if let Some(items) = response_items(content, tool_calls, received.unwrap_or_default(), form) {
                return items;
            }
            let mut items = Vec::new();
            if !content.is_empty() || tool_calls.is_empty() {
                let text = json!({ "type": "output_text", "text": content, "annotations": [] });
                items.push(json!({
                    "type": "message",
                    "id": format!("msg_{number}"),
                    "status": "completed",
                    "role": "assistant",
                    "content": [text],
                }));
            }
            // Items are sent without an id: for an id, OpenAI would look up the reasoning that belongs to it.
            items.extend(tool_calls.iter().map(|call| {
                json!({
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.function.name,
                    "arguments": call.function.arguments,
                })
            }));
            items
        }
        Message::Tool { tool_call_id, content, attachments } => vec![json!({
            "type": "function_call_output",
            "call_id": tool_call_id,
            "output": if attachments.is_empty() {
                Value::from(content.as_str())
            } else {
                Value::Array(responses_parts(content, attachments))
            },
        })],
    }
}

fn input(role: &str, parts: Vec<Value>) -> Value {
    json!({ "type": "message", "role": role, "content": parts })
}

/// `{"type": "function", "function": {…}}` → `{"type": "function", …}`, always with an explicit `strict`.
fn flatten_tool(tool: &Value) -> Value {
    let Some(Value::Object(function)) = tool.get("function") else { return tool.clone() };
    let strict = function.get("strict").cloned().unwrap_or(Value::Bool(false));
    let mut flat = Map::new();
    flat.insert(String::from("type"), json!("function"));
    flat.extend(
        function.iter().filter(|(name, _)| *name != "strict").map(|(name, v)| (name.clone(), v.clone())),
    );
    flat.insert(String::from("strict"), strict);
    Value::Object(flat)
}

/// Converts a `tool_choice`: a string, or an object that names tools.
fn flatten_choice(choice: &Value) -> Value {
    if let Some(allowed) = choice.get("allowed_tools").and_then(Value::as_object) {
        let tools = allowed.get("tools").and_then(Value::as_array);
        let tools: Vec<Value> = tools.into_iter().flatten().map(flatten_choice).collect();
        let mode = allowed.get("mode").cloned().unwrap_or_else(|| json!("auto"));
        return json!({ "type": "allowed_tools", "mode": mode, "tools": tools });
    }
    match choice.pointer("/function/name") {
        Some(name) => json!({ "type": "function", "name": name }),
        None => choice.clone(),
    }
}

/// `{"type": "json_schema", "json_schema": {…}}` → `{"type": "json_schema", …}`.
fn flatten_format(format: &Value) -> Value {
    let Some(Value::Object(schema)) = format.get("json_schema") else { return format.clone() };
    let mut flat = Map::new();
    flat.insert(String::from("type"), json!("json_schema"));
    flat.extend(schema.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(flat)
}

#[cfg(test)]
mod tests {
    use super::super::change::BodyFallbacks;
    use super::*;
    use crate::Api;
    use crate::message::MessageToolCall;

    fn system(text: &str) -> Message {
        Message::System { content: text.to_owned() }
    }

    fn user(text: &str) -> Message {
        Message::user(text)
    }

    fn body_of(request: &ChatRequest) -> Value {
        request.encode_body(BodyForm { api: Api::Responses, ..BodyForm::default() }).to_value()
    }

    fn with_params(params: &Value) -> ChatRequest {
        let params = params.as_object().cloned().unwrap();
        let tools = vec![json!({ "type": "function", "function": { "name": "f" } })];
        ChatRequest { model: String::from("m"), params, tools, ..ChatRequest::default() }
    }

    #[test]
    fn a_conversation_with_two_calls_becomes_items() {
        let calls = vec![
            MessageToolCall::new("call00001", "look", r#"{"at":"sea"}"#),
            MessageToolCall::new("call00002", "look", "{}"),
        ];
        let request = ChatRequest {
            model: String::from("m"),
            messages: [
                system("bios"),
                system("Be brief."),
                user("u"),
                Message::Assistant { content: String::from("Looking."), tool_calls: calls, received: None },
                Message::tool("call00001", "[1]"),
                Message::tool("call00002", "null"),
                Message::Assistant { content: String::from("Calm."), tool_calls: Vec::new(), received: None },
                user("again"),
                Message::Assistant { content: String::new(), tool_calls: Vec::new(), received: None },
                system("left: 3"),
            ]
            .map(Arc::new)
            .into(),
            ..ChatRequest::default()
        };
        let text = |role: &str, text: &str| {
            format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}"#
            )
        };
        let assistant = |number: usize, text: &str| {
            format!(
                r#"{{"type":"message","id":"msg_{number}","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}}"#
            )
        };
        let items = [
            text("system", "bios"),
            text("system", "Be brief."),
            text("user", "u"),
            assistant(3, "Looking."),
            String::from(
                r#"{"type":"function_call","call_id":"call00001","name":"look","arguments":"{\"at\":\"sea\"}"}"#,
            ),
            String::from(r#"{"type":"function_call","call_id":"call00002","name":"look","arguments":"{}"}"#),
            String::from(r#"{"type":"function_call_output","call_id":"call00001","output":"[1]"}"#),
            String::from(r#"{"type":"function_call_output","call_id":"call00002","output":"null"}"#),
            assistant(6, "Calm."),
            text("user", "again"),
            assistant(8, ""),
            text("system", "left: 3"),
        ];
        let expected = format!(
            r#"{{"model":"m","input":[{}],"stream":true,"store":false,"include":["reasoning.encrypted_content"]}}"#,
            items.join(",")
        );
        assert_eq!(body_of(&request).to_string(), expected);
    }

    #[test]
    fn tools_are_flat_with_an_explicit_strict() {
        let mut request = ChatRequest::default();
        let parameters = json!({ "type": "object", "properties": {} });
        let function = json!({ "name": "f", "description": "d", "parameters": parameters });
        let strict = json!({ "name": "g", "description": "e", "strict": true, "parameters": parameters });
        request.tools = vec![
            json!({ "type": "function", "function": function }),
            json!({ "type": "function", "function": strict }),
            json!({ "type": "web_search" }),
        ];
        let expected = json!([
            { "type": "function", "name": "f", "description": "d", "parameters": parameters, "strict": false },
            { "type": "function", "name": "g", "description": "e", "parameters": parameters, "strict": true },
            { "type": "web_search" },
        ]);
        assert_eq!(body_of(&request)["tools"].to_string(), expected.to_string());
    }

    #[test]
    fn parameters_are_renamed_for_this_api() {
        let schema = json!({ "name": "n", "schema": { "type": "object" }, "strict": true });
        for (params, expected) in [
            (json!({ "max_tokens": 9 }), json!({ "max_output_tokens": 9 })),
            (json!({ "max_completion_tokens": 9 }), json!({ "max_output_tokens": 9 })),
            (
                json!({ "reasoning_effort": "low", "temperature": 0, "reasoning": { "summary": "auto" } }),
                json!({ "reasoning": { "effort": "low", "summary": "auto" }, "temperature": 0 }),
            ),
            (
                json!({ "response_format": { "type": "json_schema", "json_schema": schema }, "verbosity": "low" }),
                json!({ "text": {
                    "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true },
                    "verbosity": "low",
                } }),
            ),
            (
                json!({ "response_format": { "type": "json_object" } }),
                json!({ "text": { "format": { "type": "json_object" } } }),
            ),
            (json!({ "tool_choice": "required" }), json!({ "tool_choice": "required" })),
            (
                json!({ "tool_choice": { "type": "function", "function": { "name": "f" } } }),
                json!({ "tool_choice": { "type": "function", "name": "f" } }),
            ),
            (
                json!({ "tool_choice": { "type": "allowed_tools", "allowed_tools": {
                    "mode": "required", "tools": [{ "type": "function", "function": { "name": "f" } }]
                } } }),
                json!({ "tool_choice": {
                    "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "f" }]
                } }),
            ),
            // Parameters without an equivalent are sent unchanged, so that none is dropped silently.
            (
                json!({ "seed": 1, "stop": ["x"], "parallel_tool_calls": false }),
                json!({ "seed": 1, "stop": ["x"], "parallel_tool_calls": false }),
            ),
            // Members that this module sets itself.
            (
                json!({ "model": "x", "input": [], "messages": [], "tools": [], "stream": false, "stream_options": {},
                        "previous_response_id": "r", "conversation": "c" }),
                json!({}),
            ),
        ] {
            let request = with_params(&params);
            let tools = json!([{ "type": "function", "name": "f", "strict": false }]);
            let mut whole = json!({ "model": "m", "input": [], "tools": tools });
            whole.as_object_mut().unwrap().extend(expected.as_object().cloned().unwrap());
            whole["stream"] = json!(true);
            whole["store"] = json!(false);
            whole["include"] = json!(["reasoning.encrypted_content"]);
            assert_eq!(body_of(&request).to_string(), whole.to_string(), "{params}");
        }
    }

    #[test]
    fn body_fallbacks_apply_to_this_api() {
        let choice = json!({ "type": "function", "function": { "name": "f" } });
        let params = json!({ "tool_choice": choice, "parallel_tool_calls": true, "return_progress": true });
        let mut request = with_params(&params);
        request.tools.push(json!({ "type": "function", "function": { "name": "g" } }));
        request.messages = [
            user("u"),
            Message::Assistant {
                content: String::new(),
                tool_calls: vec![MessageToolCall::new("1", "g", "{}")],
                received: None,
            },
            Message::tool("1", "12"),
        ]
        .map(Arc::new)
        .into();
        let body = |fallback: Option<BodyFallback>| {
            let fallbacks = BodyFallbacks::from(Vec::from_iter(fallback));
            request.encode_body(BodyForm { api: Api::Responses, fallbacks, ..BodyForm::default() }).to_value()
        };
        let plain = body(None);
        let of = |fallback, names: &[&str]| {
            let body = body(Some(fallback));
            names.iter().map(|name| body[*name].clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            of(BodyFallback::NoToolChoice, &["tool_choice", "tools"]),
            [json!(null), plain["tools"].clone()]
        );
        assert_eq!(
            of(BodyFallback::ToolAlone, &["tool_choice", "tools"]),
            [json!("required"), json!([plain["tools"][0]])]
        );
        assert_eq!(of(BodyFallback::without("parallel_tool_calls"), &["parallel_tool_calls"]), [json!(null)]);
        assert_eq!(of(BodyFallback::without("return_progress"), &["return_progress"]), [json!(null)]);
        let described = ChatRequest { describes_tools: true, tools: Vec::new(), ..request.clone() };
        let sent = body_of(&described);
        for name in ["tools", "tool_choice", "parallel_tool_calls"] {
            assert_eq!(sent[name], json!(null), "{name}");
        }
        assert!(!sent["input"].to_string().contains("function_call"), "{sent}");
        // The tool is forced until it has been called.
        let Message::Assistant { tool_calls, .. } = Arc::make_mut(&mut request.messages[1]) else { panic!() };
        tool_calls[0] = MessageToolCall::new("1", "f", "{}");
        assert_eq!(body_of(&request)["tool_choice"], json!(null));
    }

    #[test]
    fn without_tools_there_is_no_tool_choice_and_a_probe_does_not_stream() {
        let mut request = with_params(&json!({ "tool_choice": "required", "store": true }));
        request.tools.clear();
        let form = BodyForm { api: Api::Responses, stream: false, ..BodyForm::default() };
        assert_eq!(
            request.encode_body(form).to_value(),
            json!({ "model": "m", "input": [], "store": true, "stream": false })
        );
    }
}
