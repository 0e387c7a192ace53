//! Options and prior conversations of requests. A prior conversation may be invalid.

use deftool_chat::{Message, MessageToolCall};
use serde_json::{Map, Value, json};

use super::dice::Dice;

/// A system message in the middle of a conversation.
pub(super) const IN_BETWEEN: &str = "(in between)";

/// The options of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestOptions {
    pub(super) system_prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) params: Map<String, Value>,
    pub(super) tools: Option<Vec<String>>,
}

impl RequestOptions {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        if !dice.chance(30) {
            return Self::default();
        }
        let mut params = json!({});
        if dice.chance(50) {
            params[*dice.pick(&["top_p", "temperature", "seed"])] = json!(1);
        }
        if dice.chance(4) {
            params["stream"] = json!(false);
        }
        let tools = dice.chance(50).then(|| {
            let all = ["look", "count", "send", "slow", "ask", "done", "handoff"];
            let mut some: Vec<String> = all.iter().map(|name| (*name).to_owned()).collect();
            some.retain(|_| dice.chance(30));
            some
        });
        Self {
            system_prompt: dice.chance(50).then(|| String::from("You are asked by a case.")),
            model: dice.chance(30).then(|| String::from("another")),
            params: params.as_object().cloned().unwrap_or_default(),
            tools,
        }
    }

    /// Whether the request sets a reserved parameter.
    pub(super) fn is_reserved(&self) -> bool {
        self.params.contains_key("stream")
    }

    /// Returns an option that is missing in a body.
    pub(super) fn missing(&self, body: &Value, model: &str) -> Option<String> {
        let model = self.model.as_deref().unwrap_or(model);
        if body["model"] != model {
            return Some(format!("the model {model}"));
        }
        self.params.iter().find(|(name, value)| body[*name] != **value).map(|(name, _)| name.clone())
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        [
            (self.system_prompt.is_some(), "options: system prompt"),
            (self.model.is_some(), "options: model"),
            (!self.params.is_empty(), "options: params"),
            (self.tools.is_some(), "options: tools"),
        ]
        .into_iter()
        .filter_map(|(has, feature)| has.then_some(feature))
        .collect()
    }
}

/// The conversation before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriorConversation {
    Empty,
    /// A call and its result.
    Call,
    /// An invalid conversation, generated from this seed.
    Invalid(u64),
    /// The conversation of another case, if it has ended.
    AfterCase(usize),
}

fn user(content: impl Into<String>) -> Message {
    Message::user(content)
}

fn asks(content: &str, calls: &[(&str, &str)]) -> Message {
    let call = |(id, arguments): &(&str, &str)| MessageToolCall::new(*id, "look", *arguments);
    Message::Assistant {
        content: content.to_owned(),
        tool_calls: calls.iter().map(call).collect(),
        received: None,
    }
}

fn result(id: &str) -> Message {
    Message::tool(id, "\"it\"")
}

impl PriorConversation {
    /// Returns the conversation of a case. `before` is the conversation of the case that it continues.
    pub(super) fn messages(self, number: usize, before: Option<Vec<Message>>) -> Vec<Message> {
        let first = user(format!("case {number}: hello"));
        match (self, before) {
            (Self::AfterCase(_), Some(mut before)) => {
                before.push(first);
                before
            }
            (Self::Empty | Self::AfterCase(_), _) => vec![first],
            (Self::Call, _) => {
                let call = asks("Let me look.", &[("samesame1", "{}")]);
                vec![first, call, result("samesame1"), user("and now?")]
            }
            (Self::Invalid(seed), _) => {
                let mut dice = Dice::of(seed, "past", &[]);
                let mut messages = if dice.chance(70) { vec![first] } else { Vec::new() };
                for _ in 0..dice.below(1..6) {
                    messages.extend(odd(&mut dice));
                }
                if dice.chance(80) {
                    messages.push(user("and now?"));
                } else {
                    messages.extend([asks("", &[("lastlast1", "{}")]), result("lastlast1")]);
                }
                messages
            }
        }
    }
}

/// Returns a part of a conversation that a server may reject.
fn odd(dice: &mut Dice) -> Vec<Message> {
    let id = *dice.pick(&["samesame1", "call_1", "", "ünïcödes", "good00001", "a-b-c-d-e"]);
    match dice.below(0..13) {
        0 => vec![asks("unanswered", &[(id, "{}")])],
        1 => vec![result(id)],
        2 => vec![asks("twice", &[(id, "{}"), (id, "{}")]), result(id), result(id)],
        3 => vec![asks("", &[(id, "{}"), ("good00002", "{}")]), result("good00002")],
        4 => vec![asks("", &[(id, "[1]")]), result(id)],
        5 => vec![asks("", &[(id, "oops")]), result(id), result(id)],
        6 => vec![asks("", &[(id, "\"{\\\"at\\\": 1}\"")]), result(id)],
        7 => vec![asks("", &[])],
        8 => vec![Message::System { content: IN_BETWEEN.to_owned() }],
        9 => vec![asks("a word", &[]), asks("another word", &[])],
        10 => vec![asks("", &[(id, "{}")]), user("never mind"), result(id)],
        11 => vec![asks("", &[(id, "{}"), ("good00003", "{}")]), result("good00003"), result(id)],
        _ => vec![user("one more"), user("and another")],
    }
}
