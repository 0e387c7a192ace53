//! Which tools a request offers, and which of them the model is told to call.
//!
//! In: the tools of the turn and the `tool_choice` of the worker's `:params`. Out: both as the server takes them, in the
//! words of chat completions; the Responses API writes them flat.
//! Where one tool is named and the server does not look at names, that tool goes alone and is `required`.
//!
//! A named tool is forced until it was called: forced again in every turn, a request could only end by its budget.

use serde_json::Value;

use super::dialect::Feature;
use super::message::Message;
use super::request_body::{BodyForm, ChatRequest};
use super::swap::Swap;

/// The tools and the choice among them, as they are sent.
#[derive(Debug, PartialEq)]
pub(super) struct Offer<'a> {
    pub(super) tools: Vec<&'a Value>,
    pub(super) choice: Option<Value>,
}

/// What `tool_choice` wants.
enum Wish<'a> {
    /// One tool.
    Named(&'a str),
    /// Some tools, in a mode: `auto`, `required`.
    Among(Vec<&'a str>, &'a str),
    /// A word, or something that only the server knows.
    Other,
}

pub(super) fn offer(request: &ChatRequest, form: BodyForm) -> Offer<'_> {
    if request.tools.is_empty() || form.swaps.has(Swap::NoTools) {
        return Offer { tools: Vec::new(), choice: None };
    }
    let all: Vec<&Value> = request.tools.iter().collect();
    let Some(choice) = request.params.get("tool_choice") else { return Offer { tools: all, choice: None } };
    let may_choose = !form.swaps.has(Swap::NoToolChoice);
    let takes_objects =
        !form.server.shaped || !(form.server.lacks(Feature::NamedTool) || form.swaps.has(Swap::ToolAlone));
    let some = |names: &[&str]| {
        let is_one = |tool: &&Value| name_of(tool).is_some_and(|name| names.contains(&name));
        all.iter().copied().filter(is_one).collect::<Vec<_>>()
    };
    let (tools, choice) = match wish(choice) {
        _ if !form.server.shaped => (all, Some(choice.clone())),
        Wish::Named(name) => {
            let alone = some(&[name]);
            // The last turn offers the exit tools only; none of them was meant.
            if alone.is_empty() || was_called(name, &request.messages) {
                (all, None)
            } else if takes_objects {
                (all, Some(choice.clone()))
            } else {
                (alone, Some(Value::from("required")))
            }
        }
        Wish::Among(names, mode) => {
            let allowed = some(&names);
            match (takes_objects, allowed.is_empty()) {
                (_, true) => (all, None),
                (true, false) => (all, Some(choice.clone())),
                (false, false) => (allowed, Some(Value::from(mode))),
            }
        }
        Wish::Other => (all, Some(choice.clone())),
    };
    Offer { tools, choice: choice.filter(|_| may_choose) }
}

/// Whether a body, as it was sent, demands a call. No server is certain to keep to it.
pub fn demands_call(body: &Value) -> bool {
    match body.get("tool_choice") {
        Some(Value::String(word)) => matches!(word.as_str(), "required" | "any"),
        Some(choice) => matches!(wish(choice), Wish::Named(_) | Wish::Among(_, "required")),
        None => false,
    }
}

/// The name of a tool, in the form of chat completions or that of responses.
fn name_of(tool: &Value) -> Option<&str> {
    tool.pointer("/function/name").or_else(|| tool.get("name"))?.as_str()
}

fn wish(choice: &Value) -> Wish<'_> {
    if let Some(name) = name_of(choice) {
        return Wish::Named(name);
    }
    let allowed = choice.get("allowed_tools").unwrap_or(choice);
    match allowed.get("tools").and_then(Value::as_array) {
        Some(tools) => {
            let mode = allowed.get("mode").and_then(Value::as_str).unwrap_or("auto");
            Wish::Among(tools.iter().filter_map(name_of).collect(), mode)
        }
        None => Wish::Other,
    }
}

/// Whether the model has called the tool since the user last spoke.
fn was_called(name: &str, messages: &[Message]) -> bool {
    let since = messages.iter().rev().take_while(|message| !matches!(message, Message::User { .. }));
    since.into_iter().any(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.iter().any(|call| call.function.name == name),
        Message::System { .. } | Message::User { .. } | Message::Tool { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Capabilities;
    use super::super::message::MessageToolCall;
    use super::super::swap::Swaps;
    use super::*;
    use crate::spec::Dialect;
    use serde_json::json;

    /// Names of the tools and the choice.
    fn offered(choice: &Value, dialect: Dialect, swaps: &[Swap], called: bool) -> (Vec<String>, Value) {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        let mut request = ChatRequest { tools: vec![tool("f"), tool("g")], ..ChatRequest::default() };
        request.params.insert("tool_choice".into(), choice.clone());
        request.messages.push(Message::User { content: "hello".into() });
        if called {
            let tool_calls = vec![MessageToolCall::new("1", "f", "{}")];
            request.messages.push(Message::Assistant { content: String::new(), tool_calls });
        }
        let swaps = Swaps::from(swaps.to_vec());
        let form = BodyForm { server: Capabilities::of(dialect), swaps, ..BodyForm::default() };
        let Offer { tools, choice } = offer(&request, form);
        (tools.iter().filter_map(|tool| name_of(tool)).map(str::to_owned).collect(), json!(choice))
    }

    #[test]
    fn a_tool_is_forced_as_the_server_takes_it() {
        let named = json!({"type": "function", "function": {"name": "f"}});
        let both = || vec![String::from("f"), String::from("g")];
        let alone = || (vec![String::from("f")], json!("required"));
        assert_eq!(offered(&named, Dialect::OpenAi, &[], false), (both(), named.clone()));
        assert_eq!(offered(&named, Dialect::Vllm, &[], false), (both(), named.clone()));
        for dialect in [Dialect::LlamaCpp, Dialect::LmStudio, Dialect::Ollama] {
            assert_eq!(offered(&named, dialect, &[], false), alone());
        }
        assert_eq!(offered(&named, Dialect::OpenAi, &[Swap::ToolAlone], false), alone());
        assert_eq!(offered(&named, Dialect::LlamaCpp, &[Swap::NoToolChoice], false).1, Value::Null);
        // Once it was called, the model is free.
        assert_eq!(offered(&named, Dialect::OpenAi, &[], true), (both(), Value::Null));
        assert_eq!(offered(&named, Dialect::LlamaCpp, &[], true), (both(), Value::Null));
        let gone = json!({"type": "function", "function": {"name": "gone"}});
        assert_eq!(offered(&gone, Dialect::OpenAi, &[], false), (both(), Value::Null));
        let among = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
        assert_eq!(offered(&among, Dialect::OpenAi, &[], false), (both(), among.clone()));
        assert_eq!(offered(&among, Dialect::LlamaCpp, &[], false), alone());
        for word in ["auto", "required", "none"] {
            assert_eq!(offered(&json!(word), Dialect::LlamaCpp, &[], true), (both(), json!(word)));
        }
    }
}
