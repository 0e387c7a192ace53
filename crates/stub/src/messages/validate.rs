//! Validation of a request as in the real API. The first violation is the message of a 400.
//!
//! Clients recognise some refusals by their wording, so it is that of the real API where it is known: opencode#3077,
//! claude-code#8210, #13460, #63284, forgecode#2107.

use serde_json::Value;

use super::block::{is_own, signature};
use crate::request::{Received, enables_thinking};

/// A check of a body. It returns the message of the refusal.
type Check = fn(&Value) -> Option<String>;

/// The checks, in order. Later checks depend on the structure that earlier ones require.
const CHECKS: [Check; 9] = [
    check_members,
    check_roles,
    check_blocks,
    check_first_and_last,
    check_pairs,
    check_thinking,
    check_thoughts,
    check_tools,
    check_cache_control,
];

const REQUIRED: [&str; 3] = ["model", "max_tokens", "messages"];
const OPTIONAL: [&str; 22] = [
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];
/// The members that the API of 2026-10 does not accept any more.
const REMOVED: [&str; 3] = ["temperature", "top_k", "top_p"];
const MAX_CACHE_CONTROLS: usize = 4;

/// Returns the message with which the API refuses an invalid request.
pub(crate) fn refusal(request: &Received) -> Option<String> {
    let Some(version) = request.header("anthropic-version") else {
        return Some(String::from("anthropic-version: header is required"));
    };
    let removed =
        REMOVED.iter().find(|member| version >= "2026-10-21" && request.body.get(**member).is_some());
    if let Some(member) = removed {
        return Some(format!("{member}: Extra inputs are not permitted"));
    }
    CHECKS.iter().find_map(|check| check(&request.body))
}

fn check_members(body: &Value) -> Option<String> {
    let members = body.as_object()?;
    if let Some(missing) = REQUIRED.iter().find(|member| !members.contains_key(**member)) {
        return Some(format!("{missing}: Field required"));
    }
    if let Some(unknown) = members
        .keys()
        .find(|member| !REQUIRED.contains(&member.as_str()) && !OPTIONAL.contains(&member.as_str()))
    {
        return Some(format!("{unknown}: Extra inputs are not permitted"));
    }
    if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|count| count == 0) {
        return Some(String::from("max_tokens: Input should be greater than or equal to 1"));
    }
    let is_empty = messages(body).is_empty();
    is_empty.then(|| String::from("messages: at least one message is required"))
}

fn check_roles(body: &Value) -> Option<String> {
    let is_valid = |message: &Value| matches!(role(message), "user" | "assistant" | "system");
    let at = messages(body).iter().position(|message| !is_valid(message))?;
    Some(format!("messages.{at}.role: Input should be 'user', 'assistant' or 'system'"))
}

fn check_blocks(body: &Value) -> Option<String> {
    if body.get("system").is_some_and(|system| blocks(system).iter().any(is_blank)) {
        return Some(String::from("system: text content blocks must be non-empty"));
    }
    let mut ids: Vec<&str> = Vec::new();
    for (at, message) in messages(body).iter().enumerate() {
        let content = message.get("content").unwrap_or(&Value::Null);
        if *content == "" || (!content.is_string() && blocks(content).is_empty()) {
            return Some(format!("messages.{at}: all messages must have non-empty content"));
        }
        for (number, block) in blocks(content).iter().enumerate() {
            let place = format!("messages.{at}.content.{number}");
            let own = match kind(block) {
                "text" => {
                    is_blank(block).then(|| String::from("messages: text content blocks must be non-empty"))
                }
                "tool_use" => check_tool_use(&place, block, &mut ids),
                "tool_result" => check_result(&place, block),
                "thinking" => missing(&format!("{place}.thinking"), block, &["thinking", "signature"]),
                "redacted_thinking" => missing(&format!("{place}.redacted_thinking"), block, &["data"]),
                "image" => missing(&format!("{place}.image"), block, &["source"]),
                "" => Some(format!("{place}.type: Field required")),
                _ => None,
            };
            if own.is_some() {
                return own;
            }
        }
    }
    None
}

fn check_tool_use<'b>(place: &str, block: &'b Value, ids: &mut Vec<&'b str>) -> Option<String> {
    let absent = missing(&format!("{place}.tool_use"), block, &["id", "name", "input"]);
    if absent.is_some() {
        return absent;
    }
    let id = text(block, "id");
    if !is_word(id) {
        return Some(format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    if !block.get("input").is_some_and(Value::is_object) {
        return Some(format!("{place}.tool_use.input: Input should be a valid dictionary"));
    }
    if ids.contains(&id) {
        return Some(format!("{place}: `tool_use` ids must be unique"));
    }
    ids.push(id);
    None
}

fn check_result(place: &str, block: &Value) -> Option<String> {
    let content = block.get("content").unwrap_or(&Value::Null);
    let allowed = ["text", "image", "document", "search_result", "tool_reference", "browser_state"];
    let is_valid = content.is_null()
        || content.is_string()
        || (content.is_array() && blocks(content).iter().all(|block| allowed.contains(&kind(block))));
    if !is_valid {
        return Some(format!(
            "{place}.tool_result.content: Input should be a valid string or list of blocks"
        ));
    }
    if blocks(content).iter().any(is_blank) {
        return Some(String::from("messages: text content blocks must be non-empty"));
    }
    missing(&format!("{place}.tool_result"), block, &["tool_use_id"])
}

fn check_first_and_last(body: &Value) -> Option<String> {
    let messages = messages(body);
    if messages.iter().find(|message| role(message) != "system").is_some_and(|first| role(first) != "user") {
        return Some(String::from("messages: first message must use the \"user\" role"));
    }
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| role(message) == "assistant") {
        let last = blocks(content(message)).last().map_or("", kind);
        if matches!(last, "thinking" | "redacted_thinking") {
            let place = format!("messages.{at}.content");
            return Some(format!("{place}: The final block in an assistant message cannot be `{last}`."));
        }
    }
    let last = messages.last().filter(|message| role(message) == "assistant").map(content)?;
    let text = last.as_str().or_else(|| blocks(last).last()?.get("text")?.as_str())?;
    let is_trailing = text.ends_with(char::is_whitespace);
    is_trailing.then(|| String::from("messages: final assistant content cannot end with trailing whitespace"))
}

/// Checks that the results of all calls of a message are at the start of the next one, and that no other results exist.
fn check_pairs(body: &Value) -> Option<String> {
    // The API merges neighbours of equal role.
    let mut turns: Vec<(usize, &str, Vec<&Value>)> = Vec::new();
    for (at, message) in messages(body).iter().enumerate().filter(|(_, message)| role(message) != "system") {
        let own = blocks(content(message)).iter();
        match turns.last_mut() {
            Some((_, last, blocks)) if *last == role(message) => blocks.extend(own),
            _ => turns.push((at, role(message), own.collect())),
        }
    }
    let mut calls: Vec<&str> = Vec::new();
    let mut caller = 0;
    for (at, role, blocks) in turns.iter().map(|(at, role, blocks)| (*at, *role, blocks)) {
        let results = || blocks.iter().take_while(|block| kind(block) == "tool_result");
        let open = |id: &&str| role != "user" || !results().any(|block| text(block, "tool_use_id") == *id);
        if let Some(lost) = calls.iter().find(|id| open(id)) {
            return Some(format!(
                "messages.{caller}: `tool_use` ids were found without `tool_result` blocks immediately after: {lost}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message."
            ));
        }
        let is_foreign = |block: &&&Value| {
            kind(block) == "tool_result" && (role != "user" || !calls.contains(&text(block, "tool_use_id")))
        };
        if let Some(foreign) = blocks.iter().find(is_foreign) {
            return Some(format!(
                "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must \
                 have a corresponding `tool_use` block in the previous message.",
                text(foreign, "tool_use_id")
            ));
        }
        caller = at;
        calls =
            blocks.iter().filter(|block| kind(block) == "tool_use").map(|block| text(block, "id")).collect();
    }
    let lost = calls.first()?;
    Some(format!(
        "messages.{caller}: `tool_use` ids were found without `tool_result` blocks immediately after: {lost}"
    ))
}

fn check_thinking(body: &Value) -> Option<String> {
    if !enables_thinking(body) {
        return None;
    }
    if matches!(body.pointer("/tool_choice/type").and_then(Value::as_str), Some("any" | "tool")) {
        return Some(String::from("Thinking may not be enabled when tool_choice forces tool use."));
    }
    let budget = body.pointer("/thinking/budget_tokens").and_then(Value::as_u64).unwrap_or_default();
    if budget < 1024 {
        let place = "thinking.enabled.budget_tokens";
        return Some(format!("{place}: Input should be greater than or equal to 1024"));
    }
    if body.get("max_tokens").and_then(Value::as_u64).is_some_and(|limit| limit <= budget) {
        return Some(String::from("`max_tokens` must be greater than `thinking.budget_tokens`."));
    }
    // The reply whose calls were answered last.
    let messages = messages(body);
    let is_result =
        |message: &Value| blocks(content(message)).iter().any(|block| kind(block) == "tool_result");
    messages.last().filter(|message| is_result(message))?;
    let before = messages.iter().rposition(|message| role(message) == "user" && !is_result(message));
    let start = before.map_or(0, |at| at + 1);
    let replies = messages.iter().enumerate().skip(start).filter(|(_, message)| role(message) == "assistant");
    let (at, reply) = replies.into_iter().next()?;
    let first = blocks(content(reply)).first().map_or("text", kind);
    (!matches!(first, "thinking" | "redacted_thinking")).then(|| {
        format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is \
             enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of \
             `tool_use` and `tool_result` blocks)."
        )
    })
}

fn check_thoughts(body: &Value) -> Option<String> {
    for (at, message) in messages(body).iter().enumerate() {
        for (number, block) in blocks(content(message)).iter().enumerate() {
            let sent = text(block, "signature");
            if kind(block) != "thinking" || sent == signature(text(block, "thinking")) {
                continue;
            }
            let place = format!("messages.{at}.content.{number}");
            return Some(if is_own(sent) {
                format!(
                    "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. \
                     These blocks must remain as they were in the original response."
                )
            } else {
                format!("{place}: Invalid `signature` in `thinking` block")
            });
        }
    }
    None
}

fn check_tools(body: &Value) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for (at, tool) in list(body, "tools").iter().enumerate() {
        // Tools with a type are those of the server.
        if !matches!(kind(tool), "" | "custom") {
            if kind(tool) == "function" {
                let tags = "expected tags: 'custom', 'bash_20250124', …";
                return Some(format!(
                    "tools.{at}: Input tag 'function' found using 'type' does not match any of the {tags}"
                ));
            }
            continue;
        }
        let place = format!("tools.{at}.custom");
        let absent = missing(&place, tool, &["name", "input_schema"]);
        if absent.is_some() {
            return absent;
        }
        let name = text(tool, "name");
        if !is_word(name) || name.len() > 128 {
            return Some(format!("{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
        }
        if tool.pointer("/input_schema/type").is_none_or(|kind| kind != "object") {
            return Some(format!("{place}.input_schema.type: Input should be 'object'"));
        }
        if names.contains(&name) {
            return Some(String::from("tools: Tool names must be unique."));
        }
        names.push(name);
    }
    None
}

fn check_cache_control(body: &Value) -> Option<String> {
    let of_messages = messages(body).iter().flat_map(|message| blocks(content(message)));
    let of_system = body.get("system").map_or(&[][..], blocks).iter();
    let all = list(body, "tools").iter().chain(of_system).chain(of_messages);
    let count =
        all.filter(|block| block.get("cache_control").is_some_and(|control| !control.is_null())).count();
    (count > MAX_CACHE_CONTROLS).then(|| {
        format!("A maximum of {MAX_CACHE_CONTROLS} blocks with cache_control may be provided. Found {count}.")
    })
}

/// Returns a message if a member of an object is absent.
fn missing(place: &str, object: &Value, members: &[&str]) -> Option<String> {
    let absent = members.iter().find(|member| object.get(**member).is_none_or(Value::is_null))?;
    Some(format!("{place}.{absent}: Field required"))
}

fn messages(body: &Value) -> &[Value] {
    list(body, "messages")
}

fn list<'b>(body: &'b Value, member: &str) -> &'b [Value] {
    body.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn content(message: &Value) -> &Value {
    message.get("content").unwrap_or(&Value::Null)
}

/// Returns the blocks of a content. A string has none.
fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

fn role(message: &Value) -> &str {
    text(message, "role")
}

fn kind(block: &Value) -> &str {
    text(block, "type")
}

fn text<'b>(object: &'b Value, member: &str) -> &'b str {
    object.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a block is a text without a visible character.
fn is_blank(block: &Value) -> bool {
    kind(block) == "text" && text(block, "text").trim().is_empty()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
