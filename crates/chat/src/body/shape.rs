//! Messages in the order and with the roles that a server accepts.
//!
//! In: a valid conversation from the request machine, and the body fallbacks to apply. Out: the same
//! content in other positions. Nothing is omitted or added, except for the line before a result that is sent as text,
//! and the text beside calls in a turn that has not ended (`separate_text`).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::change::{BodyFallback, BodyFallbacks};
use crate::message::{Message, MessageToolCall};

/// Returns `messages` with `fallbacks` applied. `writes_calls`: calls and results are text.
pub(super) fn shape_messages(
    messages: &[Arc<Message>],
    writes_calls: bool,
    fallbacks: BodyFallbacks,
) -> Cow<'_, [Arc<Message>]> {
    let mut shaped = Cow::Borrowed(messages);
    if writes_calls {
        shaped = Cow::Owned(as_text(&shaped));
    } else {
        if fallbacks.has(BodyFallback::TextOrCalls) {
            shaped = Cow::Owned(separate_text(shaped.into_owned()));
        }
        if fallbacks.has(BodyFallback::CallPairs) {
            shaped = Cow::Owned(pair_calls(shaped.into_owned()));
        }
    }
    if fallbacks.has(BodyFallback::SystemAsUser) {
        let (system, mut others) = split_system(&shaped);
        if !system.is_empty() {
            others.insert(0, Arc::new(Message::user(system)));
        }
        shaped = Cow::Owned(others);
    } else if fallbacks.has(BodyFallback::SystemFirst) || fallbacks.has(BodyFallback::PlainRoles) {
        let (system, mut others) = split_system(&shaped);
        if !system.is_empty() {
            others.insert(0, Arc::new(Message::System { content: system }));
        }
        shaped = Cow::Owned(others);
    }
    match shaped {
        Cow::Borrowed(messages) => Cow::Borrowed(messages),
        Cow::Owned(messages) => Cow::Owned(merge_neighbours(messages)),
    }
}

/// Merges adjacent messages of the same role. Some templates reject a conversation without alternating roles.
fn merge_neighbours(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut merged: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    for message in messages {
        if !merged.last_mut().is_some_and(|last| merge(last, &message)) {
            merged.push(message);
        }
    }
    merged
}

/// Appends `next` to `last`, if their roles allow it.
pub(crate) fn merge(last: &mut Arc<Message>, next: &Message) -> bool {
    match (&**last, next) {
        (Message::User { .. }, Message::User { .. }) => {}
        // The first part of a reply that the server paused stays as it was received.
        (Message::Assistant { tool_calls, received, .. }, Message::Assistant { .. })
            if tool_calls.is_empty() && received.as_ref().is_none_or(|it| it.parts.items.is_empty()) => {}
        _ => return false,
    }
    match (Arc::make_mut(last), next) {
        (
            Message::Assistant { content: before, tool_calls: calls, received: state },
            Message::Assistant { content, tool_calls, received },
        ) => {
            join(before, content);
            if received.is_some() {
                state.clone_from(received);
            }
            calls.clone_from(tool_calls);
        }
        (Message::User { content: before, attachments: earlier }, Message::User { content, attachments }) => {
            join(before, content);
            earlier.extend_from_slice(attachments);
        }
        _ => {}
    }
    true
}

/// Appends a text as a paragraph of its own.
pub(crate) fn join(before: &mut String, after: &str) {
    if !before.is_empty() && !after.is_empty() {
        before.push_str("\n\n");
    }
    before.push_str(after);
}

/// Returns the text of all system messages, and the other messages.
fn split_system(messages: &[Arc<Message>]) -> (String, Vec<Arc<Message>>) {
    let mut system = String::new();
    let mut others = Vec::with_capacity(messages.len());
    for message in messages {
        match &**message {
            Message::System { content } => join(&mut system, content),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => {
                others.push(Arc::clone(message));
            }
        }
    }
    (system, others)
}

/// Moves the text of messages with calls to the end of their turn, and omits empty messages. Before the calls, a server
/// would merge the text with them again. After the results, only the end of the turn may follow, so the text is omitted
/// until then.
fn separate_text(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut separated = Vec::with_capacity(messages.len());
    let mut waiting = String::new();
    for mut message in messages {
        match &*message {
            Message::Assistant { tool_calls, .. } if !tool_calls.is_empty() => {
                if let Message::Assistant { content, .. } = Arc::make_mut(&mut message) {
                    join(&mut waiting, &std::mem::take(content));
                }
            }
            Message::Assistant { .. } | Message::User { .. } => {
                if !waiting.is_empty() {
                    let content = std::mem::take(&mut waiting);
                    let (tool_calls, received) = (Vec::new(), None);
                    separated.push(Arc::new(Message::Assistant { content, tool_calls, received }));
                }
                if matches!(&*message, Message::Assistant { content, .. } if content.is_empty()) {
                    continue;
                }
            }
            Message::System { .. } | Message::Tool { .. } => {}
        }
        separated.push(message);
    }
    separated
}

/// Splits a message with several calls into one message per call, each followed by its result. Some templates support
/// only one call per message.
pub(crate) fn pair_calls(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut paired = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        let (content, tool_calls, received) = match &*message {
            Message::Assistant { content, tool_calls, received } if tool_calls.len() > 1 => {
                (content, tool_calls, received)
            }
            _ => {
                paired.push(message);
                continue;
            }
        };
        let mut results = Results::default();
        while let Some(result) = rest.next_if(|next| matches!(**next, Message::Tool { .. })) {
            results.push(result);
        }
        for (number, call) in tool_calls.iter().enumerate() {
            let content = if number == 0 { content.clone() } else { String::new() };
            let received = match received {
                // The request had the lines once.
                Some(received) if number > 0 => received.without_lines(),
                received => received.clone(),
            };
            let tool_calls = vec![call.clone()];
            paired.push(Arc::new(Message::Assistant { content, tool_calls, received }));
            paired.extend(results.take(&call.id));
        }
        // Results that belong to no call of this message are kept.
        paired.extend(results.all.into_iter().flatten());
    }
    paired
}

/// Results in order, and the positions of each call's results.
#[derive(Default)]
struct Results {
    all: Vec<Option<Arc<Message>>>,
    by_call: HashMap<String, VecDeque<usize>>,
}

impl Results {
    fn push(&mut self, result: Arc<Message>) {
        if let Message::Tool { tool_call_id, .. } = &*result {
            self.by_call.entry(tool_call_id.clone()).or_default().push_back(self.all.len());
        }
        self.all.push(Some(result));
    }

    /// Returns the first result of a call that was not returned yet.
    fn take(&mut self, call: &str) -> Option<Arc<Message>> {
        let index = self.by_call.get_mut(call)?.pop_front()?;
        self.all.get_mut(index)?.take()
    }
}

/// Converts calls to the lines of the call convention, and results to user messages.
fn as_text(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let mut converted = Vec::with_capacity(messages.len());
    for message in messages {
        converted.push(match &**message {
            Message::Assistant { content, tool_calls, .. } => {
                let mut content = content.clone();
                for call in tool_calls {
                    names.push((&call.id, &call.function.name));
                    join(&mut content, &call_line(call));
                }
                Arc::new(Message::Assistant { content, tool_calls: Vec::new(), received: None })
            }
            Message::Tool { tool_call_id, content, attachments } => {
                let name = names.iter().rev().find(|(id, _)| id == tool_call_id).map_or("", |(_, name)| name);
                let content = format!("Result of {name}:\n{content}");
                Arc::new(Message::User { content, attachments: attachments.clone() })
            }
            Message::System { .. } | Message::User { .. } => Arc::clone(message),
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

    fn conversation() -> Vec<Arc<Message>> {
        let call = |id: &str, name: &str| MessageToolCall::new(id, name, r#"{"a":1}"#);
        let result = |id: &str, text: &str| Message::tool(id, text);
        [
            Message::System { content: "bios".into() },
            Message::System { content: "be kind".into() },
            Message::user("hello"),
            Message::Assistant {
                content: "hm".into(),
                tool_calls: vec![call("1", "f"), call("2", "g")],
                received: None,
            },
            result("2", "two"),
            result("1", "one"),
            Message::System { content: "budget".into() },
        ]
        .map(Arc::new)
        .into()
    }

    fn shown(fallbacks: &[BodyFallback]) -> Vec<String> {
        shown_of(&conversation(), fallbacks)
    }

    fn shown_of(messages: &[Arc<Message>], fallbacks: &[BodyFallback]) -> Vec<String> {
        let fallbacks = BodyFallbacks::from(fallbacks.to_vec());
        let show = |message: &Arc<Message>| match &**message {
            Message::System { content } => format!("s:{content}"),
            Message::User { content, .. } => format!("u:{content}"),
            Message::Assistant { content, tool_calls, .. } => {
                let ids: Vec<&str> = tool_calls.iter().map(|call| call.id.as_str()).collect();
                format!("a:{content}:{}", ids.join(","))
            }
            Message::Tool { tool_call_id, content, .. } => format!("t:{tool_call_id}:{content}"),
        };
        let writes_calls = fallbacks.has(BodyFallback::PlainRoles);
        shape_messages(messages, writes_calls, fallbacks).iter().map(show).collect()
    }

    #[test]
    fn messages_without_fallbacks_are_borrowed() {
        assert!(matches!(shape_messages(&conversation(), false, BodyFallbacks::default()), Cow::Borrowed(_)));
    }

    #[test]
    fn each_call_is_followed_by_its_result() {
        let paired = shown(&[BodyFallback::CallPairs]);
        assert_eq!(paired[3..], ["a:hm:1", "t:1:one", "a::2", "t:2:two", "s:budget"]);
    }

    #[test]
    fn text_beside_calls_moves_to_the_end_of_its_turn() {
        let conversation = |rest: &[(&str, &str)]| {
            let message = |(role, content): &(&str, &str)| {
                let content = (*content).to_owned();
                match *role {
                    "user" => Message::user(content),
                    _ => Message::Assistant { content, tool_calls: Vec::new(), received: None },
                }
            };
            conversation().into_iter().chain(rest.iter().map(message).map(Arc::new)).collect::<Vec<_>>()
        };
        for (rest, expected) in [
            (&[][..], &[][..]),
            (&[("assistant", "done"), ("user", "thanks")], &["a:hm\n\ndone:", "u:thanks"]),
            (&[("assistant", ""), ("user", "thanks")], &["a:hm:", "u:thanks"]),
            (&[("user", "go on")], &["a:hm:", "u:go on"]),
        ] {
            let shown = shown_of(&conversation(rest), &[BodyFallback::TextOrCalls]);
            assert_eq!(shown[3], "a::1,2", "{rest:?}");
            assert_eq!(shown[7..], *expected, "{rest:?}");
        }
        let paired = shown(&[BodyFallback::TextOrCalls, BodyFallback::CallPairs]);
        assert_eq!(paired[3..], ["a::1", "t:1:one", "a::2", "t:2:two", "s:budget"]);
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
    }
}
