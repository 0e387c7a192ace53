//! Checks of request bodies: a conversation that every server accepts, the tools of the turn, and retries.

use std::collections::{BTreeSet, VecDeque};

use deftool_chat::request::{Fallback, OnFailure, Outcome, RunConfig, SystemMessages};
use deftool_chat::{BodyFallback, Feature, Message};
use deftool_lang::spec::BiosBudget;
use deftool_test_support::server::without_budget;
use deftool_test_support::validity;
use deftool_worker::WorkerConfig;
use serde_json::Value;

use super::invariants::{Invariant, Violation};
use super::ledger::{Case, Exchange};
use super::refusals::{self, BodyFallbacks, Layout, layout, lost, still_refused, untouched};
use super::script::{Head, ReplyEnd, Script};
use super::submission::{IN_BETWEEN, RequestOptions};
use super::tools::{EXIT, Generation};
use super::wire;

/// Checks the conversation in a body.
pub(super) fn check_body(
    body: &Value,
    config: &RunConfig,
    case: &Case,
    options: &RequestOptions,
) -> Result<(), Violation> {
    let how = |how: String| format!("{}: {how} in {body}", case.id);
    let invalid = |problem: String| Violation { invariant: Invariant::Conversation, how: how(problem) };
    if let Some(member) = still_refused(body, &case.body_fallbacks, config) {
        return Err(Violation { invariant: Invariant::Retry, how: how(format!("{member} again")) });
    }
    if let Some(missing) = options.missing(body, &config.model) {
        return Err(invalid(format!("no {missing}")));
    }
    let messages = wire::messages(body).map_err(invalid)?;
    let layout = layout(&case.body_fallbacks, config.fallback == Fallback::On);
    if !layout.plain
        && let Some(problem) = validity::first_problem(&messages)
    {
        return Err(invalid(problem));
    }
    let mut messages = messages;
    if config.bios_budget == BiosBudget::Result {
        take_budget(&mut messages).map_err(invalid)?;
    }
    let content = without_system(&messages, layout, config, options).map_err(invalid)?;
    if layout.plain {
        return check_plain(content, case);
    }
    let (ids, reported) = (BTreeSet::new(), BTreeSet::new());
    Conversation { case, config, layout, open: VecDeque::new(), ids, reported }
        .check(content)
        .map_err(invalid)
}

/// Removes the lines with time and budget from the last result or user message, and from those of earlier turns. No
/// other message has them.
fn take_budget(messages: &mut [Value]) -> Result<(), String> {
    let of_input = |message: &Value| matches!(message["role"].as_str(), Some("user" | "tool"));
    let last = messages.iter().rposition(of_input).ok_or("no result and no user message")?;
    for (index, message) in messages.iter_mut().enumerate() {
        let content = message["content"].as_str().unwrap_or_default();
        let has_lines = content.contains("Time at submit: ");
        if (index == last && !has_lines) || (has_lines && !of_input(message)) {
            return Err(format!("the budget in message {index}"));
        }
        if has_lines {
            message["content"] = Value::from(without_budget(content));
        }
    }
    Ok(())
}

/// Checks the positions of the system messages. Returns the other messages.
fn without_system<'m>(
    messages: &'m [Value],
    layout: Layout,
    config: &RunConfig,
    options: &RequestOptions,
) -> Result<&'m [Value], String> {
    let Layout { no_system, one_system, .. } = layout;
    let as_configured = !no_system && !one_system;
    let separate = config.system_messages == SystemMessages::Separate && as_configured;
    let is_system = |message: &Value| message["role"] == "system" && message["content"] != IN_BETWEEN;
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let expected = if separate {
        1 + usize::from(config.system.is_some()) + usize::from(options.system_prompt.is_some())
    } else {
        usize::from(!no_system)
    };
    if leading != expected {
        return Err(format!("{leading} leading system messages"));
    }
    let messages = &messages[leading..];
    if !as_configured || config.bios_budget != BiosBudget::Tail {
        return Ok(messages);
    }
    let Some((last, rest)) = messages.split_last().filter(|(last, _)| is_system(last)) else {
        return Err(String::from("no final system message"));
    };
    if last["content"].as_str().is_none_or(str::is_empty) {
        return Err(String::from("an empty system message"));
    }
    Ok(rest)
}

/// The state of a check of a conversation.
struct Conversation<'c> {
    case: &'c Case,
    config: &'c RunConfig,
    layout: Layout,
    /// The calls without a result so far, in order.
    open: VecDeque<String>,
    ids: BTreeSet<String>,
    /// The calls of unknown tools.
    reported: BTreeSet<String>,
}

impl Conversation<'_> {
    fn check(mut self, messages: &[Value]) -> Result<(), String> {
        let separate = self.config.system_messages == SystemMessages::Separate;
        for message in messages {
            match message["role"].as_str() {
                Some("tool") => self.answer(message)?,
                role if !self.open.is_empty() => {
                    return Err(format!("{role:?} while {:?} have no result", self.open));
                }
                Some("assistant") => self.assistant(message)?,
                Some("system") if separate && message["content"] == IN_BETWEEN => {}
                Some("user") => {}
                role => return Err(format!("a message of {role:?}")),
            }
        }
        if !self.open.is_empty() {
            return Err(format!("{:?} have no result", self.open));
        }
        if messages.last().is_none_or(|last| last["role"] == "assistant") {
            return Err(String::from("the last message is the assistant's"));
        }
        // Every executed call is in the conversation.
        match self.case.executed.keys().find(|id| !self.ids.contains(id.as_str())) {
            Some(lost) => Err(format!("the call {lost} is lost")),
            None => Ok(()),
        }
    }

    fn assistant(&mut self, message: &Value) -> Result<(), String> {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            let name = call["function"]["name"].as_str().unwrap_or_default();
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if id.trim().is_empty() || !self.ids.insert(id.to_owned()) {
                return Err(format!("the id `{id}`"));
            }
            if EXIT.contains(&name) || name.is_empty() || name == "nothing" {
                // The tool was unknown in its turn, which was reported to the model.
                if self.config.on_invalid_arguments == OnFailure::Fail || name.is_empty() {
                    return Err(format!("a call of `{name}`"));
                }
                self.reported.insert(id.to_owned());
            }
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Err(format!("arguments `{arguments}`"));
            }
            self.open.push_back(id.to_owned());
        }
        if self.open.len() > 1 && (self.layout.pairs || !self.config.parallel_tool_calls_supported) {
            return Err(String::from("several calls in one message"));
        }
        if message["content"].as_str().is_none_or(str::is_empty) && self.open.is_empty() {
            return Err(String::from("an empty assistant message"));
        }
        Ok(())
    }

    /// Checks the result of the next call.
    fn answer(&mut self, message: &Value) -> Result<(), String> {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        match self.open.pop_front() {
            Some(next) if next == id => {}
            next => return Err(format!("expected the result of {next:?}, found the result of {id}")),
        }
        let content = message["content"].as_str().unwrap_or_default();
        let Ok(content) = serde_json::from_str::<Value>(content) else {
            return Err(format!("the result `{content}`"));
        };
        // A cancel may come before the report.
        let is_reported = matches!(content["error"]["kind"].as_str(), Some("unknown_tool" | "canceled"));
        if self.reported.contains(id) && !is_reported {
            return Err(format!("the result `{content}` of an unknown tool"));
        }
        let past = self.case.past.get(id).and_then(Option::as_ref);
        let is_own = match self.case.executed.get(id) {
            _ if past == Some(&content) => true,
            Some(Some(result)) => *result == content,
            // The call failed or was not executed: the result is the reason, or comes from the prior conversation.
            Some(None) => content.get("error").is_some(),
            None => content.is_string() || content.get("error").or(content.get("refused")).is_some(),
        };
        if is_own { Ok(()) } else { Err(format!("{content} for {id}")) }
    }
}

/// Checks the conversation after a request. With an additional user message it must be valid in a request.
pub(super) fn check_left(left: &[Message], case: &Case, outcome: &Outcome) -> Result<(), Violation> {
    let violation = |how: String| {
        Err(Violation {
            invariant: Invariant::Conversation,
            how: format!("{} leaves {left:?}: {how}", case.id),
        })
    };
    let messages: Vec<Value> =
        left.iter().map(|message| serde_json::to_value(message).expect("a message")).collect();
    if let Some(problem) = validity::first_problem(&messages) {
        return violation(problem);
    }
    let is_lost = outcome.kind.as_deref() == Some("internal");
    let is_included = |id: &String| {
        let is_its =
            |message: &Message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == id);
        left.iter().any(is_its)
    };
    match case.executed.keys().find(|id| !is_lost && !is_included(id)) {
        Some(lost) => violation(format!("the call {lost} is lost")),
        None => Ok(()),
    }
}

/// Checks a conversation with calls and results as text: the roles alternate, and the results are included.
fn check_plain(messages: &[Value], case: &Case) -> Result<(), Violation> {
    let violation = |how: String| {
        Err(Violation {
            invariant: Invariant::Conversation,
            how: format!("{}: {how} in {messages:?}", case.id),
        })
    };
    if let Some(problem) = validity::first_problem(messages) {
        return violation(problem);
    }
    let is_plain = |message: &Value| {
        message["content"] == IN_BETWEEN
            || matches!(message["role"].as_str(), Some("user" | "assistant"))
                && message.get("tool_calls").is_none()
    };
    if let Some(odd) = messages.iter().find(|message| !is_plain(message)) {
        return violation(format!("{odd} is not a text message"));
    }
    if let Some(pair) =
        messages.windows(2).find(|pair| pair[0]["role"] == pair[1]["role"] && pair[0]["role"] != "system")
    {
        return violation(format!("{} twice", pair[0]["role"]));
    }
    let is_included = |result: &Value| {
        let result = result.to_string();
        messages.iter().any(|message| message["content"].as_str().is_some_and(|text| text.contains(&result)))
    };
    match case.executed.values().flatten().find(|result| !is_included(result)) {
        Some(lost) => violation(format!("the result {lost} is lost")),
        None => Ok(()),
    }
}

/// Checks the tools in a body. The last turn without budget offers exit tools only.
pub(super) fn check_tools(
    body: &Value,
    current: &Generation,
    is_last: bool,
    config: &WorkerConfig,
    body_fallbacks: &BodyFallbacks,
) -> Result<(), Violation> {
    let sent = wire::tools(body);
    let offered = current.set.definitions(|tool| !is_last || current.is_exit(&tool.name));
    // If the server ignores the name in `tool_choice`, the forced tool is sent alone.
    let choice = config.run.params.get("tool_choice").and_then(|choice| choice.pointer("/function/name"));
    let goes_alone = config.server.lacks(Feature::NamedTool)
        || body_fallbacks.contains(&refusals::bit(BodyFallback::ToolAlone));
    let named: Vec<Value> =
        offered.iter().filter(|tool| Some(&tool["function"]["name"]) == choice).cloned().collect();
    let is_alone = goes_alone && !named.is_empty() && sent == named;
    let is_right = match config.run.fallback {
        // The prompt describes them.
        Fallback::On => sent.is_empty(),
        Fallback::Auto | Fallback::Off => is_alone || sent == offered,
    };
    if is_right {
        return Ok(());
    }
    let names: Vec<String> = sent.iter().map(|tool| tool["function"]["name"].to_string()).collect();
    let how = format!("{names:?} were sent in generation {}", current.number);
    Err(Violation { invariant: Invariant::PinnedTools, how })
}

/// Checks a retry: the attempt number increases by one, no answer but an error has begun, and the body is the same.
/// After a body fallback, the body is different but has the same content.
pub(super) fn check_retry(
    before: &[Exchange],
    attempt: u32,
    body: &Value,
    streams: bool,
    body_fallback: Option<BodyFallback>,
) -> Result<(), Violation> {
    let expected = before.last().map_or(1, |last| last.attempt + 1);
    let is_answer = |script: &Script| script.head == Head::Ok && script.content.end != ReplyEnd::Unavailable;
    let came = before.iter().any(|exchange| is_answer(&exchange.script) && exchange.any_byte);
    let same = before.last().is_none_or(|last| match body_fallback {
        _ if !streams => core(&last.body) == core(body),
        None => last.body == *body,
        Some(_) => {
            last.body != *body && untouched(&last.body, body_fallback) == untouched(body, body_fallback)
        }
    });
    if let Some(lost) = before.last().and_then(|last| lost(&last.body, body)) {
        return Err(Violation {
            invariant: Invariant::Retry,
            how: format!("{body_fallback:?} loses {lost:?} in {body}"),
        });
    }
    if attempt == expected && same && (!streams || !came) {
        return Ok(());
    }
    let how = format!("attempt {attempt} of {expected}, after an answer: {came}, the same: {same}");
    Err(Violation { invariant: Invariant::Retry, how })
}

/// Removes the members that only streaming requests have.
fn core(body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        for name in ["stream", "stream_options", "parallel_tool_calls", "cache_prompt", "return_progress"] {
            members.shift_remove(name);
        }
    }
    body
}
