//! Encodes bodies as JSON.
//!
//! The body of each turn contains the whole conversation. An encoder keeps the JSON of the messages, so that a turn
//! encodes only new ones and copies the rest.

use std::sync::Arc;

use bytes::Bytes;
use deftool_lang::spec::Api;
use serde::Serialize;
use serde_json::{Map, Value};

use super::model::{BodyForm, ChatRequest};
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
    api: Api,
    /// Number of leading system messages. They are not kept, because the first one usually contains the budget.
    leading: usize,
    /// The messages that follow, each with the end of its JSON in `json`.
    known: Vec<(Arc<Message>, usize)>,
    /// The items of these messages, each after a comma.
    json: Vec<u8>,
}

impl BodyEncoder {
    /// Returns the body of `request` for a server.
    pub fn encode(&mut self, request: &ChatRequest, form: BodyForm) -> Body {
        let (members, conversation) = match form.api {
            Api::ChatCompletions => (completions::members(request, form), completions::CONVERSATION),
            Api::Responses => (responses::members(request, form), responses::CONVERSATION),
        };
        let messages = shape_messages(&request.messages, form.fallbacks);
        let is_system = |message: &&Arc<Message>| matches!(***message, Message::System { .. });
        let leading = messages.iter().take_while(is_system).count();
        let (first, rest) = messages.split_at(leading);
        self.add(rest, leading, form.api);
        let mut items = Vec::new();
        for (number, message) in first.iter().enumerate() {
            push_items(&mut items, form.api, number, message);
        }
        let mut json = Vec::with_capacity(self.json.len() + items.len() + 4_096);
        let mut conversation_bytes = 0;
        for (name, value) in &members {
            json.push(if json.is_empty() { b'{' } else { b',' });
            push(&mut json, name);
            json.push(b':');
            if name == conversation {
                let start = json.len();
                json.extend_from_slice(&items);
                json.extend_from_slice(&self.json);
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
        Body { json: Bytes::from(json), members, conversation_bytes }
    }

    /// Encodes the messages that are not known. `leading` messages precede them.
    fn add(&mut self, messages: &[Arc<Message>], leading: usize, api: Api) {
        if (self.api, self.leading) != (api, leading) {
            *self = Self { api, leading, ..Self::default() };
        }
        let same = self.known.iter().zip(messages).take_while(|((known, _), message)| known == *message);
        let same = same.count();
        self.known.truncate(same);
        self.json.truncate(self.known.last().map_or(0, |(_, end)| *end));
        for (number, message) in messages.iter().enumerate().skip(same) {
            push_items(&mut self.json, api, leading + number, message);
            self.known.push((Arc::clone(message), self.json.len()));
        }
    }
}

/// Appends the items of a message, each after a comma.
fn push_items(json: &mut Vec<u8>, api: Api, number: usize, message: &Message) {
    match api {
        Api::ChatCompletions => {
            json.push(b',');
            push(json, &completions::encode_message(message));
        }
        Api::Responses => {
            for item in responses::encode_message(number, message) {
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
