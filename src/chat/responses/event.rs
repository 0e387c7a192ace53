//! One event of a response's stream, or a whole response, read as tolerantly as servers write.
//!
//! In: the bytes of one JSON object. Out: an [`Event`] that borrows from them. What is not read is skipped, such as
//! the tools and instructions that some servers repeat in every response.

use std::borrow::Cow;

use serde::de::MapAccess;

use super::super::loose::Loose;
use super::super::record::{Fill, Record};

/// An event. A response that stands in the place of an event is in `response`.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    /// `type`.
    pub(super) kind: Loose<'a>,
    /// `error`, whatever its type.
    pub(super) error: Loose<'a>,
    pub(super) item_id: Loose<'a>,
    pub(super) output_index: Loose<'a>,
    /// Which part of a message, or of reasoning.
    pub(super) content_index: Loose<'a>,
    /// Which part of a reasoning's summary.
    pub(super) summary_index: Loose<'a>,
    pub(super) delta: Loose<'a>,
    /// Whole text.
    pub(super) text: Loose<'a>,
    /// Whole refusal.
    pub(super) refusal: Loose<'a>,
    /// Whole arguments.
    pub(super) arguments: Loose<'a>,
    pub(super) name: Loose<'a>,
    pub(super) part: Loose<'a>,
    pub(super) item: Loose<'a>,
    pub(super) response: Option<Box<ResponseObject<'a>>>,
    /// The members of a response that stand in the event itself.
    pub(super) own: ResponseObject<'a>,
}

/// A response.
#[derive(Debug, Default)]
pub(super) struct ResponseObject<'a> {
    /// `object`, which is `response`.
    pub(super) object: Loose<'a>,
    pub(super) status: Loose<'a>,
    pub(super) error: Loose<'a>,
    /// What sort of error, in `OpenRouter`'s own words.
    pub(super) error_type: Loose<'a>,
    pub(super) incomplete_details: Loose<'a>,
    pub(super) usage: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) output: Loose<'a>,
    /// All text in one, as client libraries have it and some gateways send it.
    pub(super) output_text: Loose<'a>,
}

impl<'de> Record<'de> for Event<'de> {
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
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
            _ => return self.own.take(key, map),
        }
        Ok(true)
    }
}

impl<'de> Record<'de> for ResponseObject<'de> {
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "object" => self.object = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "error" => self.error = map.next_value()?,
            "error_type" => self.error_type = map.next_value()?,
            "incomplete_details" => self.incomplete_details = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "output" => self.output = map.next_value()?,
            "output_text" => self.output_text = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Event<'_> {
    /// The piece that a delta brings.
    pub(super) fn piece(&self) -> &str {
        match &self.delta {
            Loose::String(text) => text,
            delta => delta.get("text").and_then(Loose::as_text).unwrap_or_default(),
        }
    }
}

/// The texts of an item, which are strings or stand in parts.
pub(super) fn texts_of<'a>(field: Option<&'a Loose<'_>>) -> Vec<&'a str> {
    match field {
        Some(Loose::String(text)) => vec![text.as_ref()],
        Some(Loose::Array(parts)) => parts.iter().filter_map(text_of).collect(),
        Some(part @ Loose::Object(_)) => text_of(part).into_iter().collect(),
        Some(Loose::Null | Loose::Bool(_) | Loose::Number(_)) | None => Vec::new(),
    }
}

/// The text of one part: a string, `{"text": …}` or `{"refusal": …}`.
pub(super) fn text_of<'a>(part: &'a Loose<'_>) -> Option<&'a str> {
    if let Loose::String(text) = part {
        return Some(text);
    }
    ["text", "refusal"].iter().find_map(|name| part.get(name).and_then(Loose::as_text))
}

/// Most bytes of an id that is remembered; Copilot's have 400 and more.
const MAX_ID_BYTES: usize = 2 * 1024;

/// An id, unless it is absurdly long.
pub(super) fn id_of<'a>(field: &'a Loose<'_>) -> Option<Cow<'a, str>> {
    field.as_id().filter(|id| id.len() <= MAX_ID_BYTES)
}
