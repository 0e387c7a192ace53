//! Chunks of a chat completion → text, reasoning, calls.
//!
//! In: the JSON of each chunk in order, or of a complete completion. Out: events, then the calls at the end.

use super::api_decoder::ApiDecoder;
use super::assemble::{Assembled, Assembler};
use super::chunk::{Choice, Chunk, Delta, decode_chunk};
use super::loose::Loose;
use super::opaque::OpaqueReader;
use super::reply_state::{ReplyContent, ReplyState};
use super::sink::Sink;
use super::text_chunk::TextChunk;
use crate::event::ChatEvent;
use crate::finish::FinishMeaning;
use crate::received::Opaque;

/// A completion that is being received.
#[derive(Debug)]
pub(super) struct Completion {
    assembler: Assembler,
    opaque: OpaqueReader,
    has_text: bool,
    /// Reasoning was received in the members that contain nothing else.
    has_reasoning: bool,
    /// The previous chunk, if it contained only text.
    text_chunk: Option<TextChunk>,
}

impl ApiDecoder for Completion {
    fn expected(&self) -> &[u8] {
        self.text_chunk.as_ref().map(|chunk| chunk.around.as_slice()).unwrap_or_default()
    }

    fn read(&mut self, data: &[u8], state: &mut ReplyState, sink: &mut Sink<'_>) -> serde_json::Result<()> {
        if let Some(chunk) = &self.text_chunk
            && let Some(text) = chunk.text_of(data)
        {
            let reasoning = chunk.reasoning;
            if state.reserve(text.len()) {
                if let Some(member) = reasoning {
                    self.opaque.push_text(member, text);
                    sink.push_reasoning(text);
                } else {
                    self.opaque.push_content_text(text);
                    self.push_text(text, sink);
                }
            }
            return Ok(());
        }
        self.text_chunk = None;
        let mut chunk = decode_chunk(data)?;
        let text_chunk = TextChunk::of(&chunk, data);
        self.on_chunk(&mut chunk, data, state, sink);
        self.text_chunk = text_chunk.filter(|_| !state.has_error() && !state.is_full());
        Ok(())
    }

    fn finish(self: Box<Self>, empty_is_complete: bool) -> (Assembled, Vec<String>, Option<Opaque>) {
        let (assembled, foreign) = self.assembler.finish(empty_is_complete);
        (assembled, foreign, self.opaque.finish())
    }
}

impl Completion {
    /// Creates the state for a reply to a request that offered `known_tools`.
    pub(super) fn new(known_tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            assembler: Assembler::new(known_tools),
            opaque: OpaqueReader::default(),
            has_text: false,
            has_reasoning: false,
            text_chunk: None,
        }
    }

    /// Takes one chunk. `data` is its JSON.
    fn on_chunk(&mut self, chunk: &mut Chunk<'_>, data: &[u8], state: &mut ReplyState, sink: &mut Sink<'_>) {
        if chunk.has_error() {
            state.set_server_error(data);
        }
        state.set_id(&chunk.id);
        state.set_model(&chunk.model);
        state.set_usage(&chunk.usage);
        if let Loose::Object(_) = chunk.prompt_progress {
            let count = |name| chunk.prompt_progress.get(name).and_then(Loose::as_count);
            if let (Some(processed), Some(total)) = (count("processed"), count("total")) {
                sink.push(ChatEvent::Progress { processed, total });
            }
        }
        for choice in chunk.choices.iter_mut().filter(|choice| choice.is_first()) {
            if !state.is_full() {
                self.on_choice(choice, state, sink);
            }
        }
    }

    fn on_choice(&mut self, choice: &mut Choice<'_>, state: &mut ReplyState, sink: &mut Sink<'_>) {
        // The last chunk may repeat the streamed content as a message.
        let is_new = !self.has_text && self.assembler.is_empty();
        state.set_usage(&choice.usage);
        state.note_content(if choice.message.is_some() {
            ReplyContent::Message
        } else {
            ReplyContent::Choice
        });
        if let Some(delta) = &mut choice.delta {
            self.on_delta(delta, state, sink);
        } else if let Some(message) = choice.message.as_mut().filter(|_| is_new) {
            self.assembler.has_whole_calls = true;
            self.on_delta(message, state, sink);
            self.assembler.has_whole_calls = false;
        } else if let Some(text) = choice.text.as_text()
            && state.reserve(text.len())
        {
            self.push_text(text, sink);
        }
        let native = choice.native_finish_reason.as_text();
        let failed = native.filter(|reason| state.meaning_of(reason) == Some(FinishMeaning::Failed));
        if let Some(reason) = failed.or(choice.finish_reason.as_text()) {
            state.finish_reason = Some(reason.to_owned());
        }
        if choice.has_error() {
            state.set_server_error(choice.error.to_json().as_bytes());
        }
    }

    fn on_delta(&mut self, delta: &mut Delta<'_>, state: &mut ReplyState, sink: &mut Sink<'_>) {
        let mut reasoning = delta.reasoning();
        self.has_reasoning |= !reasoning.is_empty();
        if !self.has_reasoning {
            reasoning = delta.reasoning_in_state().into();
        }
        let content = delta.content();
        if !state.reserve(reasoning.len() + content.thinking.len() + content.text.len()) {
            return;
        }
        sink.push_reasoning(&reasoning);
        sink.push_reasoning(&content.thinking);
        self.push_text(&content.text, sink);
        content.calls.iter().for_each(|kind| self.assembler.add_foreign(kind));
        self.opaque.push_member("reasoning_content", &delta.reasoning_content);
        self.opaque.push_member("reasoning", &delta.reasoning);
        for (name, value) in &delta.opaque {
            self.opaque.push_member(name, value);
        }
        self.opaque.push_content(&delta.content);
        let room = state.room();
        let mut on_call = |index: usize, name: &str, size: usize| sink.push_call(index, name, size);
        let tool_calls = std::mem::take(&mut delta.tool_calls);
        let function_call = std::mem::take(&mut delta.function_call);
        let opaque = &mut self.opaque;
        let taken = self.assembler.on_tool_calls(tool_calls, room, opaque, &mut on_call).and_then(|size| {
            let room = room.saturating_sub(size);
            Ok(size + self.assembler.on_function_call(function_call, room, &mut on_call)?)
        });
        match taken {
            Ok(size) => {
                state.reserve(size);
            }
            Err(limit) => state.stop_at_limit(limit),
        }
    }

    fn push_text(&mut self, text: &str, sink: &mut Sink<'_>) {
        self.has_text |= !text.is_empty();
        sink.push_text(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Reply;
    use crate::{Api, StreamDecoder, TransportEnd};

    #[test]
    fn each_call_of_a_complete_message_counts_even_without_id_or_valid_arguments() {
        let body = br#"{"choices": [{"message": {"content": "", "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": "{\"n\": oops}"}},
            {"id": null, "function": {"name": "f", "arguments": "{\"n\": 2}"}}
        ]}, "finish_reason": "tool_calls"}]}"#;
        let mut decoder = StreamDecoder::new(Api::ChatCompletions, [String::from("f")]);
        let mut events = Vec::new();
        decoder.feed(body, &mut events);
        decoder.finish(TransportEnd::Clean, &mut events);
        let Some(ChatEvent::Ended { reply: Reply { calls, .. } }) = events.pop() else { panic!() };
        let ids: Vec<Option<&str>> = calls.iter().map(|call| call.id.as_deref()).collect();
        assert_eq!(ids, [Some("a"), None], "{calls:?}");
    }

    /// Decodes random sequences of chunks with and without the shortcut for chunks that differ only in their text.
    #[test]
    fn a_chunk_is_read_the_same_after_any_other_chunk() {
        const SHAPES: [&str; 10] = [
            r#"{"model":"m","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"","reasoning_content":"TEXT"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a","content":"TEXT"}}]}"#,
            r#"{"choices":[{"delta":{"content":"TEXT","content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"TEXT","content":[{"type":"text","text":"b"}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"TEXT","tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"TEXT"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"TEXT"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"refusal":"TEXT"}}],"error":{"message":"TEXT"}}"#,
            r#"{"choices":[{"delta":{"content":"TEXT"}},{"delta":{"content":"TEXT"}}]}"#,
        ];
        const TEXTS: [&[u8]; 10] = [
            b"",
            b"word",
            b" two words",
            b"\\",
            b"\"",
            b"\n",
            b"\xFF",
            b"\\u00e9",
            "é".as_bytes(),
            b"\\ud83d",
        ];
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let mut readers = [false, true].map(|is_plain| {
                (is_plain, Completion::new([]), ReplyState::default(), Vec::new(), Vec::new())
            });
            let mut shape = "";
            for _ in 0..20 {
                if random.u8(..4) == 0 || shape.is_empty() {
                    shape = SHAPES[random.usize(..SHAPES.len())];
                }
                let (before, after) = shape.split_once("TEXT").unwrap();
                let text = TEXTS[random.usize(..TEXTS.len())];
                let data = [before.as_bytes(), text, after.as_bytes()].concat();
                for (is_plain, completion, state, events, log) in &mut readers {
                    if *is_plain {
                        completion.text_chunk = None;
                    }
                    let result = completion.read(&data, state, &mut Sink::new(events));
                    log.push(format!("{} {state:?}", result.is_ok()));
                }
            }
            let [one, other] = readers.map(|(_, completion, _, events, log)| {
                format!("{events:?}\n{log:?}\n{:?}", Box::new(completion).finish(true))
            });
            assert_eq!(one, other);
        }
    }
}
