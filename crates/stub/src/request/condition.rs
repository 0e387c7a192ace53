//! Conditions on requests: `:when` selects the answer, `expect` reports mismatches.

use serde_json::Value;

use super::conversation::{is_system, last_message, messages, reply_count, tools as tools_of};
use super::received::Received;

/// A condition on a request. All of its members must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// The role of the last message other than a system message.
    pub last_role: Option<String>,
    /// A substring of that message's text.
    pub contains: Option<String>,
    /// A substring of a system message's text.
    pub system: Option<String>,
    /// The names of tools that the request must offer.
    pub tools: Option<Vec<String>>,
    /// The names of headers, in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The number of replies in the conversation, including the requested one.
    pub turn: Option<u64>,
    /// The model's name.
    pub model: Option<String>,
    /// Whether the request asks for a stream.
    pub stream: Option<bool>,
    /// Members of the body. Objects may have additional members, lists must be equal.
    pub body: Option<Value>,
}

impl Condition {
    /// Returns the mismatches, each as `expected …, found …`.
    pub fn mismatches(&self, request: &Received) -> Vec<String> {
        let Self { last_role, contains, system, tools, headers, turn, model, stream, body } = self;
        let mut found = Vec::new();
        let mut differ = |what: &str, expected: &str, actual: Option<&str>| {
            if actual != Some(expected) {
                let actual = actual.map_or_else(|| String::from("none"), shown);
                found.push(format!("expected {what} {}, found {actual}", shown(expected)));
            }
        };
        let last = last_message(request);
        if let Some(role) = last_role {
            differ("the last message to have the role", role, last.map(|message| message.role));
        }
        if let Some(model) = model {
            differ("the model", model, request.body.get("model").and_then(Value::as_str));
        }
        for (name, value) in headers {
            differ(&format!("the header {name}:"), value, request.header(name));
        }
        if let Some(turn) = turn {
            let actual = 1 + reply_count(request);
            differ("turn", &turn.to_string(), Some(&actual.to_string()));
        }
        if let Some(stream) = stream {
            let actual = request.body.get("stream").and_then(Value::as_bool).unwrap_or(false);
            differ("stream to be", &stream.to_string(), Some(&actual.to_string()));
        }
        if let Some(part) = contains {
            let text = last.map(|message| message.text()).unwrap_or_default();
            if !text.contains(part.as_str()) {
                found.push(format!("expected {} in the last message, found {}", shown(part), shown(&text)));
            }
        }
        if let Some(part) = system
            && !messages(request)
                .any(|message| is_system(message.role) && message.text().contains(part.as_str()))
        {
            found.push(format!("expected {} in a system message", shown(part)));
        }
        let offered: Vec<&str> = tools_of(request).filter_map(|tool| tool.get("name")?.as_str()).collect();
        for tool in tools.iter().flatten().filter(|tool| !offered.contains(&tool.as_str())) {
            let names = if offered.is_empty() { String::from("none") } else { offered.join(", ") };
            found.push(format!("expected the tool `{tool}` to be offered, found {names}"));
        }
        if let Some(body) = body {
            differences("", body, Some(&request.body), &mut found);
        }
        found
    }
}

/// Adds the differences between `expected` and `found` to `messages`. Recursion is safe: `expected` comes from a
/// scenario with limited depth.
fn differences(path: &str, expected: &Value, found: Option<&Value>, messages: &mut Vec<String>) {
    if let (Value::Object(members), Some(Value::Object(others))) = (expected, found) {
        for (key, value) in members {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            differences(&path, value, others.get(key), messages);
        }
        return;
    }
    if let (Value::Array(items), Some(Value::Array(others))) = (expected, found)
        && items.len() == others.len()
    {
        for (index, (item, other)) in items.iter().zip(others).enumerate() {
            differences(&format!("{path}[{index}]"), item, Some(other), messages);
        }
        return;
    }
    let is_same = match (expected, found) {
        (Value::Number(one), Some(Value::Number(other))) => one == other || one.as_f64() == other.as_f64(),
        (_, found) => found == Some(expected),
    };
    if !is_same {
        let actual = found.map_or_else(|| String::from("nothing"), |found| shown(&found.to_string()));
        messages.push(format!("expected {path} to be {}, found {actual}", shown(&expected.to_string())));
    }
}

/// Returns the start of a text, quoted for a message.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(200).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("`{start}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Received {
        let body = json!({
            "model": "m", "stream": true, "temperature": 0.0, "stop": ["a", "b"],
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": [{"type": "text", "text": "Hello there"}]},
                {"role": "assistant", "content": null, "tool_calls": []},
                {"role": "tool", "content": "{\"degrees\":21}"},
            ],
            "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        });
        let headers = vec![(String::from("x-a"), String::from("b"))];
        let line = String::from("POST /v1/chat/completions");
        Received { line, headers, body, raw: Vec::new(), at: std::time::Instant::now() }
    }

    #[test]
    fn only_mismatches_are_reported() {
        let some = |text: &str| Some(String::from(text));
        let none = Condition::default;
        let cases: Vec<(Condition, Condition, &str)> = vec![
            (
                Condition { last_role: some("tool"), ..none() },
                Condition { last_role: some("user"), ..none() },
                "expected the last message to have the role `user`, found `tool`",
            ),
            (
                Condition { contains: some("21"), ..none() },
                Condition { contains: some("22"), ..none() },
                "expected `22` in the last message, found `{\"degrees\":21}`",
            ),
            (
                Condition { system: some("short"), ..none() },
                Condition { system: some("long"), ..none() },
                "expected `long` in a system message",
            ),
            (
                Condition { tools: Some(vec![String::from("look")]), ..none() },
                Condition { tools: Some(vec![String::from("lok")]), ..none() },
                "expected the tool `lok` to be offered, found look",
            ),
            (
                Condition { headers: vec![(String::from("x-a"), String::from("b"))], ..none() },
                Condition { headers: vec![(String::from("x-b"), String::from("b"))], ..none() },
                "expected the header x-b: `b`, found none",
            ),
            (
                Condition { turn: Some(2), ..none() },
                Condition { turn: Some(1), ..none() },
                "expected turn `1`, found `2`",
            ),
            (
                Condition { model: some("m"), stream: Some(true), ..none() },
                Condition { stream: Some(false), ..none() },
                "expected stream to be `false`, found `true`",
            ),
            (
                Condition { body: Some(json!({"temperature": 0, "stop": ["a", "b"]})), ..none() },
                Condition { body: Some(json!({"tools": [{"function": {"name": "x"}}]})), ..none() },
                "expected tools[0].function.name to be `\"x\"`, found `\"look\"`",
            ),
            (
                none(),
                Condition { body: Some(json!({"seed": 1})), ..none() },
                "expected seed to be `1`, found nothing",
            ),
        ];
        for (holds, differs, message) in cases {
            assert_eq!(holds.mismatches(&request()), Vec::<String>::new());
            assert_eq!(differs.mismatches(&request()), [message]);
        }
    }
}
