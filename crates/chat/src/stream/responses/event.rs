//! One event of a response stream, or a complete response, parsed leniently.
//!
//! In: the bytes of one JSON object. Out: an [`Event`] that borrows from them. Other members are skipped, such as the
//! tools and instructions that some servers repeat in every response.

use std::borrow::Cow;

use serde::de::MapAccess;

use super::super::loose::Loose;
use super::super::loose_object::{Fill, LooseObject};

/// An event. `response` holds the response if the event contains one.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    /// The `type` member.
    pub(super) kind: Loose<'a>,
    /// The `error` member, of any type.
    pub(super) error: Loose<'a>,
    pub(super) item_id: Loose<'a>,
    pub(super) output_index: Loose<'a>,
    /// Index of the part of a message or of reasoning.
    pub(super) content_index: Loose<'a>,
    /// Index of the part of a reasoning summary.
    pub(super) summary_index: Loose<'a>,
    pub(super) delta: Loose<'a>,
    /// Complete text.
    pub(super) text: Loose<'a>,
    /// Complete refusal.
    pub(super) refusal: Loose<'a>,
    /// Complete arguments.
    pub(super) arguments: Loose<'a>,
    pub(super) name: Loose<'a>,
    pub(super) part: Loose<'a>,
    pub(super) item: Loose<'a>,
    pub(super) response: Option<Box<ResponseObject<'a>>>,
    /// Members of a response that are placed directly in the event.
    pub(super) own: ResponseObject<'a>,
}

/// A response.
#[derive(Debug, Default)]
pub(super) struct ResponseObject<'a> {
    /// The `object` member: `response`.
    pub(super) object: Loose<'a>,
    pub(super) status: Loose<'a>,
    pub(super) error: Loose<'a>,
    /// The error type; specific to `OpenRouter`.
    pub(super) error_type: Loose<'a>,
    pub(super) incomplete_details: Loose<'a>,
    pub(super) usage: Loose<'a>,
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) output: Loose<'a>,
    /// The concatenated text. Client libraries define it and some gateways send it.
    pub(super) output_text: Loose<'a>,
}

impl<'de> LooseObject<'de> for Event<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "type" => self.kind = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "item_id" => self.item_id = map.next_value()?,
            "output_index" => self.output_index = map.next_value()?,
            "content_index" => self.content_index = map.next_value()?,
            "summary_index" => self.summary_index = map.next_value()?,
            "delta" => self.delta = map.next_value()?,
            "text" => self.text = map.next_value()?,
            "refusal" => self.refusal = map.next_value()?,
            "arguments" => self.arguments = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "part" => self.part = map.next_value()?,
            "item" => self.item = map.next_value()?,
            "response" => {
                let mut response = Box::default();
                self.response = map.next_value_seed(Fill(&mut *response))?.then_some(response);
            }
            _ => return self.own.read_member(key, map),
        }
        Ok(true)
    }
}

impl<'de> LooseObject<'de> for ResponseObject<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "object" => self.object = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "error_type" => self.error_type = map.next_value()?,
            "incomplete_details" => self.incomplete_details = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "output" => self.output = map.next_value()?,
            "output_text" => self.output_text = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Event<'_> {
    /// Returns the text of the delta.
    pub(super) fn piece(&self) -> &str {
        match &self.delta {
            Loose::String(text) => text,
            delta => delta.get("text").and_then(Loose::as_text).unwrap_or_default(),
        }
    }
}

/// Returns the texts of an item: strings, or parts.
pub(super) fn texts_of<'a>(field: Option<&'a Loose<'_>>) -> Vec<&'a str> {
    match field {
        Some(Loose::String(text)) => vec![text.as_ref()],
        Some(Loose::Array(parts)) => parts.iter().filter_map(text_of).collect(),
        Some(part @ Loose::Object(_)) => text_of(part).into_iter().collect(),
        Some(Loose::Null | Loose::Bool(_) | Loose::Number(_)) | None => Vec::new(),
    }
}

/// Returns the text of one part: a string, `{"text": …}` or `{"refusal": …}`.
pub(super) fn text_of<'a>(part: &'a Loose<'_>) -> Option<&'a str> {
    if let Loose::String(text) = part {
        return Some(text);
    }
    ["text", "refusal"].iter().find_map(|name| part.get(name).and_then(Loose::as_text))
}

/// Maximum length of an id that is stored. GitHub Copilot sends ids of 400 bytes and more.
const MAX_ID_BYTES: usize = 2 * 1024;

/// Returns an id, or `None` if it is too long.
pub(super) fn id_of<'a>(field: &'a Loose<'_>) -> Option<Cow<'a, str>> {
    field.as_id().filter(|id| id.len() <= MAX_ID_BYTES)
}
