//! What is sent: whether every server would take the conversation, the tools of the turn, the tries of one body.

use std::collections::{BTreeSet, VecDeque};

use deftool::chat::{Feature, Message, Swap};
use deftool::request::{Outcome, RunConfig, SystemMessages};
use deftool::spec::BiosBudget;
use deftool::worker::WorkerConfig;
use serde_json::Value;

use super::laws::{Broken, Law};
use super::ledger::{Case, Exchange};
use super::own::{IN_BETWEEN, Own};
use super::script::Head;
use super::swaps::{self, Forms, Layout, has_no_tools, layout, lost, still_refused, untouched};
use super::tools::{EXIT, Generation};
use super::wire;
use crate::support::validity;

/// Holds a body's messages against what servers take.
pub(super) fn check_body(body: &Value, config: &RunConfig, case: &Case, own: &Own) -> Result<(), Broken> {
    let how = |how: String| format!("{}: {how} in {body}", case.id);
    let history = |fault: String| Broken { law: Law::History, how: how(fault) };
    if let Some(member) = still_refused(body, &case.forms, config) {
        return Err(Broken { law: Law::Retry, how: how(format!("{member} again")) });
    }
    if let Some(missing) = own.missing(body, &config.model) {
        return Err(history(format!("no {missing}")));
    }
    let messages = wire::messages(body).map_err(history)?;
    let layout = layout(&case.forms);
    if !layout.plain
        && let Some(fault) = validity::fault(&messages)
    {
        return Err(history(fault));
    }
    let said = without_system(&messages, layout, config, own).map_err(history)?;
    if layout.plain {
        return check_plain(said, case);
    }
    Conversation { case, config, layout, open: VecDeque::new(), ids: BTreeSet::new() }
        .check(said)
        .map_err(history)
}

/// The messages without the system's, which stand where they must.
fn without_system<'m>(
    messages: &'m [Value],
    layout: Layout,
    config: &RunConfig,
    own: &Own,
) -> Result<&'m [Value], String> {
    let Layout { no_system, one_system, .. } = layout;
    let separate = config.system_messages == SystemMessages::Separate && !no_system && !one_system;
    let is_system = |message: &Value| message["role"] == "system" && message["content"] != IN_BETWEEN;
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let expected = if separate {
        1 + usize::from(config.system.is_some()) + usize::from(own.system_prompt.is_some())
    } else {
        usize::from(!no_system)
    };
    if leading != expected {
        return Err(format!("{leading} system messages first"));
    }
    let messages = &messages[leading..];
    if !separate || config.bios_budget != BiosBudget::Tail {
        return Ok(messages);
    }
    let Some((last, rest)) = messages.split_last().filter(|(last, _)| is_system(last)) else {
        return Err(String::from("no system message last"));
    };
    if last["content"].as_str().is_none_or(str::is_empty) {
        return Err(String::from("an empty system message"));
    }
    Ok(rest)
}

/// A conversation on the way through its messages.
struct Conversation<'c> {
    case: &'c Case,
    config: &'c RunConfig,
    layout: Layout,
    /// Calls that wait for their results, in order.
    open: VecDeque<String>,
    ids: BTreeSet<String>,
}

impl Conversation<'_> {
    fn check(mut self, messages: &[Value]) -> Result<(), String> {
        let separate = self.config.system_messages == SystemMessages::Separate;
        for message in messages {
            match message["role"].as_str() {
                Some("tool") => self.answer(message)?,
                role if !self.open.is_empty() => {
                    return Err(format!("{role:?} with {:?} to answer", self.open));
                }
                Some("assistant") => self.assistant(message)?,
                Some("system") if separate && message["content"] == IN_BETWEEN => {}
                Some("user") => {}
                role => return Err(format!("a message of {role:?}")),
            }
        }
        if !self.open.is_empty() {
            return Err(format!("{:?} unanswered", self.open));
        }
        if messages.last().is_none_or(|last| last["role"] == "assistant") {
            return Err(String::from("nothing to answer"));
        }
        // What was executed stands in it.
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
            let good = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !good || !self.ids.insert(id.to_owned()) {
                return Err(format!("the id `{id}`"));
            }
            if EXIT.contains(&name) || name.is_empty() || name == "nothing" {
                return Err(format!("a call of `{name}`"));
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
            return Err(String::from("an assistant message of nothing"));
        }
        Ok(())
    }

    /// The result of the first call that waits for one.
    fn answer(&mut self, message: &Value) -> Result<(), String> {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        match self.open.pop_front() {
            Some(next) if next == id => {}
            next => return Err(format!("a result of {id} where that of {next:?} is due")),
        }
        let content = message["content"].as_str().unwrap_or_default();
        let Ok(content) = serde_json::from_str::<Value>(content) else {
            return Err(format!("the result `{content}`"));
        };
        let past = self.case.past.get(id).and_then(Option::as_ref);
        let is_own = match self.case.executed.get(id) {
            _ if past == Some(&content) => true,
            Some(Some(result)) => *result == content,
            // It failed, or no tool ran at all: what is said is why, or what was said in the past.
            Some(None) => content.get("error").is_some(),
            None => content.is_string() || content.get("error").or(content.get("refused")).is_some(),
        };
        if is_own { Ok(()) } else { Err(format!("{content} for {id}")) }
    }
}

/// Holds what a request leaves behind against what servers take: one more message of the user's, and it goes on.
pub(super) fn check_left(left: &[Message], case: &Case, outcome: &Outcome) -> Result<(), Broken> {
    let broken =
        |how: String| Err(Broken { law: Law::History, how: format!("{} leaves {left:?}: {how}", case.id) });
    let messages: Vec<Value> =
        left.iter().map(|message| serde_json::to_value(message).expect("a message")).collect();
    if let Some(fault) = validity::fault(&messages) {
        return broken(fault);
    }
    let is_lost = outcome.kind.as_deref() == Some("internal");
    let stands = |id: &String| {
        let is_its =
            |message: &Message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == id);
        left.iter().any(is_its)
    };
    match case.executed.keys().find(|id| !is_lost && !stands(id)) {
        Some(lost) => broken(format!("the call {lost} is lost")),
        None => Ok(()),
    }
}

/// Where calls and results are told as text: users and assistants speak in turn, and what tools said is there.
fn check_plain(messages: &[Value], case: &Case) -> Result<(), Broken> {
    let broken =
        |how: String| Err(Broken { law: Law::History, how: format!("{}: {how} in {messages:?}", case.id) });
    if let Some(fault) = validity::fault(messages) {
        return broken(fault);
    }
    let is_plain = |message: &Value| {
        message["content"] == IN_BETWEEN
            || matches!(message["role"].as_str(), Some("user" | "assistant"))
                && message.get("tool_calls").is_none()
    };
    if let Some(odd) = messages.iter().find(|message| !is_plain(message)) {
        return broken(format!("{odd} is no text"));
    }
    if let Some(pair) =
        messages.windows(2).find(|pair| pair[0]["role"] == pair[1]["role"] && pair[0]["role"] != "system")
    {
        return broken(format!("{} twice", pair[0]["role"]));
    }
    let stands = |result: &Value| {
        let result = result.to_string();
        messages.iter().any(|message| message["content"].as_str().is_some_and(|text| text.contains(&result)))
    };
    match case.executed.values().flatten().find(|result| !stands(result)) {
        Some(lost) => broken(format!("the result {lost} is lost")),
        None => Ok(()),
    }
}

/// A turn offers what there is; the last one without budget only what costs none.
pub(super) fn check_tools(
    body: &Value,
    current: &Generation,
    is_last: bool,
    config: &WorkerConfig,
    forms: &Forms,
) -> Result<(), Broken> {
    let sent = wire::tools(body);
    let offered = current.set.definitions(|tool| !is_last || current.is_exit(&tool.name));
    // One that the model is to call goes alone where no server looks at its name.
    let choice = config.run.params.get("tool_choice").and_then(|choice| choice.pointer("/function/name"));
    let goes_alone = config.server.lacks(Feature::NamedTool) || forms.contains(&swaps::bit(Swap::ToolAlone));
    let named: Vec<Value> =
        offered.iter().filter(|tool| Some(&tool["function"]["name"]) == choice).cloned().collect();
    let is_alone = goes_alone && !named.is_empty() && sent == named;
    let is_told = has_no_tools(forms) && sent.is_empty();
    if is_told || is_alone || (sent == offered && !has_no_tools(forms)) {
        return Ok(());
    }
    let names: Vec<String> = sent.iter().map(|tool| tool["function"]["name"].to_string()).collect();
    let how = format!("{names:?} were sent in generation {}", current.number);
    Err(Broken { law: Law::Pinned, how })
}

/// A try is one more than the last, comes before any byte of an answer, and sends the same; after a refusal that names
/// something, the same words in another form.
pub(super) fn check_retry(
    before: &[Exchange],
    attempt: u32,
    body: &Value,
    streams: bool,
    swap: Option<Swap>,
) -> Result<(), Broken> {
    let expected = before.last().map_or(1, |last| last.attempt + 1);
    let came = before.iter().any(|exchange| exchange.script.head == Head::Ok && exchange.any_byte);
    let same = before.last().is_none_or(|last| match swap {
        _ if !streams => core(&last.body) == core(body),
        None => last.body == *body,
        Some(_) => last.body != *body && untouched(&last.body, swap) == untouched(body, swap),
    });
    if let Some(lost) = before.last().and_then(|last| lost(&last.body, body)) {
        return Err(Broken { law: Law::Retry, how: format!("{swap:?} loses {lost:?} in {body}") });
    }
    if attempt == expected && same && (!streams || !came) {
        return Ok(());
    }
    let how = format!("attempt {attempt} of {expected}, after bytes: {came}, the same: {same}");
    Err(Broken { law: Law::Retry, how })
}

/// A body without the members that only a request for a stream has.
fn core(body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        for name in ["stream", "stream_options", "parallel_tool_calls", "cache_prompt", "return_progress"] {
            members.shift_remove(name);
        }
    }
    body
}
