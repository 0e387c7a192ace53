//! The messages and tools of a body of either API, in the chat completions format.

use serde_json::{Value, json};

/// Whether the body is for the Responses API.
pub(super) fn is_response(body: &Value) -> bool {
    body.get("input").is_some()
}

/// Returns the conversation, or the reason why it is invalid.
pub(super) fn messages(body: &Value) -> Result<Vec<Value>, String> {
    match (body["messages"].as_array(), body["input"].as_array()) {
        (Some(messages), None) => Ok(messages.clone()),
        (None, Some(items)) => of_items(items),
        _ => Err(String::from("expected either messages or input")),
    }
}

fn of_items(items: &[Value]) -> Result<Vec<Value>, String> {
    let mut messages: Vec<Value> = Vec::new();
    for item in items {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("message"), Some(role)) => {
                let is_assistant = role == "assistant";
                let part = item.pointer("/content/0").unwrap_or(&Value::Null);
                let is_good = part["type"] == if is_assistant { "output_text" } else { "input_text" };
                let has_id = item["id"].as_str().is_some_and(|id| id.starts_with("msg_"));
                if !is_good || !part["text"].is_string() || (is_assistant && !has_id) {
                    return Err(format!("the item {item}"));
                }
                messages.push(json!({"role": role, "content": part["text"]}));
            }
            (Some("function_call"), None) => {
                let function = json!({"name": item["name"], "arguments": item["arguments"]});
                let call = json!({"id": item["call_id"], "type": "function", "function": function});
                match messages.last_mut().filter(|last| last["role"] == "assistant") {
                    Some(last) => match last["tool_calls"].as_array_mut() {
                        Some(calls) => calls.push(call),
                        None => last["tool_calls"] = json!([call]),
                    },
                    None => {
                        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                    }
                }
            }
            (Some("function_call_output"), None) => {
                let (id, output) = (&item["call_id"], &item["output"]);
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
            }
            _ => return Err(format!("the item {item}")),
        }
    }
    Ok(messages)
}

/// Returns the offered tools.
pub(super) fn tools(body: &Value) -> Vec<Value> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    if !is_response(body) {
        return tools;
    }
    let nested = |mut tool: Value| {
        if let Value::Object(members) = &mut tool {
            members.shift_remove("type");
            members.shift_remove("strict");
        }
        json!({"type": "function", "function": tool})
    };
    tools.into_iter().map(nested).collect()
}

/// Removes the last tool result from a body.
pub(super) fn lose_answer(body: &mut Value) {
    for list in ["messages", "input"] {
        let Some(list) = body.get_mut(list).and_then(Value::as_array_mut) else { continue };
        let is_answer = |item: &Value| item["role"] == "tool" || item["type"] == "function_call_output";
        if let Some(last) = list.iter().rposition(is_answer) {
            list.remove(last);
        }
    }
}
