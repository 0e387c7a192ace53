//! Any list of messages → one that every server takes.
//!
//! A conversation may come from a stored session, from another program, or from a request that was broken off in the middle of
//! its calls. One message that a server refuses makes it refuse the conversation for ever, so it is mended before it is sent:
//! a call that nobody answered is answered with a note, a result of no call is left out (it is a tool's word, and must
//! not become the user's), a second result or use of an id as well, results stand in the order of their calls (some templates
//! pair them by their places) and before what was said meanwhile, arguments that are no JSON object become `{}`, ids are unique
//! and of the form that all servers take, and between a tool's result and the user's next words stands a word of
//! the model's, for templates that want roles to alternate. A valid list comes out as it went in.
//!
//! Deliberately absent: joining neighbours of one role and splitting parallel calls, which are done where messages are sent.
//!
//! Source: the tables of tests/wire (arguments and parallel calls of llama.cpp, roles and ids of Mistral's templates).

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use super::ids::IdMaker;
use crate::chat::{Message, MessageToolCall};

/// What stands where the model's reply was broken off; alone, or after what there is of it.
pub const INTERRUPTED: &str = "[this reply was interrupted]";

/// What stands between a tool's result and the user's next words.
const NO_ANSWER: &str = "[no answer]";

/// What stands before a conversation whose first words are the model's.
const NO_MESSAGE: &str = "[no message]";

/// Where the ids of mended calls come from: the same list is mended in the same way.
const SEED: u64 = 0x5eed;

/// The answer to a call that was never answered.
pub(super) fn unanswered() -> String {
    json!({"error": {"kind": "canceled", "message": "this call was interrupted; it has no result"}})
        .to_string()
}

/// `messages` as every server takes them.
pub fn valid_conversation(messages: Vec<Message>) -> Vec<Message> {
    let mut mender = Mender {
        out: Vec::with_capacity(messages.len()),
        open: Vec::new(),
        missing: 0,
        waiting: HashMap::new(),
        meanwhile: Vec::new(),
        used: HashSet::new(),
        ids: IdMaker::new(SEED, &messages),
    };
    for message in messages {
        mender.take(message);
    }
    mender.close();
    alternate(mender.out)
}

struct Mender {
    out: Vec<Message>,
    /// The ids of the calls of the last message, each with its result once that came.
    open: Vec<(String, Option<String>)>,
    /// Calls of `open` without a result.
    missing: usize,
    /// The places in `open` that wait for a result, by the id that the result comes with.
    waiting: HashMap<String, VecDeque<usize>>,
    /// What was said before all results were there.
    meanwhile: Vec<Message>,
    used: HashSet<String>,
    ids: IdMaker,
}

impl Mender {
    fn take(&mut self, message: Message) {
        match message {
            Message::Tool { tool_call_id, content } => self.take_result(&tool_call_id, content),
            Message::Assistant { content, tool_calls } => {
                if content.trim().is_empty() && tool_calls.is_empty() {
                    // Some servers refuse it, and it says nothing.
                    return;
                }
                self.close();
                let tool_calls = tool_calls.into_iter().map(|call| self.take_call(call)).collect();
                self.out.push(Message::Assistant { content, tool_calls });
            }
            message @ (Message::System { .. } | Message::User { .. }) => {
                self.meanwhile.push(message);
                if self.missing == 0 {
                    self.close();
                }
            }
        }
    }

    fn take_call(&mut self, call: MessageToolCall) -> MessageToolCall {
        let came_with = call.id;
        let is_good = IdMaker::is_good(&came_with) && self.used.insert(came_with.clone());
        let id = if is_good { came_with.clone() } else { self.ids.admit(None) };
        self.waiting.entry(came_with).or_default().push_back(self.open.len());
        self.open.push((id.clone(), None));
        self.missing += 1;
        MessageToolCall::new(id, call.function.name, object_text(call.function.arguments))
    }

    /// A result belongs to a call of the last reply before it, the first of its id that has none.
    fn take_result(&mut self, came_with: &str, content: String) {
        let place = self.waiting.get_mut(came_with).and_then(VecDeque::pop_front);
        if let Some((_, result)) = place.and_then(|place| self.open.get_mut(place)) {
            *result = Some(content);
            self.missing = self.missing.saturating_sub(1);
        }
    }

    /// Writes the results of the calls that are open, in the order of the calls, and what was said meanwhile.
    fn close(&mut self) {
        let results = self.open.drain(..).map(|(tool_call_id, result)| {
            let content = result.unwrap_or_else(unanswered);
            Message::Tool { tool_call_id, content }
        });
        self.out.extend(results);
        self.out.append(&mut self.meanwhile);
        self.waiting.clear();
        self.missing = 0;
    }
}

/// Arguments as a JSON object's text.
fn object_text(arguments: String) -> String {
    match serde_json::from_str::<Value>(&arguments) {
        Ok(Value::Object(_)) => arguments,
        // Some servers encode them twice.
        Ok(Value::String(inner)) if matches!(serde_json::from_str(&inner), Ok(Value::Object(_))) => inner,
        Ok(_) | Err(_) => String::from("{}"),
    }
}

/// Puts a word between those that may not follow each other.
fn alternate(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    // System messages stand outside of the order.
    let mut last: Option<Role> = None;
    for message in messages {
        let role = match &message {
            Message::System { .. } => None,
            Message::User { .. } => Some(Role::User),
            Message::Assistant { .. } => Some(Role::Assistant),
            Message::Tool { .. } => Some(Role::Tool),
        };
        match (last, role) {
            (Some(Role::Tool), Some(Role::User)) => {
                out.push(Message::Assistant { content: String::from(NO_ANSWER), tool_calls: Vec::new() });
            }
            (None, Some(Role::Assistant)) => out.push(Message::User { content: String::from(NO_MESSAGE) }),
            _ => {}
        }
        last = role.or(last);
        out.push(message);
    }
    out
}

#[derive(Clone, Copy)]
enum Role {
    User,
    Assistant,
    Tool,
}
