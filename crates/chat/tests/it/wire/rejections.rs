//! The next request after a server or a chat template rejected the layout of the messages.
//! `UPDATE_EXPECT=1 cargo test -p deftool-chat` updates `tests/wire/rejections.txt`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use deftool_chat::{
    BodyForm, ChatRequest, Message, MessageToolCall, Tables, classify_http_error, next_body_fallback,
};
use serde_json::{Value, json};

fn system(text: &str) -> Message {
    Message::System { content: text.to_owned() }
}

/// A request with two calls in one message, which has this text, and their results.
fn request(text: &str, first: Vec<Message>, last: Vec<Message>) -> ChatRequest {
    let calls = ["1", "2"].map(|id| MessageToolCall::new(id, "f", "{}"));
    let result = |id: &str| Message::tool(id, "3");
    let conversation = vec![
        Message::user("c"),
        Message::Assistant { content: text.to_owned(), tool_calls: calls.to_vec(), received: None },
        result("1"),
        result("2"),
    ];
    ChatRequest {
        model: String::from("m"),
        messages: [first, conversation, last].concat().into_iter().map(Arc::new).collect(),
        tools: vec![json!({"type": "function", "function": {"name": "f"}})],
        ..ChatRequest::default()
    }
}

/// Returns the roles or types of the messages of a body.
fn layout(body: &Value) -> String {
    if let Some(items) = body.get("input").and_then(Value::as_array) {
        let name = |item: &Value| {
            let name = item.get("role").or_else(|| item.get("type")).and_then(Value::as_str);
            name.unwrap_or_default().to_owned()
        };
        return format!("responses: {}", items.iter().map(name).collect::<Vec<_>>().join(" "));
    }
    let show = |message: &Value| {
        let mut shown = message["role"].as_str().unwrap_or_default().to_owned();
        if let Some(calls) = message.get("tool_calls").and_then(Value::as_array) {
            let _ = write!(shown, "+{}", calls.len());
        }
        if message["content"].is_null() {
            shown.push_str(" null");
        }
        shown
    };
    body["messages"].as_array().into_iter().flatten().map(show).collect::<Vec<_>>().join(" ")
}

/// Returns the layouts of the next requests, as long as the server answers with the same message.
fn next_layouts(sent: &ChatRequest, status: u16, message: &str) -> String {
    let body = json!({"error": {"message": message}}).to_string();
    let error = classify_http_error(Tables::default(), status, body.as_bytes());
    let mut form = BodyForm::default();
    let mut layouts = Vec::new();
    while let Some(fallback) = next_body_fallback(sent, form, &error) {
        form.fallbacks = form.fallbacks.with(fallback);
        layouts.push(layout(&sent.encode_body(form).to_value()));
    }
    if layouts.is_empty() { String::from("none") } else { layouts.join("; then ") }
}

#[test]
fn a_rejected_layout_is_changed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/rejections.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let default = request("", vec![system("a")], Vec::new());
    let several = request("", vec![system("a"), system("b")], vec![system("d")]);
    let with_text = request("e", vec![system("a")], Vec::new());
    let mut found = String::new();
    for line in table.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(found, "{line}");
        let Some((_, rejection)) = line.split_once(": ").filter(|_| !line.starts_with('#')) else { continue };
        let (status, message) = rejection.split_once(' ').unwrap();
        let status = status.parse().unwrap();
        for (name, sent) in [("default", &default), ("several", &several)] {
            let _ = writeln!(found, "  {name}: {}", next_layouts(sent, status, message));
        }
        let layouts = next_layouts(&with_text, status, message);
        if layouts != next_layouts(&default, status, message).replace(" null", "") {
            let _ = writeln!(found, "  text: {layouts}");
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert!(found == table || std::env::var_os("UPDATE_EXPECT").is_some(), "{}:\n{found}", path.display());
}
