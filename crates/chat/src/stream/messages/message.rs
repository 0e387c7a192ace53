//! Events of a message stream → text, reasoning, calls.
//!
//! In: the JSON of each event in order, or of a complete message. Out: events, then the calls at the end.

use super::super::api_decoder::ApiDecoder;
use super::super::assemble::{Assembled, LimitExceeded};
use super::super::chunk::{decode_chunk, is_error};
use super::super::loose::Loose;
use super::super::loose_object::decode_object;
use super::super::reply_state::{BodyEnd, ReplyContent, ReplyState};
use super::super::sink::Sink;
use super::blocks::Blocks;
use super::event::{Event, MessageObject};
use crate::event::Usage;
use crate::received::Opaque;

/// A message that is being received.
#[derive(Debug, Default)]
pub(in super::super) struct MessageReply {
    blocks: Blocks,
    counts: Counts,
}

/// Token counts of the API.
#[derive(Debug, Default)]
struct Counts {
    /// Tokens of the prompt that are not in the cache.
    input: Option<u64>,
    /// Tokens that were read from the cache.
    read: Option<u64>,
    /// Tokens that were written to the cache.
    written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl ApiDecoder for MessageReply {
    fn read(&mut self, data: &[u8], state: &mut ReplyState, sink: &mut Sink<'_>) -> serde_json::Result<()> {
        let event = decode_object::<Event<'_>>(data)?;
        if let Err(limit) = self.on_event(&event, data, state, sink) {
            state.stop_at_limit(limit);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, empty_is_complete: bool) -> (Assembled, Vec<String>, Option<Opaque>) {
        self.blocks.finish(empty_is_complete)
    }
}

impl MessageReply {
    fn on_event(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let index = event.index.as_count();
        match kind_of(event) {
            "message_start" => self.take_members(event.message.as_deref().unwrap_or(&event.own), state),
            "content_block_start" => {
                state.note_content(ReplyContent::Choice);
                self.blocks.begin(index, &event.content_block, state, sink)?;
            }
            "content_block_delta" => {
                state.note_content(ReplyContent::Choice);
                self.blocks.add(index, &event.delta, state, sink)?;
            }
            "content_block_stop" => self.blocks.end(index),
            "message_delta" => {
                state.note_content(ReplyContent::Choice);
                self.take_members(&event.own, state);
                let own = &event.own;
                let of_delta = |name: &str, own| event.delta.get(name).unwrap_or(own);
                set_reason(of_delta("stop_reason", &own.stop_reason), state);
                set_details(of_delta("stop_details", &own.stop_details), state);
            }
            "message_stop" => state.body_end = BodyEnd::Done,
            "message" => self.on_whole(event.message.as_deref().unwrap_or(&event.own), state, sink)?,
            "error" => state.set_server_error(data),
            "" if is_error(&event.error) || decode_chunk(data).is_ok_and(|chunk| chunk.has_error()) => {
                state.set_server_error(data);
            }
            // `ping`, and events that are not about the content.
            _ => {}
        }
        Ok(())
    }

    /// Takes a complete message. It may repeat what was streamed.
    fn on_whole(
        &mut self,
        message: &MessageObject<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        state.note_content(ReplyContent::Message);
        self.take_members(message, state);
        set_reason(&message.stop_reason, state);
        set_details(&message.stop_details, state);
        if !self.blocks.is_empty() {
            return Ok(());
        }
        match &message.content {
            Loose::Array(blocks) => {
                for block in blocks {
                    self.blocks.begin(None, block, state, sink)?;
                    self.blocks.end(None);
                }
            }
            Loose::String(text) => {
                let text = Loose::Object(vec![("text".into(), Loose::String(text.as_ref().into()))]);
                self.blocks.begin(None, &text, state, sink)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the id, the model and the token counts of a message.
    fn take_members(&mut self, message: &MessageObject<'_>, state: &mut ReplyState) {
        state.set_id(&message.id);
        state.set_model(&message.model);
        if let Some(usage) = self.counts.add(&message.usage) {
            state.set_counts(usage);
        }
    }
}

impl Counts {
    /// Adds cumulative counts. Returns the total if there are any.
    fn add(&mut self, usage: &Loose<'_>) -> Option<Usage> {
        let count = |name: &str| usage.get(name).and_then(Loose::as_count);
        let details = usage.get("output_tokens_details");
        let counts = [
            (&mut self.input, count("input_tokens")),
            (&mut self.read, count("cache_read_input_tokens")),
            (&mut self.written, count("cache_creation_input_tokens")),
            (&mut self.output, count("output_tokens")),
            (&mut self.thinking, details.and_then(|details| details.get("thinking_tokens")?.as_count())),
        ];
        let is_any = counts.iter().any(|(_, count)| count.is_some());
        // Some servers send 0 in place of a count that they sent before.
        for (known, count) in counts {
            *known = (*known).max(count);
        }
        let prompt = [self.input, self.read, self.written].into_iter().flatten();
        is_any.then(|| Usage {
            prompt_tokens: prompt.fold(0, u64::saturating_add),
            completion_tokens: self.output.unwrap_or_default(),
            cached_tokens: self.read,
            reasoning_tokens: self.thinking,
            retries: 0,
        })
    }
}

/// Returns the type of an event, by its members if it has none.
fn kind_of<'e>(event: &'e Event<'_>) -> &'e str {
    let has = |value: &Loose<'_>| *value != Loose::Null;
    match event.kind.as_text() {
        Some(kind) => kind,
        None if has(&event.content_block) => "content_block_start",
        None if event.delta.get("stop_reason").is_some() => "message_delta",
        None if has(&event.delta) => "content_block_delta",
        None if matches!(event.own.content, Loose::Array(_)) => "message",
        None => "",
    }
}

/// Stores the stop reason, unless it is null.
fn set_reason(reason: &Loose<'_>, state: &mut ReplyState) {
    if let Some(reason) = reason.as_text() {
        state.finish_reason = Some(reason.to_owned());
    }
}

/// Stores the category and the explanation of a refusal.
fn set_details(details: &Loose<'_>, state: &mut ReplyState) {
    let text = |name: &str| details.get(name).and_then(Loose::as_text).filter(|text| !text.is_empty());
    let texts: Vec<&str> = ["category", "explanation"].into_iter().filter_map(text).collect();
    if !texts.is_empty() {
        state.finish_detail = Some(texts.join(": ").into());
    }
}
