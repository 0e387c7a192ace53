//! The tools and the `tool_choice` of each turn, and the next body after a rejection.

use std::sync::Arc;

use deftool_chat::{
    BodyFallback, BodyFallbacks, BodyForm, ChatRequest, Message, MessageToolCall, Tables,
    classify_http_error, next_body_fallback, requires_call,
};
use serde_json::{Value, json};

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

fn user(text: &str) -> Message {
    Message::user(text)
}

/// A call of `f` and its result.
fn called(id: &str) -> [Message; 2] {
    let tool_calls = vec![MessageToolCall::new(id, "f", "{}")];
    let result = Message::tool(id, "1");
    [Message::Assistant { content: String::new(), tool_calls, received: None }, result]
}

fn request(messages: Vec<Message>, choice: &Value) -> ChatRequest {
    let messages = messages.into_iter().map(Arc::new).collect();
    let mut request = ChatRequest { messages, tools: vec![tool("f"), tool("g")], ..ChatRequest::default() };
    request.params.insert(String::from("tool_choice"), choice.clone());
    request
}

/// If a tool were forced in every turn, only the budget would end the request. A new user message forces it again.
#[test]
fn a_tool_is_forced_until_its_call_after_each_user_message() {
    let named = json!({"type": "function", "function": {"name": "f"}});
    let first = vec![user("one")];
    let answered = [first.clone(), called("aaaaaaaaa").to_vec()].concat();
    let asked_again = [answered.clone(), vec![user("two")]].concat();
    for (messages, is_forced) in [(first, true), (answered, false), (asked_again, true)] {
        let body = request(messages, &named).encode_body(BodyForm::default());
        assert_eq!(body.get("tool_choice").is_some(), is_forced, "{body:?}");
        assert_eq!(requires_call(body.get("tool_choice")), is_forced, "{body:?}");
    }
}

#[test]
fn tool_choices_that_require_a_call() {
    let allowed =
        |mode: &str| json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [tool("f")]}});
    for (choice, demands) in [
        (json!("required"), true),
        (json!("any"), true),
        (json!("auto"), false),
        (json!("none"), false),
        (json!({"type": "function", "name": "f"}), true),
        (allowed("required"), true),
        (allowed("auto"), false),
        (json!({"type": "other"}), false),
    ] {
        assert_eq!(requires_call(Some(&choice)), demands, "{choice}");
    }
    assert!(!requires_call(None));
}

/// A rejected value does not cause a renamed member, and an accepted member does not cause a fallback.
#[test]
fn a_rejection_without_a_suitable_fallback_changes_nothing() {
    let messages = vec![Message::System { content: String::from("Be brief.") }, user("one")];
    let mut sent = request(messages, &json!("auto"));
    sent.params.insert(String::from("max_tokens"), json!(9));
    let template = "Jinja Exception: System message must be at the beginning.";
    for (status, message, expected) in [
        (400, "max_tokens is not supported", Some(BodyFallback::UseMaxCompletionTokens)),
        (400, "max_tokens must be at least 16", None),
        (400, "max_tokens or max_completion_tokens must be at least 16", None),
        (
            400,
            "max_tokens of 9 is out of range; use max_completion_tokens instead",
            Some(BodyFallback::UseMaxCompletionTokens),
        ),
        // The member was not sent.
        (400, "max_completion_tokens is not supported", None),
        // The system message is at the beginning.
        (400, template, None),
        (503, "System role not supported", None),
    ] {
        let error = classify_http_error(
            Tables::default(),
            status,
            json!({"error": {"message": message}}).to_string().as_bytes(),
        );
        assert_eq!(next_body_fallback(&sent, BodyForm::default(), &error), expected, "{status} {message}");
    }
}

/// Results keep the names and the order of their calls, regardless of other messages.
#[test]
fn calls_and_results_stay_together_in_every_variant() {
    let two = |first: &str, second: &str| Message::Assistant {
        content: String::new(),
        tool_calls: vec![MessageToolCall::new(first, "f", "{}"), MessageToolCall::new(second, "g", "{}")],
        received: None,
    };
    let result = |id: &str, text: &str| Message::tool(id, text);
    let messages = vec![user("one"), two("1", "2"), result("2", "of g"), result("1", "of f")];
    let plain = BodyForm {
        fallbacks: BodyFallbacks::default().with(BodyFallback::PlainRoles),
        ..BodyForm::default()
    };
    let body = request(messages.clone(), &json!("auto")).encode_body(plain).to_value();
    let results = body["messages"][2]["content"].as_str().unwrap();
    assert_eq!(results, "Result of g:\nof g\n\nResult of f:\nof f");
    let pairs =
        BodyForm { fallbacks: BodyFallbacks::default().with(BodyFallback::CallPairs), ..BodyForm::default() };
    let stray = [messages, vec![result("3", "of nobody")]].concat();
    let body = request(stray, &json!("auto")).encode_body(pairs).to_value();
    let contents: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(
        contents.iter().filter(|text| text.starts_with("of ")).collect::<Vec<_>>(),
        [&"of f", &"of g", &"of nobody"]
    );
    // A message that makes another call before its calls are answered keeps both.
    let twice = vec![user("one"), two("1", "2"), two("3", "4"), result("3", "c"), result("4", "d")];
    let body = request(twice, &json!("auto")).encode_body(plain).to_value();
    assert_eq!(body["messages"].to_string().matches(r#"\"tool\":"#).count(), 4, "{body}");
}
