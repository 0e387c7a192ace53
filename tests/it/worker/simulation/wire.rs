//! The messages and tools of a body of any API, in the chat completions format.

use serde_json::{Value, json};

/// Whether the body is for the Responses API.
pub(super) fn is_response(body: &Value) -> bool {
    body.get("input").is_some()
}

/// Whether the body is for the Messages API.
pub(super) fn is_message(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    body.get("stream_options").is_none() && messages.into_iter().any(|message| message["content"].is_array())
}

/// Returns the conversation, or the reason why it is invalid.
pub(crate) fn messages(body: &Value) -> Result<Vec<Value>, String> {
    if is_message(body) {
        return of_blocks(body);
    }
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
                // The items of a reply with reasoning are returned as they came, some without an id.
                let has_id = item["id"].as_str().is_none_or(|id| id.starts_with("msg_"));
                if !is_good || !part["text"].is_string() || (is_assistant && !has_id) {
                    return Err(format!("the item {item}"));
                }
                messages.push(json!({"role": role, "content": part["text"]}));
            }
            (Some("reasoning"), None) => {}
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

/// Returns the conversation of the Messages API, whose roles must alternate.
fn of_blocks(body: &Value) -> Result<Vec<Value>, String> {
    let text_of = |blocks: &[Value]| {
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        texts.map(|block| block["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n\n")
    };
    let mut messages = Vec::new();
    match &body["system"] {
        Value::Null => {}
        Value::String(text) => messages.push(json!({"role": "system", "content": text})),
        Value::Array(blocks) => messages.push(json!({"role": "system", "content": text_of(blocks)})),
        other => return Err(format!("the system text {other}")),
    }
    let mut expected = "user";
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or_else(|| format!("the content of {message}"))?;
        let is_blank = |block: &Value| {
            block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
        };
        if message["role"] != expected || blocks.iter().any(is_blank) {
            return Err(format!("the message {message}, expected one of {expected}"));
        }
        let text = text_of(blocks);
        if expected == "assistant" {
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| {
                let function = json!({"name": block["name"], "arguments": block["input"].to_string()});
                json!({"id": block["id"], "type": "function", "function": function})
            });
            let calls: Vec<Value> = calls.collect();
            let mut message =
                json!({"role": "assistant", "content": Some(text).filter(|text| !text.is_empty())});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            messages.push(message);
            expected = "user";
            continue;
        }
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let results = blocks.iter().take_while(is_result).count();
        if blocks.iter().filter(is_result).count() != results {
            return Err(format!("the results of {message} are not first"));
        }
        let results = blocks.iter().take(results);
        messages.extend(results.map(|block| {
            json!({"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]})
        }));
        if !text.is_empty() {
            messages.push(json!({"role": "user", "content": text}));
        }
        expected = "assistant";
    }
    Ok(messages)
}

/// Returns the offered tools.
pub(super) fn tools(body: &Value) -> Vec<Value> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    if !is_response(body) && !is_message(body) {
        return tools;
    }
    let nested = |mut tool: Value| {
        if let Value::Object(members) = &mut tool {
            for name in ["type", "strict", "cache_control"] {
                members.shift_remove(name);
            }
            if let Some(schema) = members.shift_remove("input_schema") {
                members.insert(String::from("parameters"), schema);
            }
        }
        json!({"type": "function", "function": tool})
    };
    tools.into_iter().map(nested).collect()
}

/// Removes the last tool result from a body.
pub(super) fn lose_answer(body: &mut Value) {
    let of_message = is_message(body);
    for list in ["messages", "input"] {
        let Some(mut list) = body.get_mut(list).and_then(Value::as_array_mut) else { continue };
        if of_message {
            let has_result = |message: &&mut Value| message.to_string().contains("\"tool_result\"");
            let content = list.iter_mut().rfind(has_result).and_then(|last| last["content"].as_array_mut());
            let Some(content) = content else { continue };
            list = content;
        }
        let is_answer = |item: &Value| {
            item["role"] == "tool"
                || matches!(item["type"].as_str(), Some("function_call_output" | "tool_result"))
        };
        if let Some(last) = list.iter().rposition(is_answer) {
            list.remove(last);
        }
    }
}
