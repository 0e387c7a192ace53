//! Chunks of a chat completion → text, reasoning, calls.
//!
//! In: the JSON of each chunk, in order, or of a whole completion. Out: events, and at the end the calls.

use super::account::{Account, Seen};
use super::assemble::{Assembled, Assembler};
use super::chunk::{Choice, Chunk, Delta, decode_chunk};
use super::event::ChatEvent;
use super::http_error::classify_stream_error;
use super::loose::Loose;
use super::sink::Sink;

/// A completion so far.
#[derive(Debug)]
pub(super) struct Completion {
    assembler: Assembler,
    has_text: bool,
}

impl Completion {
    /// For a reply to a request that offered `known_tools`.
    pub(super) fn new(known_tools: impl IntoIterator<Item = String>) -> Self {
        Self { assembler: Assembler::new(known_tools), has_text: false }
    }

    /// Takes the JSON of one chunk.
    ///
    /// # Errors
    /// The bytes are not one JSON value.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> serde_json::Result<()> {
        self.on_chunk(&decode_chunk(data)?, data, account, sink);
        Ok(())
    }

    /// The reply is over: the calls, and the types of `tool_calls` entries that were passed over.
    pub(super) fn finish(self, empty_is_whole: bool) -> (Assembled, Vec<String>) {
        self.assembler.finish(empty_is_whole)
    }

    /// `data` is the chunk's JSON.
    fn on_chunk(&mut self, chunk: &Chunk<'_>, data: &[u8], account: &mut Account, sink: &mut Sink<'_>) {
        if chunk.has_error() {
            account.set_error(|| classify_stream_error(data));
        }
        account.set_model(&chunk.model);
        account.set_usage(&chunk.usage);
        if let Loose::Object(_) = chunk.prompt_progress {
            let count = |name| chunk.prompt_progress.get(name).and_then(Loose::as_count);
            if let (Some(processed), Some(total)) = (count("processed"), count("total")) {
                sink.push(ChatEvent::Progress { processed, total });
            }
        }
        for choice in chunk.choices.iter().filter(|choice| choice.is_first()) {
            if !account.is_full() {
                self.on_choice(choice, account, sink);
            }
        }
    }

    fn on_choice(&mut self, choice: &Choice<'_>, account: &mut Account, sink: &mut Sink<'_>) {
        // A last chunk may repeat as a message what came in deltas.
        let is_new = !self.has_text && self.assembler.is_empty();
        account.saw(if choice.message.is_some() { Seen::Message } else { Seen::Choice });
        if let Some(delta) = &choice.delta {
            self.on_delta(delta, account, sink);
        } else if let Some(message) = choice.message.as_ref().filter(|_| is_new) {
            self.assembler.has_whole_calls = true;
            self.on_delta(message, account, sink);
            self.assembler.has_whole_calls = false;
        } else if let Some(text) = choice.text.as_text()
            && account.has_room_for(text.len())
        {
            self.push_text(text, sink);
        }
        if let Some(reason) = choice.finish_reason.as_text() {
            account.finish_reason = Some(reason.to_owned());
        }
        if choice.has_error() {
            account.set_error(|| classify_stream_error(choice.error.to_json().as_bytes()));
        }
    }

    fn on_delta(&mut self, delta: &Delta<'_>, account: &mut Account, sink: &mut Sink<'_>) {
        let reasoning = delta.reasoning();
        let content = delta.content();
        if !account.has_room_for(reasoning.len() + content.thinking.len() + content.text.len()) {
            return;
        }
        sink.push_reasoning(&reasoning);
        sink.push_reasoning(&content.thinking);
        self.push_text(&content.text, sink);
        let room = account.room();
        let mut on_call = |index: usize, name: &str| sink.push_call(index, name);
        let taken = self.assembler.on_tool_calls(&delta.tool_calls, room, &mut on_call).and_then(|size| {
            let room = room.saturating_sub(size);
            Ok(size + self.assembler.on_function_call(&delta.function_call, room, &mut on_call)?)
        });
        match taken {
            Ok(size) => {
                account.has_room_for(size);
            }
            Err(limit) => account.end_at(limit),
        }
    }

    fn push_text(&mut self, text: &str, sink: &mut Sink<'_>) {
        self.has_text |= !text.is_empty();
        sink.push_text(text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Reply;
    use super::super::{Api, End, StreamDecoder};
    use super::*;

    #[test]
    fn each_call_of_a_whole_message_is_one_whatever_it_lacks() {
        let body = br#"{"choices": [{"message": {"content": "", "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": "{\"n\": oops}"}},
            {"id": null, "function": {"name": "f", "arguments": "{\"n\": 2}"}}
        ]}, "finish_reason": "tool_calls"}]}"#;
        let mut decoder = StreamDecoder::new(Api::ChatCompletions, [String::from("f")]);
        let mut events = Vec::new();
        decoder.feed(body, &mut events);
        decoder.finish(End::Clean, &mut events);
        let Some(ChatEvent::Ended { reply: Reply { calls, .. } }) = events.pop() else { panic!() };
        let ids: Vec<Option<&str>> = calls.iter().map(|call| call.id.as_deref()).collect();
        assert_eq!(ids, [Some("a"), None], "{calls:?}");
    }
}
