//! What is sent: whether every server would take the conversation, the tools of the turn, the tries of one body.

use std::collections::BTreeSet;

use deftool::request::{RunConfig, SystemMessages};
use deftool::spec::BiosBudget;
use serde_json::Value;

use super::laws::{Broken, Law};
use super::ledger::{Case, Exchange};
use super::script::Head;
use super::tools::{EXIT, Generation};

/// Holds a body's messages against what servers take.
pub(super) fn check_body(body: &Value, config: &RunConfig, case: &Case) -> Result<(), Broken> {
    let broken =
        |how: String| Err(Broken { law: Law::History, how: format!("{}: {how} in {body}", case.id) });
    let Some(mut messages) = body["messages"].as_array().map(Vec::as_slice) else {
        return broken(String::from("no messages"));
    };
    let separate = config.system_messages == SystemMessages::Separate;
    let is_system = |message: &Value| message["role"] == "system";
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let expected = if separate && config.system.is_some() { 2 } else { 1 };
    if leading != expected {
        return broken(format!("{leading} system messages first"));
    }
    messages = &messages[leading..];
    if separate && config.bios_budget == BiosBudget::Tail {
        let Some((last, rest)) = messages.split_last().filter(|(last, _)| is_system(last)) else {
            return broken(String::from("no system message last"));
        };
        if last["content"].as_str().is_none_or(str::is_empty) {
            return broken(String::from("an empty system message"));
        }
        messages = rest;
    }
    let mut open: Vec<&str> = Vec::new();
    let mut ids = BTreeSet::new();
    for message in messages {
        match message["role"].as_str() {
            Some("assistant") if open.is_empty() => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let id = call["id"].as_str().unwrap_or_default();
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    let good = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
                    if !good || !ids.insert(id) {
                        return broken(format!("the id `{id}`"));
                    }
                    if EXIT.contains(&name) || name.is_empty() || name == "nothing" {
                        return broken(format!("a call of `{name}`"));
                    }
                    if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                        return broken(format!("arguments `{arguments}`"));
                    }
                    open.push(id);
                }
                if open.len() > 1 && !config.parallel_tool_calls_supported {
                    return broken(String::from("several calls in one message"));
                }
                if message["content"].as_str().is_none_or(str::is_empty) && open.is_empty() {
                    return broken(String::from("an assistant message of nothing"));
                }
            }
            Some("tool") if !open.is_empty() && message["tool_call_id"] == open[0] => {
                open.remove(0);
                let content = message["content"].as_str().unwrap_or_default();
                let Ok(content) = serde_json::from_str::<Value>(content) else {
                    return broken(format!("the result `{content}`"));
                };
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let is_own = match case.executed.get(id) {
                    Some(Some(result)) => *result == content,
                    // It failed, or no tool ran at all: what is said is why, or what was said in the past.
                    Some(None) => content.get("error").is_some(),
                    None => content.is_string() || content.get("error").or(content.get("refused")).is_some(),
                };
                if !is_own {
                    return broken(format!("{content} for {id}"));
                }
            }
            Some("user") if open.is_empty() => {}
            role => return broken(format!("{role:?} with {open:?} to answer")),
        }
    }
    if !open.is_empty() {
        return broken(format!("{open:?} unanswered"));
    }
    if messages.last().is_none_or(|last| last["role"] == "assistant") {
        return broken(String::from("nothing to answer"));
    }
    // What was executed stands in it.
    match case.executed.keys().find(|id| !ids.contains(id.as_str())) {
        Some(lost) => broken(format!("the call {lost} is lost")),
        None => Ok(()),
    }
}

/// Takes the last result out of a body.
pub(super) fn lose_answer(body: &mut Value) {
    if let Some(messages) = body["messages"].as_array_mut()
        && let Some(last) = messages.iter().rposition(|message| message["role"] == "tool")
    {
        messages.remove(last);
    }
}

/// A turn offers what there is; the last one without budget only what costs none.
pub(super) fn check_tools(body: &Value, current: &Generation, is_last: bool) -> Result<(), Broken> {
    let sent = body["tools"].as_array().cloned().unwrap_or_default();
    if sent == current.set.definitions(|tool| !is_last || current.is_exit(&tool.name)) {
        return Ok(());
    }
    let names: Vec<String> = sent.iter().map(|tool| tool["function"]["name"].to_string()).collect();
    let how = format!("{names:?} were sent in generation {}", current.number);
    Err(Broken { law: Law::Pinned, how })
}

/// A try is one more than the last, comes before any byte of an answer, and sends the same.
pub(super) fn check_retry(
    before: &[Exchange],
    attempt: u32,
    body: &Value,
    streams: bool,
) -> Result<(), Broken> {
    let expected = before.last().map_or(1, |last| last.attempt + 1);
    let came = before.iter().any(|exchange| exchange.script.head == Head::Ok && exchange.any_byte);
    let same = before.last().is_none_or(|last| core(&last.body) == core(body));
    if attempt == expected && same && (!streams || !came) {
        return Ok(());
    }
    let how = format!("attempt {attempt} of {expected}, after bytes: {came}, the same: {same}");
    Err(Broken { law: Law::Retry, how })
}

/// A body without the members that depend on what the server takes.
fn core(body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        for name in ["stream", "stream_options", "max_tokens", "max_completion_tokens"] {
            members.shift_remove(name);
        }
    }
    body
}
