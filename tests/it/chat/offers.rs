//! Which tools a body offers and demands, turn by turn, and in which form it is sent again.

use deftool::chat::{
    BodyForm, ChatRequest, Message, MessageToolCall, Swap, Swaps, classify_http_error, demands_call,
    next_swap,
};
use deftool::request::Fallback;
use serde_json::{Value, json};

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

fn user(text: &str) -> Message {
    Message::User { content: text.to_owned() }
}

/// A call of `f` and its result.
fn called(id: &str) -> [Message; 2] {
    let tool_calls = vec![MessageToolCall::new(id, "f", "{}")];
    let result = Message::Tool { tool_call_id: id.to_owned(), content: String::from("1") };
    [Message::Assistant { content: String::new(), tool_calls }, result]
}

fn request(messages: Vec<Message>, choice: &Value) -> ChatRequest {
    let mut request = ChatRequest { messages, tools: vec![tool("f"), tool("g")], ..ChatRequest::default() };
    request.params.insert(String::from("tool_choice"), choice.clone());
    request
}

/// Forced in every turn, a request could only end by its budget; forced never again, the next question were another.
#[test]
fn a_tool_is_forced_until_it_was_called_since_the_user_spoke() {
    let named = json!({"type": "function", "function": {"name": "f"}});
    let first = vec![user("one")];
    let answered = [first.clone(), called("aaaaaaaaa").to_vec()].concat();
    let asked_again = [answered.clone(), vec![user("two")]].concat();
    for (messages, is_forced) in [(first, true), (answered, false), (asked_again, true)] {
        let body = request(messages, &named).encode_body(BodyForm::default());
        assert_eq!(body.get("tool_choice").is_some(), is_forced, "{body}");
        assert_eq!(demands_call(&body), is_forced, "{body}");
    }
}

#[test]
fn what_demands_a_call() {
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
        assert_eq!(demands_call(&json!({"tool_choice": choice.clone()})), demands, "{choice}");
    }
    assert!(!demands_call(&json!({})));
}

/// What is said of a value is no reason to send it under another name, and what passes is no reason to send it otherwise.
#[test]
fn a_refusal_that_another_form_would_not_mend_changes_none() {
    let messages = vec![Message::System { content: String::from("Be brief.") }, user("one")];
    let mut sent = request(messages, &json!("auto"));
    sent.params.insert(String::from("max_tokens"), json!(9));
    let template = "Jinja Exception: System message must be at the beginning.";
    for (status, said, expected) in [
        (400, "max_tokens is not supported", Some(Swap::UseMaxCompletionTokens)),
        (400, "max_tokens must be at least 16", None),
        (400, "max_tokens or max_completion_tokens must be at least 16", None),
        (
            400,
            "max_tokens of 9 is out of range; use max_completion_tokens instead",
            Some(Swap::UseMaxCompletionTokens),
        ),
        // It stands there.
        (400, template, None),
        (503, "System role not supported", None),
    ] {
        let error = classify_http_error(status, json!({"error": {"message": said}}).to_string().as_bytes());
        assert_eq!(next_swap(&sent, BodyForm::default(), &error, Fallback::On), expected, "{status} {said}");
    }
}

/// Results keep their calls' names and their places, whatever else stands there.
#[test]
fn calls_and_results_stay_together_in_every_form() {
    let two = |first: &str, second: &str| Message::Assistant {
        content: String::new(),
        tool_calls: vec![MessageToolCall::new(first, "f", "{}"), MessageToolCall::new(second, "g", "{}")],
    };
    let result =
        |id: &str, text: &str| Message::Tool { tool_call_id: id.to_owned(), content: text.to_owned() };
    let messages = vec![user("one"), two("1", "2"), result("2", "of g"), result("1", "of f")];
    let plain = BodyForm { swaps: Swaps::default().with(Swap::PlainRoles), ..BodyForm::default() };
    let body = request(messages.clone(), &json!("auto")).encode_body(plain);
    let told = body["messages"][2]["content"].as_str().unwrap();
    assert_eq!(told, "Result of g:\nof g\n\nResult of f:\nof f");
    let pairs = BodyForm { swaps: Swaps::default().with(Swap::CallPairs), ..BodyForm::default() };
    let stray = [messages, vec![result("3", "of nobody")]].concat();
    let body = request(stray, &json!("auto")).encode_body(pairs);
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
    // One that calls again before its calls are answered keeps both.
    let twice = vec![user("one"), two("1", "2"), two("3", "4"), result("3", "c"), result("4", "d")];
    let body = request(twice, &json!("auto")).encode_body(plain);
    assert_eq!(body["messages"].to_string().matches(r#"\"tool\":"#).count(), 4, "{body}");
}
