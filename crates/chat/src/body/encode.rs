//! Encodes bodies as JSON.
//!
//! The body of each turn contains the whole conversation. An encoder keeps the last body, so that a turn encodes only
//! new messages and copies the rest.

use std::sync::Arc;

use bytes::Bytes;
use deftool_lang::spec::Api;
use serde::Serialize;
use serde_json::{Map, Value};

use super::call_ids::with_valid_ids;
use super::model::{BodyFallback, BodyForm, ChatRequest, ItemForm};
use super::returned::{completions_message, returned_messages};
use super::shape::shape_messages;
use super::{completions, responses};
use crate::message::Message;

/// The body of an HTTP request, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    json: Bytes,
    /// The members. The value of the conversation is null.
    members: Map<String, Value>,
    /// Length of the conversation in `json`, in bytes.
    conversation_bytes: usize,
}

impl Body {
    /// The JSON text. A clone shares the bytes.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Parses the JSON text.
    pub fn to_value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// Returns a member other than the conversation.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// The length of the conversation, in bytes.
    pub fn conversation_bytes(&self) -> usize {
        self.conversation_bytes
    }
}

/// Encodes the bodies of one request.
#[derive(Debug, Default)]
pub struct BodyEncoder {
    /// The form of `items`.
    form: ItemForm,
    /// Number of leading system messages. They are not kept, because the first one usually contains the budget.
    leading: usize,
    /// The messages that follow, each with the end of its JSON in `items`.
    known: Vec<(Arc<Message>, usize)>,
    /// The items of these messages, each after one byte, a comma or the bracket of the list: a part of the last body.
    items: Bytes,
}

impl BodyEncoder {
    /// Returns the body of `request` for a server.
    pub fn encode(&mut self, request: &ChatRequest, form: BodyForm) -> Body {
        let api = form.effective_api();
        let (members, conversation) = match api {
            Api::ChatCompletions => (completions::members(request, form), completions::CONVERSATION),
            Api::Responses | Api::Messages => {
                (responses::members(request, form), responses::CONVERSATION)
            }
        };
        let returned = with_valid_ids(returned_messages(request, form), &request.model, form);
        let messages = shape_messages(&returned, form.fallbacks);
        let item_form = ItemForm {
            api,
            empty: form.fallbacks.has(BodyFallback::EmptyContent),
            stores: members.get("store").and_then(Value::as_bool) != Some(false),
            no_ids: form.fallbacks.has(BodyFallback::NoItemIds),
        };
        let is_system = |message: &&Arc<Message>| matches!(***message, Message::System { .. });
        let leading = messages.iter().take_while(is_system).count();
        let (first, rest) = messages.split_at(leading);
        self.forget_changed(rest, leading, item_form);
        let mut json = Vec::with_capacity(self.items.len() + 4_096);
        let mut items = 0..0;
        let mut conversation_bytes = 0;
        for (name, value) in &members {
            json.push(if json.is_empty() { b'{' } else { b',' });
            push(&mut json, name);
            json.push(b':');
            if name == conversation {
                let start = json.len();
                for (number, message) in first.iter().enumerate() {
                    push_items(&mut json, item_form, number, message);
                }
                items.start = json.len();
                json.extend_from_slice(&self.items);
                for (number, message) in rest.iter().enumerate().skip(self.known.len()) {
                    push_items(&mut json, item_form, leading + number, message);
                    self.known.push((Arc::clone(message), json.len() - items.start));
                }
                items.end = json.len();
                // In place of the comma before the first item.
                match json.get_mut(start) {
                    Some(comma) => *comma = b'[',
                    None => json.push(b'['),
                }
                json.push(b']');
                conversation_bytes = json.len() - start;
            } else {
                push(&mut json, value);
            }
        }
        json.push(b'}');
        let json = Bytes::from(json);
        self.items = json.slice(items);
        Body { json, members, conversation_bytes }
    }

    /// Forgets the messages from the first that differs from `messages`. `leading` messages precede them.
    fn forget_changed(&mut self, messages: &[Arc<Message>], leading: usize, form: ItemForm) {
        if (self.form, self.leading) != (form, leading) {
            *self = Self { form, leading, ..Self::default() };
        }
        let same = self.known.iter().zip(messages).take_while(|((known, _), message)| known == *message);
        let same = same.count();
        self.known.truncate(same);
        self.items.truncate(self.known.last().map_or(0, |(_, end)| *end));
    }
}

/// Appends the items of a message, each after a comma.
fn push_items(json: &mut Vec<u8>, form: ItemForm, number: usize, message: &Message) {
    match form.api {
        Api::ChatCompletions => {
            json.push(b',');
            match message {
                Message::Assistant { content, tool_calls, received: Some(received) } => {
                    push(json, &completions_message(content, tool_calls, &received.parts, form.empty));
                }
                message => push(json, &completions::encode_message(message, form.empty)),
            }
        }
        Api::Responses | Api::Messages => {
            for item in responses::encode_message(number, message, form) {
                json.push(b',');
                push(json, &item);
            }
        }
    }
}

fn push(json: &mut Vec<u8>, value: &impl Serialize) {
    // Writing a JSON value to memory cannot fail.
    let _ = serde_json::to_writer(json, value);
}
