//! What a request says, whichever API it came over: the messages of chat completions, or the items of responses.

use serde_json::Value;

use super::http::Received;
use crate::chat::Api;

/// One thing that was said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'r> {
    /// `system`, `developer`, `user`, `assistant` or `tool`; a call is the assistant's, its result the tool's.
    pub(super) role: &'r str,
    content: Option<&'r Value>,
}

impl Said<'_> {
    pub(super) fn text(&self) -> String {
        text_of(self.content)
    }
}

/// The API that a path belongs to.
pub(super) fn api_of(path: &str) -> Option<Api> {
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Some(Api::ChatCompletions)
    } else if path.ends_with("/responses") {
        Some(Api::Responses)
    } else {
        None
    }
}

/// All that a request says, in order.
pub(super) fn said(request: &Received) -> impl DoubleEndedIterator<Item = Said<'_>> {
    let body = &request.body;
    let (instructions, conversation) = match api_of(request.path()).unwrap_or_default() {
        Api::ChatCompletions => (None, body.get("messages")),
        Api::Responses => (body.get("instructions"), body.get("input")),
    };
    let system = instructions.filter(|text| text.is_string());
    let system = system.map(|text| Said { role: "system", content: Some(text) });
    let input = conversation.filter(|input| input.is_string());
    let input = input.map(|text| Said { role: "user", content: Some(text) });
    let items = conversation.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    system.into_iter().chain(input).chain(items.iter().filter_map(read_item))
}

/// The last message other than a system message: those say nothing new, and clients send them last to keep the rest the same.
pub(super) fn last_said(request: &Received) -> Option<Said<'_>> {
    said(request).rfind(|said| !is_system(said.role))
}

/// Models that reason have a developer in place of a system.
pub(super) fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// A message, or an item of another type.
fn read_item(item: &Value) -> Option<Said<'_>> {
    if let Some(role) = item.get("role").and_then(Value::as_str) {
        return Some(Said { role, content: item.get("content") });
    }
    match item.get("type").and_then(Value::as_str)? {
        kind if kind.ends_with("_output") => Some(Said { role: "tool", content: item.get("output") }),
        kind if kind.ends_with("_call") || kind == "reasoning" => {
            Some(Said { role: "assistant", content: None })
        }
        _ => None,
    }
}

/// How many replies a conversation holds. One reply is several items: text, calls, reasoning.
pub(super) fn replies(request: &Received) -> usize {
    let is_responses = api_of(request.path()) == Some(Api::Responses);
    let mut count = 0;
    let mut before = "";
    for Said { role, .. } in said(request) {
        if role == "assistant" && !(is_responses && before == "assistant") {
            count += 1;
        }
        before = role;
    }
    count
}

/// The tools that a request offers: what stands in `function`, or the tool itself.
pub(super) fn tools(request: &Received) -> impl Iterator<Item = &Value> {
    let tools = request.body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    tools.iter().map(|tool| tool.get("function").unwrap_or(tool))
}

/// The text of a message's content: a string, or parts.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().concat()
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

    fn told(request: &Received) -> (Vec<String>, usize, Vec<&str>) {
        let said = said(request).map(|said| format!("{}: {}", said.role, said.text())).collect();
        (said, replies(request), tools(request).filter_map(|tool| tool["name"].as_str()).collect())
    }

    /// The same conversation over both APIs is the same to a scenario.
    #[test]
    fn both_apis_say_the_same() {
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
        let (mut said, replies, tools) = told(&over_responses);
        said.retain(|said| said != "assistant: ");
        assert_eq!((said, replies, tools), told(&over_chat));
        assert_eq!(told(&over_chat).1, 2);
        let short = request("responses", json!({"input": "hello"}));
        assert_eq!(told(&short).0, ["user: hello"]);
        for odd in
            [json!({"input": 5}), json!({"input": [null, {"type": 1}, {"role": 1}]}), json!([]), Value::Null]
        {
            assert_eq!(told(&request("responses", odd)).0, Vec::<String>::new());
        }
    }
}
