//! Chunks that differ only in one piece of text.
//!
//! In a stream, one chunk after the other has the same bytes except for its text. A chunk that matches the previous one
//! in this way is not parsed: its text is the bytes in between. All other chunks are parsed.

use super::chunk::{Chunk, Delta};
use super::loose::Loose;

/// The bytes around the text of the previous chunk.
#[derive(Debug)]
pub(super) struct TextChunk {
    /// The bytes up to and including the quote before the text, then those from the quote after the text.
    pub(super) around: Vec<u8>,
    /// Position of the text.
    text_start: usize,
    /// The member that contains the text, if it is reasoning.
    pub(super) reasoning: Option<&'static str>,
}

impl TextChunk {
    /// Returns the pattern of a chunk that adds one piece of text to the reply and changes nothing else if it is
    /// repeated. `data` is its JSON.
    pub(super) fn of(chunk: &Chunk<'_>, data: &[u8]) -> Option<Self> {
        let [choice] = chunk.choices.as_slice() else { return None };
        let delta = choice.delta.as_ref()?;
        let is_plain = chunk.prompt_progress == Loose::Null
            && choice.is_first()
            && choice.message.is_none()
            && choice.finish_reason == Loose::Null
            && delta.tool_calls == Loose::Null
            && delta.function_call == Loose::Null
            && delta.opaque.is_empty();
        let (text, reasoning) = only_text(delta).filter(|_| is_plain)?;
        // The text is a part of `data`, unless it contains escapes.
        let start = text.as_ptr().addr().checked_sub(data.as_ptr().addr())?;
        let (before, rest) = data.split_at_checked(start)?;
        let after = rest.strip_prefix(text.as_bytes())?;
        (before.ends_with(b"\"") && after.starts_with(b"\"")).then(|| Self {
            around: [before, after].concat(),
            text_start: start,
            reasoning,
        })
    }

    /// Returns the text of the chunk `data`, if it differs from the previous chunk only in its text.
    pub(super) fn text_of<'a>(&self, data: &'a [u8]) -> Option<&'a str> {
        let (before, after) = self.around.split_at_checked(self.text_start)?;
        let text = data.strip_prefix(before)?.strip_suffix(after)?;
        let is_literal = text.iter().all(|&byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        str::from_utf8(text).ok().filter(|_| is_literal)
    }
}

/// Returns the text of a delta that contains one string and nothing else, and the member that contains reasoning.
fn only_text<'d>(delta: &'d Delta<'_>) -> Option<(&'d str, Option<&'static str>)> {
    let Delta { content, reasoning_content, reasoning, refusal, .. } = delta;
    let fields = [
        (content, None),
        (refusal, None),
        (reasoning_content, Some("reasoning_content")),
        (reasoning, Some("reasoning")),
    ];
    let mut filled = fields.into_iter().filter(|(field, _)| !field.is_blank());
    match (filled.next()?, filled.next()) {
        ((Loose::String(text), reasoning), None) => Some((text, reasoning)),
        _ => None,
    }
}
