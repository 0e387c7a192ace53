//! Whether a server would take a conversation, whichever server it is.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

/// Why the messages of a body are not valid, if they are not: calls are answered at once, in their order and by nothing else,
/// arguments are objects, ids are unique and of nine letters or digits.
pub(crate) fn fault(messages: &[Value]) -> Option<String> {
    let mut open: VecDeque<String> = VecDeque::new();
    let mut used = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.pop_front().as_deref() != Some(id) {
                return Some(format!("message {at} does not answer the next call: {message}"));
            }
            continue;
        }
        if !open.is_empty() {
            return Some(format!("message {at} comes before the answers to {open:?}"));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if role == "assistant" && calls.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            return Some(format!("message {at} says nothing: {message}"));
        }
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Some(format!("message {at} has an id that not every server takes: {id:?}"));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Some(format!("message {at} has arguments that are no object: {arguments:?}"));
            }
            if !used.insert(id.clone()) {
                return Some(format!("message {at} uses the id {id} again"));
            }
            open.push_back(id);
        }
    }
    (!open.is_empty()).then(|| format!("nobody answers {open:?}"))
}

/// What Mistral's templates refuse: "conversation roles must alternate user/assistant/user/assistant". Calls and results
/// do not count, and neither do system messages here.
pub(crate) fn alternation_fault(messages: &[Value]) -> Option<String> {
    let mut expected = "user";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        if matches!(role, "system" | "tool") || has_calls {
            continue;
        }
        if role != expected {
            return Some(format!("message {at} is the {role}'s, and the {expected}'s turn it is"));
        }
        expected = if role == "user" { "assistant" } else { "user" };
    }
    None
}

/// Fails unless every server would take the body.
pub(crate) fn assert_valid(body: &Value) {
    let messages = body["messages"].as_array().expect("a body has messages");
    let fault = fault(messages).or_else(|| alternation_fault(messages));
    assert_eq!(fault, None, "{body:#}");
}
