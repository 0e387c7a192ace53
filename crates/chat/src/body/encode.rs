//! Encodes bodies as JSON.
//!
//! The body of each turn contains the whole conversation. An encoder keeps the last body, so that a turn encodes only
//! new messages and copies the rest.

use std::sync::Arc;

use bytes::Bytes;
use deftool_lang::spec::Api;
use deftool_lang::tool::Attachment;
use serde_json::{Map, Value};

use super::attachments::{Unsent, attachment_bytes, sent_attachments};
use super::call_ids::with_valid_ids;
use super::change::BodyFallback;
use super::completions::ChatCompletions;
use super::format::{BodyFormat, Group, push};
use super::messages::Messages;
use super::model::{BodyForm, ChatRequest, ItemForm};
use super::responses::Responses;
use super::returned::returned_messages;
use super::shape::shape_messages;
use crate::message::Message;

fn format_of(api: Api) -> &'static dyn BodyFormat {
    match api {
        Api::ChatCompletions => &ChatCompletions,
        Api::Responses => &Responses,
        Api::Messages => &Messages,
    }
}

/// The body of an HTTP request, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    json: Bytes,
    /// The members. The value of the conversation is null.
    members: Map<String, Value>,
    /// Length of the conversation in `json` without images and audio, in bytes.
    conversation_bytes: usize,
    unsent: Unsent,
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

    /// The length of the conversation without images and audio, in bytes.
    pub fn conversation_bytes(&self) -> usize {
        self.conversation_bytes
    }

    /// The lines of new images and audio that the server does not accept, each with the reason.
    pub fn unsent(&self) -> &[String] {
        &self.unsent.lines
    }

    /// The images and audio that are not sent because the server rejected the request with them.
    pub fn rejected(&self) -> &[Attachment] {
        &self.unsent.rejected
    }
}

/// Encodes the bodies of one request.
#[derive(Debug, Default)]
pub struct BodyEncoder {
    /// The form of `items`.
    form: ItemForm,
    /// Number of leading system messages. They are not kept, because the first one usually contains the budget.
    leading: usize,
    /// The groups of messages that follow.
    known: Vec<KnownGroup>,
    /// The items of these messages, each after one byte, a comma or the bracket of the list: a part of the last body.
    items: Bytes,
}

/// A group of messages that is already encoded.
#[derive(Debug)]
struct KnownGroup {
    messages: Box<[Arc<Message>]>,
    ends_prefix: bool,
    /// The end of its JSON in the items.
    end: usize,
}

impl BodyEncoder {
    /// Returns the body of `request` for a server.
    pub fn encode(&mut self, request: &ChatRequest, form: BodyForm) -> Body {
        let api = form.effective_api();
        let format = format_of(api);
        let returned = with_valid_ids(returned_messages(request, form), &request.model, form);
        let (returned, unsent) = sent_attachments(returned, request, form);
        let messages = shape_messages(&returned, request.writes_calls(form.fallbacks), form.fallbacks);
        let is_system = |message: &&Arc<Message>| matches!(***message, Message::System { .. });
        let leading = messages.iter().take_while(is_system).count();
        let (first, rest) = messages.split_at(leading);
        let members = format.members(request, form, first);
        let item_form = ItemForm {
            api,
            empty: form.fallbacks.has(BodyFallback::EmptyContent),
            stores: members.get("store").and_then(Value::as_bool) != Some(false),
            no_ids: form.fallbacks.has(BodyFallback::NoItemIds),
            caches: form.caches_prompt(request),
        };
        let first: &[Arc<Message>] = if format.leads_outside() { &[] } else { first };
        let first = format.groups(first, item_form);
        let rest = format.groups(rest, item_form);
        self.forget_changed(&rest, first.len(), item_form);
        let mut json = Vec::with_capacity(self.items.len() + 4_096);
        let mut items = 0..0;
        let mut conversation_bytes = 0;
        for (name, value) in &members {
            json.push(if json.is_empty() { b'{' } else { b',' });
            push(&mut json, name);
            json.push(b':');
            if name == format.conversation() {
                let start = json.len();
                for (number, group) in first.iter().enumerate() {
                    format.push_items(&mut json, item_form, number, *group);
                }
                items.start = json.len();
                json.extend_from_slice(&self.items);
                for (number, group) in rest.iter().enumerate().skip(self.known.len()) {
                    format.push_items(&mut json, item_form, first.len() + number, *group);
                    self.known.push(KnownGroup {
                        messages: group.messages.into(),
                        ends_prefix: group.ends_prefix,
                        end: json.len() - items.start,
                    });
                }
                items.end = json.len();
                // In place of the comma before the first item.
                match json.get_mut(start) {
                    Some(comma) => *comma = b'[',
                    None => json.push(b'['),
                }
                json.push(b']');
                conversation_bytes = json.len() - start - attachment_bytes(&messages);
            } else {
                push(&mut json, value);
            }
        }
        json.push(b'}');
        let json = Bytes::from(json);
        self.items = json.slice(items);
        Body { json, members, conversation_bytes, unsent }
    }

    /// Forgets the groups from the first that differs from `groups`. `leading` groups precede them.
    fn forget_changed(&mut self, groups: &[Group<'_>], leading: usize, form: ItemForm) {
        if (self.form, self.leading) != (form, leading) {
            *self = Self { form, leading, ..Self::default() };
        }
        let is_same = |(known, group): &(&KnownGroup, &Group<'_>)| {
            known.ends_prefix == group.ends_prefix && *known.messages == *group.messages
        };
        let same = self.known.iter().zip(groups).take_while(is_same).count();
        self.known.truncate(same);
        self.items.truncate(self.known.last().map_or(0, |known| known.end));
    }
}
