//! The conversation in a request of any API: the messages of chat completions or of the Messages API, or the items of
//! responses.

use deftool_chat::Api;
use serde_json::Value;

use super::received::Received;

/// A message, or an item that corresponds to one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'r> {
    /// `system`, `developer`, `user`, `assistant` or `tool`. A call has the role `assistant`, its result `tool`.
    /// A message of the Messages API with results has the role `tool`.
    pub(crate) role: &'r str,
    content: Option<&'r Value>,
}

impl Message<'_> {
    pub(crate) fn text(&self) -> String {
        text_of(self.content)
    }
}

impl Received {
    /// Returns the texts of the messages with this role, for any API.
    pub fn contents(&self, role: &str) -> Vec<String> {
        messages(self).filter(|message| message.role == role).map(|message| message.text()).collect()
    }
}

/// Returns the API that a path belongs to.
pub(crate) fn api_of(path: &str) -> Option<Api> {
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Some(Api::ChatCompletions)
    } else if path.ends_with("/responses") {
        Some(Api::Responses)
    } else if path.ends_with("/messages") {
        Some(Api::Messages)
    } else {
        None
    }
}

/// Returns the messages of a request, in order.
pub(crate) fn messages(request: &Received) -> impl DoubleEndedIterator<Item = Message<'_>> {
    let body = &request.body;
    let (instructions, conversation) = match api_of(request.path()).unwrap_or_default() {
        Api::ChatCompletions => (None, body.get("messages")),
        Api::Responses => (body.get("instructions"), body.get("input")),
        Api::Messages => (body.get("system"), body.get("messages")),
    };
    let system = instructions.filter(|text| text.is_string() || text.is_array());
    let system = system.map(|text| Message { role: "system", content: Some(text) });
    let input = conversation.filter(|input| input.is_string());
    let input = input.map(|text| Message { role: "user", content: Some(text) });
    let items = conversation.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    system.into_iter().chain(input).chain(items.iter().filter_map(read_item))
}

/// Returns the last message that is not a system message. Some clients repeat instructions in a final system message,
/// to keep the prefix of the conversation unchanged.
pub(crate) fn last_message(request: &Received) -> Option<Message<'_>> {
    messages(request).rfind(|message| !is_system(message.role))
}

/// Whether `role` is the system role. Reasoning models use `developer`.
pub(crate) fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// Reads a message, or an item of another type.
fn read_item(item: &Value) -> Option<Message<'_>> {
    if let Some(role) = item.get("role").and_then(Value::as_str) {
        let content = item.get("content");
        let is_result = |part: &Value| part.get("type").is_some_and(|kind| kind == "tool_result");
        let has_result = content.and_then(Value::as_array).is_some_and(|parts| parts.iter().any(is_result));
        return Some(Message { role: if has_result { "tool" } else { role }, content });
    }
    match item.get("type").and_then(Value::as_str)? {
        kind if kind.ends_with("_output") => Some(Message { role: "tool", content: item.get("output") }),
        kind if kind.ends_with("_call") || kind == "reasoning" => {
            Some(Message { role: "assistant", content: None })
        }
        _ => None,
    }
}

/// Counts the replies in a conversation. In the Responses API a reply consists of several items: text, calls,
/// reasoning. The Messages API merges messages with the same role.
pub(crate) fn reply_count(request: &Received) -> usize {
    let is_merged = api_of(request.path()) != Some(Api::ChatCompletions);
    let mut count = 0;
    let mut before = "";
    for Message { role, .. } in messages(request) {
        if role == "assistant" && !(is_merged && before == "assistant") {
            count += 1;
        }
        before = role;
    }
    count
}

/// Returns the tools that a request offers: the value of `function`, or the tool itself.
pub(crate) fn tools(request: &Received) -> impl Iterator<Item = &Value> {
    let tools = request.body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    tools.iter().map(|tool| tool.get("function").unwrap_or(tool))
}

/// Whether a request of the Messages API requires that each reply starts with a thought.
pub(crate) fn enables_thinking(body: &Value) -> bool {
    body.pointer("/thinking/type").is_some_and(|kind| kind == "enabled")
}

/// Returns the schema of a tool's arguments.
pub(crate) fn parameters(tool: &Value) -> Option<&Value> {
    tool.get("parameters").or_else(|| tool.get("input_schema"))
}

/// Returns the text of a message's content, which is a string or a list of parts. A part with a result has a content of
/// its own.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => text_of(part.get("content")),
            };
            parts.iter().map(text).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(path: &str, body: Value) -> Received {
        let line = format!("POST /v1/{path}");
        Received { line, headers: Vec::new(), body, raw: Vec::new(), at: std::time::Instant::now() }
    }

    fn read(request: &Received) -> (Vec<String>, usize, Vec<&str>) {
        let texts =
            messages(request).map(|message| format!("{}: {}", message.role, message.text())).collect();
        (texts, reply_count(request), tools(request).filter_map(|tool| tool["name"].as_str()).collect())
    }

    #[test]
    fn the_same_conversation_is_read_from_all_apis() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
        let over_chat = request(
            "chat/completions",
            json!({
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "Look"}]},
                    {"role": "assistant", "content": "Looking.", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "[1]"},
                    {"role": "assistant", "content": "Calm."},
                    {"role": "user", "content": "again"},
                ],
                "tools": [{"type": "function", "function": {"name": "look"}}],
            }),
        );
        let over_responses = request(
            "responses",
            json!({
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
                    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "[1]"},
                    {"type": "message", "role": "assistant", "content": "Calm."},
                    {"type": "item_reference", "id": "x"},
                    {"role": "user", "content": "again"},
                ],
                "tools": [{"type": "function", "name": "look"}, {"type": "web_search"}],
            }),
        );
        let over_messages = request(
            "messages",
            json!({
                "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "messages": [
                    {"role": "user", "content": "Look"},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Looking."},
                        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "[1]"}]},
                    ]},
                    {"role": "assistant", "content": "Calm."},
                    {"role": "user", "content": "again"},
                ],
                "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            }),
        );
        assert_eq!(read(&over_messages), read(&over_chat));
        let (mut texts, replies, tools) = read(&over_responses);
        texts.retain(|text| text != "assistant: ");
        assert_eq!((texts, replies, tools), read(&over_chat));
        assert_eq!(read(&over_chat).1, 2);
        let short = request("responses", json!({"input": "hello"}));
        assert_eq!(read(&short).0, ["user: hello"]);
        for odd in
            [json!({"input": 5}), json!({"input": [null, {"type": 1}, {"role": 1}]}), json!([]), Value::Null]
        {
            assert_eq!(read(&request("responses", odd)).0, Vec::<String>::new());
        }
    }
}
