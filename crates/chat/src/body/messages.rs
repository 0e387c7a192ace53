//! A chat request as the body of `POST /v1/messages`, Anthropic's API.
//!
//! In: a [`ChatRequest`] with tools and parameters in the format of chat completions, and the [`BodyForm`] for the
//! server. Out: JSON with its keys in a fixed order. A parameter with a different name in this API is renamed. A
//! parameter without an equivalent (`seed`, `n`, `logit_bias`) is sent unchanged.
//!
//! Roles alternate: neighbours of one role become one message. Only the leading system messages are system text. Later
//! ones are text of the user, because older versions of the API have no such role. Results come first in their message,
//! directly after their calls. Empty text is never sent.
//!
//! `cache_control` marks the parts of the prompt that the next request repeats: the tools, the system text, and the last
//! two messages of the user. What was sent once stays as it is.
//!
//! Sources: the types of Anthropic's SDK 2.14, and platform.claude.com/docs, "Messages", "Prompt caching", "Extended
//! thinking" and "Fine-grained tool streaming", 2026-11. `stream::messages` lists the behaviour of servers.

use std::ops::Range;
use std::sync::Arc;

use deftool_lang::tool::Attachment;
use serde_json::{Map, Value, json};

use super::attachments::messages_blocks;
use super::format::{BodyFormat, Group, push_item};
use super::model::{BodyForm, ChatRequest, ItemForm};
use super::params::TOKEN_LIMITS;
use super::responses::merge;
use super::returned::{first_thoughts, kind_of, message_blocks, object_of};
use super::tool_offer::{ToolOffer, offer};
use crate::message::{Message, MessageToolCall, is_error_result};
use crate::received::Received;

/// Members that are never taken from the parameters.
const OWN_MEMBERS: &[&str] = &["model", "messages", "system", "tools", "stream", "stream_options"];

/// Members that are converted together with others.
const CONVERTED_MEMBERS: &[&str] = &["max_tokens", "max_completion_tokens", "parallel_tool_calls"];

/// The member that contains the conversation.
const CONVERSATION: &str = "messages";

/// The token limit of a reply of a model whose largest is not known, besides the budget of its thinking. The API requires
/// a limit.
const MAX_TOKENS: u64 = 8_192;

/// The number of messages that are marked. With two, the last mark of the previous request is one of them.
const MARKED_MESSAGES: usize = 2;

/// The format of messages.
pub(super) struct Messages;

impl BodyFormat for Messages {
    fn conversation(&self) -> &'static str {
        CONVERSATION
    }

    fn leads_outside(&self) -> bool {
        true
    }

    fn members(&self, request: &ChatRequest, form: BodyForm, leading: &[Arc<Message>]) -> Map<String, Value> {
        let caches = form.caches_prompt(request);
        let ToolOffer { tools, choice } = offer(request, form);
        let params = || request.accepted_params(!tools.is_empty(), form.fallbacks);
        let is_serial = params().any(|(name, value)| name == "parallel_tool_calls" && *value == false);
        let mut body = Map::new();
        body.insert(String::from("model"), json!(request.model));
        body.insert(String::from("max_tokens"), max_tokens(request, form));
        if let Some(system) = system(leading, caches) {
            body.insert(String::from("system"), system);
        }
        body.insert(String::from(CONVERSATION), Value::Null);
        if !tools.is_empty() {
            let mut tools: Vec<Value> = tools.iter().map(|tool| convert_tool(tool)).collect();
            let early = tools.iter_mut().filter(|_| form.streams_arguments_early());
            for members in early.filter_map(Value::as_object_mut) {
                members.insert(String::from("eager_input_streaming"), Value::Bool(true));
            }
            mark(tools.last_mut().filter(|_| caches));
            body.insert(String::from("tools"), Value::from(tools));
        }
        if let Some(choice) = convert_choice(choice, is_serial) {
            body.insert(String::from("tool_choice"), choice);
        }
        for (name, value) in params() {
            if !OWN_MEMBERS.contains(&name) && !CONVERTED_MEMBERS.contains(&name) {
                let (name, value) = convert_param(name, value);
                merge(&mut body, name, value);
            }
        }
        body.insert(String::from("stream"), json!(form.stream));
        body
    }

    fn groups<'m>(&self, messages: &'m [Arc<Message>], form: ItemForm) -> Vec<Group<'m>> {
        let mut ranges: Vec<(Role, Range<usize>)> = Vec::new();
        for (number, message) in messages.iter().enumerate() {
            let Some(role) = role_of(message) else { continue };
            match ranges.last_mut() {
                Some((last, range)) if *last == role => range.end = number + 1,
                _ => ranges.push((role, number..number + 1)),
            }
        }
        let mut groups: Vec<Group<'m>> = Vec::with_capacity(ranges.len());
        for (_, range) in &ranges {
            let messages = messages.get(range.clone()).unwrap_or_default();
            groups.push(Group { messages, ends_prefix: false });
        }
        if form.caches {
            let of_user = ranges.iter().zip(&mut groups).rev().filter(|((role, _), _)| *role == Role::User);
            of_user.take(MARKED_MESSAGES).for_each(|(_, group)| group.ends_prefix = true);
        }
        groups
    }

    fn push_items(&self, json: &mut Vec<u8>, _: ItemForm, _: usize, group: Group<'_>) {
        let Some(role) = group.messages.iter().find_map(|message| role_of(message)) else { return };
        let mut content: Vec<Value> = group.messages.iter().flat_map(|message| blocks_of(message)).collect();
        if role == Role::User {
            content.sort_by_key(|block| kind_of(block) != "tool_result");
        }
        mark(content.last_mut().filter(|_| group.ends_prefix));
        if !content.is_empty() {
            push_item(json, &json!({ "role": role.as_str(), "content": content }));
        }
    }
}

/// The role of a message in this API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Returns the role of a message; `None`: it has no content to send.
fn role_of(message: &Message) -> Option<Role> {
    match message {
        Message::Tool { .. } => Some(Role::User),
        Message::System { content } | Message::User { content, .. } => {
            (!content.trim().is_empty()).then_some(Role::User)
        }
        Message::Assistant { content, tool_calls, received } => {
            let has_other = || received.as_ref().is_some_and(|received| received.parts.has_other_content());
            (!content.trim().is_empty() || !tool_calls.is_empty() || has_other()).then_some(Role::Assistant)
        }
    }
}

/// Returns the content blocks of a message.
fn blocks_of(message: &Message) -> Vec<Value> {
    match message {
        Message::System { content } => messages_blocks(content, &[]),
        Message::User { content, attachments } => messages_blocks(content, attachments),
        Message::Assistant { content, tool_calls, received } => {
            assistant_blocks(content, tool_calls, received.as_deref())
        }
        Message::Tool { tool_call_id, content, attachments } => {
            vec![result_block(tool_call_id, content, attachments)]
        }
    }
}

/// Returns the blocks of a reply: as they were received, or if they do not contain its text and its calls, new ones after
/// the first thoughts. The thoughts belong to the calls, also to those that were written as text.
fn assistant_blocks(content: &str, calls: &[MessageToolCall], received: Option<&Received>) -> Vec<Value> {
    let items = received.map(|received| received.parts.items.as_slice()).unwrap_or_default();
    if let Some(blocks) = message_blocks(content, calls, items) {
        return blocks;
    }
    // The last text of a conversation must not end with blanks.
    let text = messages_blocks(if calls.is_empty() { content.trim_end() } else { content }, &[]);
    let calls = calls.iter().map(|call| {
        let input = object_of(&call.function.arguments);
        json!({ "type": "tool_use", "id": call.id, "name": call.function.name, "input": input })
    });
    let rebuilt: Vec<Value> = text.into_iter().chain(calls).collect();
    if rebuilt.is_empty() { rebuilt } else { first_thoughts(items).cloned().chain(rebuilt).collect() }
}

fn result_block(id: &str, content: &str, attachments: &[Attachment]) -> Value {
    // Some servers require the content of an empty result, too.
    let shown = if attachments.is_empty() {
        json!(content)
    } else {
        Value::from(messages_blocks(content, attachments))
    };
    let mut block = Map::new();
    block.insert(String::from("type"), json!("tool_result"));
    block.insert(String::from("tool_use_id"), json!(id));
    block.insert(String::from("content"), shown);
    if is_error_result(content) {
        block.insert(String::from("is_error"), json!(true));
    }
    Value::Object(block)
}

/// Returns the system text: blocks of which the last one is marked, or one string.
fn system(leading: &[Arc<Message>], caches: bool) -> Option<Value> {
    let mut blocks: Vec<Value> = leading.iter().flat_map(|message| blocks_of(message)).collect();
    if blocks.is_empty() {
        return None;
    }
    if caches {
        mark(blocks.last_mut());
        return Some(Value::from(blocks));
    }
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    Some(Value::from(texts.join("\n\n")))
}

/// Marks the end of a part of the prompt that the server stores.
fn mark(block: Option<&mut Value>) {
    if let Some(members) = block.and_then(Value::as_object_mut) {
        members.entry("cache_control").or_insert_with(|| json!({ "type": "ephemeral" }));
    }
}

/// Returns the limit from the parameters, or the default. The prompt must fit beside the reply.
fn max_tokens(request: &ChatRequest, form: BodyForm) -> Value {
    let given = TOKEN_LIMITS.iter().find_map(|name| request.params.get(*name));
    given.cloned().unwrap_or_else(|| {
        let thinking = request.params.get("thinking").and_then(|thinking| thinking.get("budget_tokens"));
        let short = MAX_TOKENS.saturating_add(thinking.and_then(Value::as_u64).unwrap_or_default());
        let limit = form.server.dialect.max_output(&request.model).unwrap_or(short);
        json!(form.server.context.map_or(limit, |context| limit.min(context / 2)))
    })
}

/// Returns a parameter with its name in this API. The guides "Effort" and "Structured outputs" describe `output_config`.
fn convert_param<'n>(name: &'n str, value: &Value) -> (&'n str, Value) {
    let schema = || value.pointer("/json_schema/schema");
    match (name, schema()) {
        ("stop", _) if value.is_string() => ("stop_sequences", json!([value])),
        ("stop", _) => ("stop_sequences", value.clone()),
        ("reasoning_effort", _) => ("output_config", json!({ "effort": value })),
        ("response_format", Some(schema)) => {
            ("output_config", json!({ "format": { "type": "json_schema", "schema": schema } }))
        }
        (name, _) => (name, value.clone()),
    }
}

/// `{"type": "function", "function": {…}}` → `{"name": …, "input_schema": …}`.
fn convert_tool(tool: &Value) -> Value {
    let Some(Value::Object(function)) = tool.get("function") else { return tool.clone() };
    let renamed = function.iter().map(|(name, value)| {
        let name = if name == "parameters" { "input_schema" } else { name.as_str() };
        (name.to_owned(), value.clone())
    });
    let mut converted: Map<String, Value> = renamed.collect();
    converted.entry("input_schema").or_insert_with(|| json!({ "type": "object" }));
    Value::Object(converted)
}

/// Converts a `tool_choice`. With `is_serial`, the model calls at most one tool in a reply.
fn convert_choice(choice: Option<Value>, is_serial: bool) -> Option<Value> {
    let mut choice = match choice {
        Some(Value::String(word)) if word == "required" => json!({ "type": "any" }),
        Some(Value::String(word)) => json!({ "type": word }),
        Some(choice) => match choice.pointer("/function/name").or_else(|| choice.get("name")) {
            Some(name) => json!({ "type": "tool", "name": name }),
            None => choice,
        },
        None if is_serial => json!({ "type": "auto" }),
        None => return None,
    };
    if is_serial
        && choice.get("type") != Some(&json!("none"))
        && let Some(members) = choice.as_object_mut()
    {
        members.entry("disable_parallel_tool_use").or_insert(Value::Bool(true));
    }
    Some(choice)
}

#[cfg(test)]
mod tests;
