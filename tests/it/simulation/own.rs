//! What a request brings along: options of its own, and a conversation, which may be one that no server takes.

use deftool::chat::{Message, MessageToolCall};
use serde_json::{Map, Value, json};

use super::dice::Dice;

/// A system message in the middle of a conversation.
pub(super) const IN_BETWEEN: &str = "(in between)";

/// Options of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    pub(super) system_prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) params: Map<String, Value>,
    pub(super) tools: Option<Vec<String>>,
}

impl Own {
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

    /// Whether it sets what is not a submitter's.
    pub(super) fn is_reserved(&self) -> bool {
        self.params.contains_key("stream")
    }

    /// What of them a body does not have.
    pub(super) fn missing(&self, body: &Value, model: &str) -> Option<String> {
        let model = self.model.as_deref().unwrap_or(model);
        if body["model"] != model {
            return Some(format!("the model {model}"));
        }
        self.params.iter().find(|(name, value)| body[*name] != **value).map(|(name, _)| name.clone())
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        [
            (self.system_prompt.is_some(), "own: system prompt"),
            (self.model.is_some(), "own: model"),
            (!self.params.is_empty(), "own: params"),
            (self.tools.is_some(), "own: tools"),
        ]
        .into_iter()
        .filter_map(|(has, feature)| has.then_some(feature))
        .collect()
    }
}

/// What was said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Nothing,
    /// A call and its answer.
    Call,
    /// Pieces that do not fit together.
    Odd(u64),
    /// What another case left behind, if it is over.
    Of(usize),
}

fn user(content: impl Into<String>) -> Message {
    Message::User { content: content.into() }
}

fn asks(content: &str, calls: &[(&str, &str)]) -> Message {
    let call = |(id, arguments): &(&str, &str)| MessageToolCall::new(*id, "look", *arguments);
    Message::Assistant { content: content.to_owned(), tool_calls: calls.iter().map(call).collect() }
}

fn result(id: &str) -> Message {
    Message::Tool { tool_call_id: id.to_owned(), content: String::from("\"it\"") }
}

impl Past {
    /// The conversation of a case; `before`: what another one left.
    pub(super) fn messages(self, number: usize, before: Option<Vec<Message>>) -> Vec<Message> {
        let first = user(format!("case {number}: hello"));
        match (self, before) {
            (Self::Of(_), Some(mut before)) => {
                before.push(first);
                before
            }
            (Self::Nothing | Self::Of(_), _) => vec![first],
            (Self::Call, _) => {
                let call = asks("Let me look.", &[("samesame1", "{}")]);
                vec![first, call, result("samesame1"), user("and now?")]
            }
            (Self::Odd(seed), _) => {
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

/// A piece of a conversation that a server may refuse.
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
