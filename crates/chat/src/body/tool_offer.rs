//! The tools that a request offers, and the `tool_choice`.
//!
//! In: the tools of the turn and the `tool_choice` of the worker's `:params`. Out: both in the form that the server
//! accepts, in the format of chat completions. The other APIs convert them to their own formats. If the choice names
//! one tool and the server ignores names, only that tool is offered, with `required`.
//!
//! A named tool is forced until it has been called. If it were forced in every turn, the request would end only when
//! the budget is exhausted.

use std::borrow::Cow;
use std::sync::Arc;

use deftool_lang::spec::Api;
use serde_json::Value;

use super::change::BodyFallback;
use super::model::{BodyForm, ChatRequest};
use super::schemas::with_types;
use crate::dialect::Feature;
use crate::message::Message;

/// The tools and the choice as they are sent.
#[derive(Debug, PartialEq)]
pub(super) struct ToolOffer<'a> {
    pub(super) tools: Vec<Cow<'a, Value>>,
    pub(super) choice: Option<Value>,
}

/// A parsed `tool_choice`.
enum ToolChoice<'a> {
    /// One named tool.
    Named(&'a str),
    /// A list of allowed tools and a mode: `auto` or `required`.
    Allowed(Vec<&'a str>, &'a str),
    /// A string, or a server-specific value.
    Other,
}

pub(super) fn offer(request: &ChatRequest, form: BodyForm) -> ToolOffer<'_> {
    let (tools, choice) = chosen(request, form);
    let is_typed = form.fallbacks.has(BodyFallback::TypedSchemas);
    let shape = |tool| if is_typed { Cow::Owned(with_types(tool)) } else { Cow::Borrowed(tool) };
    ToolOffer { tools: tools.into_iter().map(shape).collect(), choice }
}

/// Returns the tools and the choice that the server accepts.
fn chosen(request: &ChatRequest, form: BodyForm) -> (Vec<&Value>, Option<Value>) {
    if request.tools.is_empty() {
        return (Vec::new(), None);
    }
    let all: Vec<&Value> = request.tools.iter().collect();
    let Some(choice) = request.params.get("tool_choice") else {
        return (all, None);
    };
    let may_choose = !form.fallbacks.has(BodyFallback::NoToolChoice);
    let takes_objects =
        !(form.server.lacks(Feature::NamedTool) || form.fallbacks.has(BodyFallback::ToolAlone));
    let some = |names: &[&str]| {
        let is_one = |tool: &&Value| name_of(tool).is_some_and(|name| names.contains(&name));
        all.iter().copied().filter(is_one).collect::<Vec<_>>()
    };
    let (tools, choice) = match parse_tool_choice(choice) {
        ToolChoice::Named(name) => {
            let alone = some(&[name]);
            // The last turn only offers exit tools, which the choice does not name.
            if alone.is_empty() || was_called(name, &request.messages) {
                (all, None)
            } else if takes_objects {
                (all, Some(choice.clone()))
            } else {
                (alone, Some(Value::from("required")))
            }
        }
        ToolChoice::Allowed(names, mode) => {
            let allowed = some(&names);
            // The Messages API has no list of allowed tools.
            match (takes_objects && form.effective_api() != Api::Messages, allowed.is_empty()) {
                (_, true) => (all, None),
                (true, false) => (all, Some(choice.clone())),
                (false, false) => (allowed, Some(Value::from(mode))),
            }
        }
        ToolChoice::Other => (all, Some(choice.clone())),
    };
    (tools, choice.filter(|_| may_choose))
}

/// Whether the `tool_choice` of a body requires a tool call. Servers may ignore the requirement.
pub fn requires_call(choice: Option<&Value>) -> bool {
    match choice {
        Some(Value::String(word)) => matches!(word.as_str(), "required" | "any"),
        Some(choice) => {
            let kind = choice.get("type").and_then(Value::as_str);
            matches!(parse_tool_choice(choice), ToolChoice::Named(_) | ToolChoice::Allowed(_, "required"))
                || kind == Some("any")
        }
        None => false,
    }
}

/// Returns the name of a tool, in the format of any API.
fn name_of(tool: &Value) -> Option<&str> {
    tool.pointer("/function/name").or_else(|| tool.get("name"))?.as_str()
}

fn parse_tool_choice(choice: &Value) -> ToolChoice<'_> {
    if let Some(name) = name_of(choice) {
        return ToolChoice::Named(name);
    }
    let allowed = choice.get("allowed_tools").unwrap_or(choice);
    match allowed.get("tools").and_then(Value::as_array) {
        Some(tools) => {
            let mode = allowed.get("mode").and_then(Value::as_str).unwrap_or("auto");
            ToolChoice::Allowed(tools.iter().filter_map(name_of).collect(), mode)
        }
        None => ToolChoice::Other,
    }
}

/// Whether the model has called the tool since the last user message.
fn was_called(name: &str, messages: &[Arc<Message>]) -> bool {
    let since = messages.iter().rev().take_while(|message| !matches!(***message, Message::User { .. }));
    since.into_iter().any(|message| match &**message {
        Message::Assistant { tool_calls, .. } => tool_calls.iter().any(|call| call.function.name == name),
        Message::System { .. } | Message::User { .. } | Message::Tool { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::dialect::Dialect;

    use super::super::change::BodyFallbacks;
    use super::*;
    use crate::dialect::Capabilities;
    use crate::message::MessageToolCall;
    use serde_json::json;

    /// Returns the names of the offered tools and the choice.
    fn offered(
        choice: &Value,
        dialect: Dialect,
        fallbacks: &[BodyFallback],
        called: bool,
    ) -> (Vec<String>, Value) {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        let mut request = ChatRequest { tools: vec![tool("f"), tool("g")], ..ChatRequest::default() };
        request.params.insert("tool_choice".into(), choice.clone());
        request.messages.push(Message::user("hello").into());
        if called {
            let tool_calls = vec![MessageToolCall::new("1", "f", "{}")];
            request
                .messages
                .push(Message::Assistant { content: String::new(), tool_calls, received: None }.into());
        }
        let fallbacks = BodyFallbacks::from(fallbacks.to_vec());
        let form = BodyForm { server: Capabilities::of(dialect), fallbacks, ..BodyForm::default() };
        let ToolOffer { tools, choice } = offer(&request, form);
        (tools.iter().filter_map(|tool| name_of(tool)).map(str::to_owned).collect(), json!(choice))
    }

    #[test]
    fn tool_choice_is_adapted_to_the_server() {
        let named = json!({"type": "function", "function": {"name": "f"}});
        let both = || vec![String::from("f"), String::from("g")];
        let alone = || (vec![String::from("f")], json!("required"));
        assert_eq!(offered(&named, Dialect::default(), &[], false), (both(), named.clone()));
        assert_eq!(offered(&named, Dialect::named("vllm"), &[], false), (both(), named.clone()));
        for dialect in [Dialect::named("llama-cpp"), Dialect::named("lm-studio"), Dialect::named("ollama")] {
            assert_eq!(offered(&named, dialect, &[], false), alone());
        }
        assert_eq!(offered(&named, Dialect::default(), &[BodyFallback::ToolAlone], false), alone());
        assert_eq!(
            offered(&named, Dialect::named("llama-cpp"), &[BodyFallback::NoToolChoice], false).1,
            Value::Null
        );
        // After the call, the model is free to choose.
        assert_eq!(offered(&named, Dialect::default(), &[], true), (both(), Value::Null));
        assert_eq!(offered(&named, Dialect::named("llama-cpp"), &[], true), (both(), Value::Null));
        let gone = json!({"type": "function", "function": {"name": "gone"}});
        assert_eq!(offered(&gone, Dialect::default(), &[], false), (both(), Value::Null));
        let among = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
        assert_eq!(offered(&among, Dialect::default(), &[], false), (both(), among.clone()));
        assert_eq!(offered(&among, Dialect::named("llama-cpp"), &[], false), alone());
        for word in ["auto", "required", "none"] {
            assert_eq!(offered(&json!(word), Dialect::named("llama-cpp"), &[], true), (both(), json!(word)));
        }
    }
}
