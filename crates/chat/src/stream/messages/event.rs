//! One event of a message stream, or a complete message, parsed leniently.
//!
//! In: the bytes of one JSON object. Out: an [`Event`] that borrows from them. Other members are skipped.

use serde::de::MapAccess;

use super::super::loose::Loose;
use super::super::loose_object::{Fill, LooseObject};

/// An event. `message` holds the message if the event contains one.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    /// The `type` member.
    pub(super) kind: Loose<'a>,
    /// The `error` member, of any type.
    pub(super) error: Loose<'a>,
    /// Index of the content block.
    pub(super) index: Loose<'a>,
    pub(super) content_block: Loose<'a>,
    pub(super) delta: Loose<'a>,
    pub(super) message: Option<Box<MessageObject<'a>>>,
    /// Members of a message that are placed directly in the event.
    pub(super) own: MessageObject<'a>,
}

/// A message.
#[derive(Debug, Default)]
pub(super) struct MessageObject<'a> {
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) content: Loose<'a>,
    pub(super) stop_reason: Loose<'a>,
    pub(super) stop_details: Loose<'a>,
    pub(super) usage: Loose<'a>,
}

impl<'de> LooseObject<'de> for Event<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "type" => self.kind = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "index" => self.index = map.next_value()?,
            "content_block" => self.content_block = map.next_value()?,
            "delta" => self.delta = map.next_value()?,
            "message" => {
                let mut message = Box::default();
                self.message = map.next_value_seed(Fill(&mut *message))?.then_some(message);
            }
            _ => return self.own.read_member(key, map),
        }
        Ok(true)
    }
}

impl<'de> LooseObject<'de> for MessageObject<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "id" => self.id = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "content" => self.content = map.next_value()?,
            "stop_reason" => self.stop_reason = map.next_value()?,
            "stop_details" => self.stop_details = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
