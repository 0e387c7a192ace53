//! Checks whether every known server accepts a conversation.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

/// Returns the first problem of the messages of a request body. Each call must be followed by its result, in order.
/// Arguments must be objects, and IDs unique.
pub fn first_problem(messages: &[Value]) -> Option<String> {
    let mut open: VecDeque<String> = VecDeque::new();
    let mut used = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.pop_front().as_deref() != Some(id) {
                return Some(format!("message {at} is not the result of the next call: {message}"));
            }
            continue;
        }
        if !open.is_empty() {
            return Some(format!("message {at} precedes the results of {open:?}"));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if role == "assistant"
            && calls.is_empty()
            && message["content"].as_array().is_none()
            && message["content"].as_str().is_none_or(str::is_empty)
        {
            return Some(format!("message {at} is empty: {message}"));
        }
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.trim().is_empty() {
                return Some(format!("message {at} has a call without an ID"));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Some(format!("message {at} has arguments that are not an object: {arguments:?}"));
            }
            if !used.insert(id.clone()) {
                return Some(format!("message {at} repeats the ID {id}"));
            }
            open.push_back(id);
        }
    }
    (!open.is_empty()).then(|| format!("no results for {open:?}"))
}

/// Returns the first message that breaks the alternation of user and assistant, which Mistral's templates require. Calls,
/// results and system messages are ignored.
pub fn alternation_problem(messages: &[Value]) -> Option<String> {
    let mut expected = "user";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        if matches!(role, "system" | "tool") || has_calls {
            continue;
        }
        if role != expected {
            return Some(format!("message {at} has the role {role}, expected {expected}"));
        }
        expected = if role == "user" { "assistant" } else { "user" };
    }
    None
}

/// Fails if a known server rejects the body.
pub fn assert_valid(body: &Value) {
    let messages = body["messages"].as_array().expect("a body has messages");
    let problem = first_problem(messages).or_else(|| alternation_problem(messages));
    assert_eq!(problem, None, "{body:#}");
}
