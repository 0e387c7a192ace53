//! Conversion of any list of messages to a conversation that every server accepts.
//!
//! A conversation may come from a stored session, from another program, or from a request that was interrupted during
//! its calls. A single invalid message would make a server reject the conversation permanently. The rules are:
//! - A call without a result gets an error as its result.
//! - A result without a call is dropped: it is the output of a tool and must not become a user message.
//! - A second result for a call is dropped. Repeated ids are replaced.
//! - Results are in the order of their calls (some templates match them by position) and before other messages.
//! - Arguments that are not a JSON object become `{}`.
//! - Ids are unique and consist of visible ASCII characters.
//! - A placeholder assistant message separates a tool's result from the next user message, for templates that require
//!   alternating roles.
//!
//! A valid list is not changed. Merging adjacent messages of one role and splitting parallel calls is left to the code
//! that sends messages.
//!
//! Source: the cases in tests/wire (arguments and parallel calls of llama.cpp, roles and ids of Mistral's templates).

use std::collections::{HashMap, HashSet, VecDeque};

use deftool_lang::tool::Attachment;
use serde_json::{Value, json};

use super::ids::IdGenerator;
use crate::{Message, MessageToolCall};

/// Marks the position where the model's reply was interrupted, alone or after the partial text.
pub const INTERRUPTED: &str = "[this reply was interrupted]";

/// Separates a tool's result from the next user message.
const NO_ANSWER: &str = "[no answer]";

/// Placed before a conversation that begins with a message of the model.
const NO_MESSAGE: &str = "[no message]";

/// Seed for new call ids. It is fixed, so that equal lists are normalised equally.
const SEED: u64 = 0x5eed;

/// Returns the result for a call that was never answered.
pub(super) fn unanswered() -> String {
    json!({"error": {"kind": "canceled", "message": "this call was interrupted; it has no result"}})
        .to_string()
}

/// Converts `messages` to a conversation that every server accepts.
pub fn normalize_conversation(messages: Vec<Message>) -> Vec<Message> {
    let mut normalizer = Normalizer {
        out: Vec::with_capacity(messages.len()),
        open: Vec::new(),
        missing: 0,
        waiting: HashMap::new(),
        deferred: Vec::new(),
        used: HashSet::new(),
        ids: IdGenerator::new(SEED, &messages),
    };
    for message in messages {
        normalizer.take(message);
    }
    normalizer.close();
    alternate(normalizer.out)
}

/// The text and the attachments of a result.
type ReceivedResult = (String, Vec<Attachment>);

struct Normalizer {
    out: Vec<Message>,
    /// The ids of the last message's calls, each with its result if it was received.
    open: Vec<(String, Option<ReceivedResult>)>,
    /// Number of calls in `open` without a result.
    missing: usize,
    /// Positions in `open` without a result, by the original id.
    waiting: HashMap<String, VecDeque<usize>>,
    /// Messages that were received before all results.
    deferred: Vec<Message>,
    used: HashSet<String>,
    ids: IdGenerator,
}

impl Normalizer {
    fn take(&mut self, message: Message) {
        match message {
            Message::Tool { tool_call_id, content, attachments } => {
                self.take_result(&tool_call_id, (content, attachments));
            }
            Message::Assistant { content, tool_calls, received } => {
                let has_other = || received.as_ref().is_some_and(|it| it.parts.has_other_content());
                if content.trim().is_empty() && tool_calls.is_empty() && !has_other() {
                    // The message is empty, and some servers reject it.
                    return;
                }
                self.close();
                let tool_calls = tool_calls.into_iter().map(|call| self.take_call(call)).collect();
                self.out.push(Message::Assistant { content, tool_calls, received });
            }
            message @ (Message::System { .. } | Message::User { .. }) => {
                self.deferred.push(message);
                if self.missing == 0 {
                    self.close();
                }
            }
        }
    }

    fn take_call(&mut self, call: MessageToolCall) -> MessageToolCall {
        let original_id = call.id;
        let is_kept = IdGenerator::is_usable(&original_id) && self.used.insert(original_id.clone());
        let id = if is_kept { original_id.clone() } else { self.ids.assign(None) };
        self.waiting.entry(original_id).or_default().push_back(self.open.len());
        self.open.push((id.clone(), None));
        self.missing += 1;
        MessageToolCall::new(id, call.function.name, object_text(call.function.arguments))
    }

    /// Assigns a result to the first call of the last reply that has this id and no result.
    fn take_result(&mut self, original_id: &str, received: ReceivedResult) {
        let position = self.waiting.get_mut(original_id).and_then(VecDeque::pop_front);
        if let Some((_, result)) = position.and_then(|position| self.open.get_mut(position)) {
            *result = Some(received);
            self.missing = self.missing.saturating_sub(1);
        }
    }

    /// Writes the results of the open calls in the order of the calls, then the messages that were received in between.
    fn close(&mut self) {
        let results = self.open.drain(..).map(|(tool_call_id, result)| {
            let (content, attachments) = result.unwrap_or_else(|| (unanswered(), Vec::new()));
            Message::Tool { tool_call_id, content, attachments }
        });
        self.out.extend(results);
        self.out.append(&mut self.deferred);
        self.waiting.clear();
        self.missing = 0;
    }
}

/// Returns arguments as the text of a JSON object.
fn object_text(arguments: String) -> String {
    match serde_json::from_str::<Value>(&arguments) {
        Ok(Value::Object(_)) => arguments,
        // Some servers encode arguments twice.
        Ok(Value::String(inner)) if matches!(serde_json::from_str(&inner), Ok(Value::Object(_))) => inner,
        Ok(_) | Err(_) => String::from("{}"),
    }
}

/// Inserts placeholders between roles that must not follow each other.
fn alternate(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    // System messages do not count.
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
                out.push(Message::Assistant {
                    content: String::from(NO_ANSWER),
                    tool_calls: Vec::new(),
                    received: None,
                });
            }
            (None, Some(Role::Assistant)) => out.push(Message::user(String::from(NO_MESSAGE))),
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
