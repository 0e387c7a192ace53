//! What the formats of all APIs have in common.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::model::{BodyForm, ChatRequest, ItemForm};
use crate::message::Message;

/// The format of the bodies of one API.
pub(super) trait BodyFormat {
    /// The member that contains the conversation.
    fn conversation(&self) -> &'static str;

    /// Whether the leading system messages are not a part of the conversation.
    fn leads_outside(&self) -> bool {
        false
    }

    /// Returns the members of the body. The value of the conversation is null. `leading`: the leading system messages.
    fn members(&self, request: &ChatRequest, form: BodyForm, leading: &[Arc<Message>]) -> Map<String, Value>;

    /// Returns the groups of messages that are encoded together.
    fn groups<'m>(&self, messages: &'m [Arc<Message>], _form: ItemForm) -> Vec<Group<'m>> {
        messages.chunks(1).map(|messages| Group { messages, ends_prefix: false }).collect()
    }

    /// Appends the items of a group, each after a comma. `number` is the position of the group in the conversation.
    fn push_items(&self, json: &mut Vec<u8>, form: ItemForm, number: usize, group: Group<'_>);
}

/// Messages that are encoded together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'m> {
    pub(super) messages: &'m [Arc<Message>],
    /// The server stores the prompt up to here.
    pub(super) ends_prefix: bool,
}

/// Appends an item after a comma.
pub(super) fn push_item(json: &mut Vec<u8>, item: &impl Serialize) {
    json.push(b',');
    push(json, item);
}

/// Appends a value.
pub(super) fn push(json: &mut Vec<u8>, value: &impl Serialize) {
    // Writing a JSON value to memory cannot fail.
    let _ = serde_json::to_writer(json, value);
}
