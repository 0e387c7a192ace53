//! Messages in the order and with the roles that a server accepts.
//!
//! In: a valid conversation from the request machine, and the body fallbacks to apply. Out: the same
//! content in other positions. Nothing is omitted or added, except for the line before a result that is sent as text.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::model::{BodyFallback, BodyFallbacks};
use crate::message::{Message, MessageToolCall};

/// Returns `messages` with `fallbacks` applied.
pub(super) fn shape_messages(messages: &[Message], fallbacks: BodyFallbacks) -> Cow<'_, [Message]> {
    let mut shaped = Cow::Borrowed(messages);
    if fallbacks.has(BodyFallback::NoTools) || fallbacks.has(BodyFallback::PlainRoles) {
        shaped = Cow::Owned(as_text(&shaped));
    } else if fallbacks.has(BodyFallback::CallPairs) {
        shaped = Cow::Owned(pair_calls(shaped.into_owned()));
    }
    if fallbacks.has(BodyFallback::SystemAsUser) {
        let (system, mut others) = split_system(&shaped);
        if !system.is_empty() {
            others.insert(0, Message::User { content: system });
        }
        shaped = Cow::Owned(others);
    } else if fallbacks.has(BodyFallback::SystemFirst) || fallbacks.has(BodyFallback::PlainRoles) {
        let (system, mut others) = split_system(&shaped);
        if !system.is_empty() {
            others.insert(0, Message::System { content: system });
        }
        shaped = Cow::Owned(others);
    }
    match shaped {
        Cow::Borrowed(messages) => Cow::Borrowed(messages),
        Cow::Owned(messages) => Cow::Owned(merge_neighbours(messages)),
    }
}

/// Merges adjacent messages of the same role. Some templates reject a conversation without alternating roles.
pub(crate) fn merge_neighbours(messages: Vec<Message>) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (merged.last_mut(), message) {
            (Some(Message::User { content: before }), Message::User { content }) => join(before, &content),
            (
                Some(Message::Assistant { content: before, tool_calls: none }),
                Message::Assistant { content, tool_calls },
            ) if none.is_empty() => {
                join(before, &content);
                *none = tool_calls;
            }
            (_, message) => merged.push(message),
        }
    }
    merged
}

fn join(before: &mut String, after: &str) {
    if !before.is_empty() && !after.is_empty() {
        before.push_str("\n\n");
    }
    before.push_str(after);
}

/// Returns the text of all system messages, and the other messages.
fn split_system(messages: &[Message]) -> (String, Vec<Message>) {
    let mut system = String::new();
    let mut others = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::System { content } => join(&mut system, content),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => {
                others.push(message.clone());
            }
        }
    }
    (system, others)
}

/// Splits a message with several calls into one message per call, each followed by its result. Some templates support
/// only one call per message.
pub(crate) fn pair_calls(messages: Vec<Message>) -> Vec<Message> {
    let mut paired = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        let (mut content, tool_calls) = match message {
            Message::Assistant { content, tool_calls } if tool_calls.len() > 1 => (content, tool_calls),
            message => {
                paired.push(message);
                continue;
            }
        };
        let mut results = Results::default();
        while let Some(Message::Tool { tool_call_id, content }) =
            rest.next_if(|next| matches!(next, Message::Tool { .. }))
        {
            results.push(tool_call_id, content);
        }
        for call in tool_calls {
            let result = results.take(&call.id);
            paired.push(Message::Assistant { content: std::mem::take(&mut content), tool_calls: vec![call] });
            paired.extend(result);
        }
        // Results that belong to no call of this message are kept.
        paired.extend(results.all.into_iter().flatten());
    }
    paired
}

/// Results in order, and the positions of each call's results.
#[derive(Default)]
struct Results {
    all: Vec<Option<Message>>,
    by_call: HashMap<String, VecDeque<usize>>,
}

impl Results {
    fn push(&mut self, tool_call_id: String, content: String) {
        self.by_call.entry(tool_call_id.clone()).or_default().push_back(self.all.len());
        self.all.push(Some(Message::Tool { tool_call_id, content }));
    }

    /// Returns the first result of a call that was not returned yet.
    fn take(&mut self, call: &str) -> Option<Message> {
        let index = self.by_call.get_mut(call)?.pop_front()?;
        self.all.get_mut(index)?.take()
    }
}

/// Converts calls to the lines of the call convention, and results to user messages.
fn as_text(messages: &[Message]) -> Vec<Message> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let mut converted = Vec::with_capacity(messages.len());
    for message in messages {
        converted.push(match message {
            Message::Assistant { content, tool_calls } => {
                let mut content = content.clone();
                for call in tool_calls {
                    names.push((&call.id, &call.function.name));
                    join(&mut content, &call_line(call));
                }
                Message::Assistant { content, tool_calls: Vec::new() }
            }
            Message::Tool { tool_call_id, content } => {
                let name = names.iter().rev().find(|(id, _)| id == tool_call_id).map_or("", |(_, name)| name);
                Message::User { content: format!("Result of {name}:\n{content}") }
            }
            Message::System { .. } | Message::User { .. } => message.clone(),
        });
    }
    converted
}

fn call_line(call: &MessageToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.function.arguments).unwrap_or_else(|_| json!({}));
    json!({ "tool": call.function.name, "arguments": arguments }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Vec<Message> {
        let call = |id: &str, name: &str| MessageToolCall::new(id, name, r#"{"a":1}"#);
        let result =
            |id: &str, text: &str| Message::Tool { tool_call_id: id.into(), content: text.to_owned() };
        vec![
            Message::System { content: "bios".into() },
            Message::System { content: "be kind".into() },
            Message::User { content: "hello".into() },
            Message::Assistant { content: "hm".into(), tool_calls: vec![call("1", "f"), call("2", "g")] },
            result("2", "two"),
            result("1", "one"),
            Message::System { content: "budget".into() },
        ]
    }

    fn shown(fallbacks: &[BodyFallback]) -> Vec<String> {
        let fallbacks = BodyFallbacks::from(fallbacks.to_vec());
        let show = |message: &Message| match message {
            Message::System { content } => format!("s:{content}"),
            Message::User { content } => format!("u:{content}"),
            Message::Assistant { content, tool_calls } => {
                let ids: Vec<&str> = tool_calls.iter().map(|call| call.id.as_str()).collect();
                format!("a:{content}:{}", ids.join(","))
            }
            Message::Tool { tool_call_id, content } => format!("t:{tool_call_id}:{content}"),
        };
        shape_messages(&conversation(), fallbacks).iter().map(show).collect()
    }

    #[test]
    fn messages_without_fallbacks_are_borrowed() {
        assert!(matches!(shape_messages(&conversation(), BodyFallbacks::default()), Cow::Borrowed(_)));
    }

    #[test]
    fn each_call_is_followed_by_its_result() {
        let paired = shown(&[BodyFallback::CallPairs]);
        assert_eq!(paired[3..], ["a:hm:1", "t:1:one", "a::2", "t:2:two", "s:budget"]);
    }

    #[test]
    fn system_messages_are_merged_or_moved() {
        let first = shown(&[BodyFallback::SystemFirst]);
        assert_eq!(first[..2], ["s:bios\n\nbe kind\n\nbudget", "u:hello"]);
        assert_eq!(first.len(), 5);
        assert_eq!(shown(&[BodyFallback::SystemAsUser])[0], "u:bios\n\nbe kind\n\nbudget\n\nhello");
    }

    #[test]
    fn plain_roles_leave_only_alternating_user_and_assistant_messages() {
        let plain = shown(&[BodyFallback::PlainRoles]);
        assert_eq!(
            plain,
            [
                "s:bios\n\nbe kind\n\nbudget",
                "u:hello",
                "a:hm\n\n{\"tool\":\"f\",\"arguments\":{\"a\":1}}\n\n{\"tool\":\"g\",\"arguments\":{\"a\":1}}:",
                "u:Result of g:\ntwo\n\nResult of f:\none",
            ]
        );
        assert_eq!(shown(&[BodyFallback::NoTools])[4], "u:Result of g:\ntwo\n\nResult of f:\none");
    }
}
