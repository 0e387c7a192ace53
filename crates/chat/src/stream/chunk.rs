//! One chunk of a streamed chat completion, or a complete completion, parsed leniently.
//!
//! In: the bytes of one JSON object. Out: a [`Chunk`] that borrows from them. A field that is missing, null or of an
//! unexpected type does not make the chunk invalid: known fields are read through [`Loose`], unknown fields are
//! skipped. A typical chunk (a piece of text) allocates only the list for its choice.
//!
//! Source: the `OpenAI` chat completions API (`chat.completion.chunk`), and the behaviour of real servers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::loose::Loose;
use super::loose_object::{Fill, LooseObject, decode_object, skip_scalars};
use crate::received::is_opaque_name;

/// A chunk.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// The `error` member, of any type.
    pub(super) error: Loose<'a>,
    /// `object: "error"` (old vLLM), `type: "error"` (Anthropic, the Responses API) or a `base_resp` with a status
    /// (MiniMax): the chunk itself is the error.
    pub(super) is_error_object: bool,
    /// The members that make a chunk without choices an error.
    bare_error: BareError,
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) usage: Loose<'a>,
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) prompt_progress: Loose<'a>,
}

/// What an object that may be only an error contains, such as `{"code": "Throttling", "message": "wait"}`.
#[derive(Debug, Clone, Copy, Default)]
struct BareError {
    /// The text of an error.
    has_message: bool,
    /// A member that only errors have.
    has_code: bool,
    /// A member that errors do not have.
    has_other: bool,
}

/// One choice of a chunk.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Loose<'a>,
    pub(super) delta: Option<Delta<'a>>,
    /// Replaces the delta in an answer that is not streamed.
    pub(super) message: Option<Box<Delta<'a>>>,
    /// Replaces the delta on servers that answer like the legacy completions API.
    pub(super) text: Loose<'a>,
    pub(super) finish_reason: Loose<'a>,
    /// The reason of the upstream server. `OpenRouter` sends it, with `stop` for unknown ones.
    pub(super) native_finish_reason: Loose<'a>,
    /// Token counts. Moonshot sends them here.
    pub(super) usage: Loose<'a>,
    pub(super) error: Loose<'a>,
}

/// The content that a chunk adds to the reply.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Loose<'a>,
    pub(super) reasoning_content: Loose<'a>,
    pub(super) reasoning: Loose<'a>,
    pub(super) refusal: Loose<'a>,
    pub(super) tool_calls: Loose<'a>,
    pub(super) function_call: Loose<'a>,
    /// The other members that only the server can read.
    pub(super) opaque: Vec<(String, Loose<'a>)>,
}

/// Parses one chunk.
///
/// # Errors
/// The bytes are not one JSON value.
pub(super) fn decode_chunk(data: &[u8]) -> serde_json::Result<Chunk<'_>> {
    decode_object(data)
}

/// Text and reasoning of a `content` field: a string, or a list of text and thinking parts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) thinking: Cow<'a, str>,
    /// The types of the parts that are calls, which are not read.
    pub(super) calls: Vec<&'a str>,
}

impl Chunk<'_> {
    /// Whether `error` is set. Gateways send `null`, `""`, `false`, `0`, `{}` or an object of these with successful replies.
    pub(super) fn has_error(&self) -> bool {
        let BareError { has_message, has_code, has_other } = self.bare_error;
        let is_bare_error = has_message && (has_code || !has_other) && self.choices.is_empty();
        self.is_error_object || is_error(&self.error) || is_bare_error
    }
}

impl BareError {
    /// Takes a type or a status: `server_error`, 429. Other values, such as `ping`, are not about errors.
    fn note_code(&mut self, value: &Loose<'_>) {
        let is_code = match value {
            Loose::String(text) => text.contains("error"),
            _ => value.as_count().is_some_and(|status| status >= 400),
        };
        self.has_code |= is_code;
        self.has_other |= !is_code && *value != Loose::Null;
    }
}

impl Choice<'_> {
    /// Whether it is the first choice. Other choices are not requested and not read.
    pub(super) fn is_first(&self) -> bool {
        self.index.as_count().is_none_or(|index| index == 0)
    }

    /// Whether the choice's own `error` is set.
    pub(super) fn has_error(&self) -> bool {
        is_error(&self.error)
    }
}

impl Delta<'_> {
    /// Returns the text and the thinking of the content.
    pub(super) fn content(&self) -> Content<'_> {
        let mut content = read_content(&self.content);
        if content.text.is_empty()
            && let Some(refusal) = self.refusal.as_text()
        {
            content.text = Cow::Borrowed(refusal);
        }
        content
    }

    /// Returns the reasoning of one of the two fields. Servers that use both names send the same text twice.
    pub(super) fn reasoning(&self) -> Cow<'_, str> {
        let first = read_content(&self.reasoning_content);
        let found = if first == Content::default() { read_content(&self.reasoning) } else { first };
        if found.thinking.is_empty() { found.text } else { found.thinking }
    }

    /// Returns the readable reasoning in other members. It may repeat that of [`Delta::reasoning`].
    pub(super) fn reasoning_in_state(&self) -> String {
        let readable = self.opaque.iter().filter(|(name, _)| READABLE.contains(&name.as_str()));
        let mut texts = readable.map(|(_, value)| read_content(value)).map(|read| read.text + read.thinking);
        texts.find(|text| !text.is_empty()).unwrap_or_default().into_owned()
    }
}

/// The members of state with readable reasoning: `GitHub` Copilot; `OpenRouter` and `MiniMax`; `LiteLLM`; gateways.
const READABLE: [&str; 4] = ["reasoning_text", "reasoning_details", "thinking_blocks", "thinking"];

/// Joins text parts, and separately thinking parts.
fn read_content<'a>(content: &'a Loose<'_>) -> Content<'a> {
    let mut read = Content::default();
    match content {
        Loose::String(text) => read.text = Cow::Borrowed(text),
        Loose::Number(number) => read.text = Cow::Owned(number.to_string()),
        Loose::Array(parts) => {
            for part in parts {
                add_part(part, &mut read);
            }
        }
        Loose::Object(_) => add_part(content, &mut read),
        Loose::Null | Loose::Bool(_) => {}
    }
    read
}

/// Adds one part: a string, `{"type": "text", "text": …}` or `{"type": "thinking", "thinking": [parts]}`.
fn add_part<'a>(part: &'a Loose<'_>, read: &mut Content<'a>) {
    if let Loose::String(text) = part {
        read.text.to_mut().push_str(text);
        return;
    }
    let kind = part.get("type").and_then(Loose::as_text);
    let thinks = kind.is_some_and(|kind| matches!(kind, "thinking" | "reasoning"));
    read.calls.extend(kind.filter(|kind| matches!(*kind, "tool_use" | "tool_call" | "function_call")));
    let inner =
        ["text", "thinking", "reasoning", "content", "summary"].iter().find_map(|name| part.get(name));
    let Some(inner) = inner else { return };
    let inner = read_content(inner);
    if thinks {
        read.thinking.to_mut().push_str(&inner.text);
    } else {
        read.text.to_mut().push_str(&inner.text);
    }
    read.thinking.to_mut().push_str(&inner.thinking);
}

/// Whether an `error` field is set.
pub(super) fn is_error(error: &Loose<'_>) -> bool {
    match error {
        Loose::Null => false,
        Loose::Bool(value) => *value,
        Loose::Number(_) => error.as_count() != Some(0),
        Loose::String(text) => !text.is_empty(),
        Loose::Array(items) => items.iter().any(is_error),
        Loose::Object(_) => error.members().any(|(_, value)| is_error(value)),
    }
}

/// Whether a code reports success. Some servers send one with every chunk.
fn is_success(code: &Loose<'_>) -> bool {
    code.as_count().is_some_and(|code| code == 0 || (200..300).contains(&code))
        || code
            .as_text()
            .is_some_and(|code| ["success", "ok"].iter().any(|name| code.eq_ignore_ascii_case(name)))
}

impl<'de> LooseObject<'de> for Chunk<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "choices" => map.next_value_seed(FillChoices(&mut self.choices))?,
            "error" => self.error = map.next_value()?,
            "object" | "type" => {
                let kind = map.next_value::<Loose<'de>>()?;
                self.is_error_object |= kind.as_text() == Some("error");
                self.bare_error.note_code(&kind);
            }
            "base_resp" => {
                let status = map.next_value::<Loose<'de>>()?.get("status_code").and_then(Loose::as_count);
                self.is_error_object |= status.is_some_and(|status| status != 0);
            }
            // A chunk may contain an empty usage, which does not reset earlier counts.
            "usage" => self.usage = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "prompt_progress" => self.prompt_progress = map.next_value()?,
            "message" | "msg" | "detail" => {
                let text = map.next_value::<Loose<'de>>()?;
                self.bare_error.has_message |=
                    matches!(text, Loose::String(_) | Loose::Array(_)) && is_error(&text);
            }
            "code" | "error_code" => {
                let code = map.next_value::<Loose<'de>>()?;
                let is_success = is_success(&code);
                self.bare_error.has_code |= !is_success && is_error(&code);
                self.bare_error.has_other |= is_success;
            }
            "status" | "statusCode" | "status_code" => self.bare_error.note_code(&map.next_value()?),
            "param" | "request_id" | "requestId" => return Ok(false),
            _ => {
                self.bare_error.has_other = true;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<'de> LooseObject<'de> for Choice<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "index" => self.index = map.next_value()?,
            "delta" => {
                if !map.next_value_seed(Fill(self.delta.insert(Delta::default())))? {
                    self.delta = None;
                }
            }
            "message" => {
                let mut message = Box::default();
                self.message = map.next_value_seed(Fill(&mut *message))?.then_some(message);
            }
            "text" => self.text = map.next_value()?,
            "finish_reason" => self.finish_reason = map.next_value()?,
            "native_finish_reason" => self.native_finish_reason = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> LooseObject<'de> for Delta<'de> {
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "content" => self.content = map.next_value()?,
            "reasoning_content" => self.reasoning_content = map.next_value()?,
            "reasoning" => self.reasoning = map.next_value()?,
            "refusal" => self.refusal = map.next_value()?,
            "tool_calls" => self.tool_calls = map.next_value()?,
            "function_call" => self.function_call = map.next_value()?,
            name if is_opaque_name(name) => self.opaque.push((name.to_owned(), map.next_value()?)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Fills the choices from a list, or from one object that represents a list of one.
struct FillChoices<'r, 'a>(&'r mut Vec<Choice<'a>>);

impl<'de> DeserializeSeed<'de> for FillChoices<'_, 'de> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FillChoices<'_, 'de> {
    type Value = ();

    skip_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut choice = Choice::default();
        while let Some(is_object) = seq.next_element_seed(Fill(&mut choice))? {
            if is_object {
                self.0.push(std::mem::take(&mut choice));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let mut choice = Choice::default();
        Fill(&mut choice).visit_map(map)?;
        self.0.push(choice);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_calls_are_named() {
        let data = br#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f"}]}}]}"#;
        let chunk = decode_chunk(data).unwrap();
        let content = chunk.choices[0].delta.as_ref().unwrap().content();
        assert_eq!((content.text.as_ref(), content.calls), ("a", vec!["tool_use"]));
    }

    fn content_of(json: &str) -> (String, String) {
        let data = format!(r#"{{"choices":[{{"delta":{{"content":{json}}}}}]}}"#);
        let chunk = decode_chunk(data.as_bytes()).unwrap();
        let content = chunk.choices[0].delta.as_ref().unwrap().content();
        (content.text.into_owned(), content.thinking.into_owned())
    }

    #[test]
    fn content_in_any_form_is_parsed() {
        for (json, text, thinking) in [
            ("null", "", ""),
            (r#""a\n""#, "a\n", ""),
            ("5", "5", ""),
            ("true", "", ""),
            (r#"["a", {"type":"text","text":"b"}, null, {"type":"image_url"}]"#, "ab", ""),
            (r#"{"type":"text","text":"a"}"#, "a", ""),
            (
                r#"[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]"#,
                "a",
                "t",
            ),
            (r#"[{"type":"thinking","thinking":"t"}]"#, "", "t"),
        ] {
            assert_eq!(content_of(json), (text.to_owned(), thinking.to_owned()), "{json}");
        }
    }

    #[test]
    fn reasoning_is_read_from_one_of_two_fields() {
        for (json, expected) in [
            (r#"{"reasoning_content":"a","reasoning":"a"}"#, "a"),
            (r#"{"reasoning_content":"","reasoning":"b"}"#, "b"),
            (r#"{"reasoning_content":null,"reasoning":[{"type":"thinking","thinking":"c"}]}"#, "c"),
            ("{}", ""),
        ] {
            let data = format!(r#"{{"choices":[{{"delta":{json}}}]}}"#);
            let chunk = decode_chunk(data.as_bytes()).unwrap();
            assert_eq!(chunk.choices[0].delta.as_ref().unwrap().reasoning(), expected, "{json}");
        }
    }

    #[test]
    fn unexpected_types_never_invalidate_the_chunk() {
        for value in ["null", "true", "0", "-1", "1.5", "\"x\"", "[]", "{}", "[[1]]", "{\"a\":[{}]}"] {
            for field in ["id", "error_", "usage", "model", "prompt_progress", "timings", "object", "created"]
            {
                let data =
                    format!(r#"{{"{field}":{value},"choices":[{{"index":0,"delta":{{"content":"a"}}}}]}}"#);
                let chunk = decode_chunk(data.as_bytes()).unwrap();
                assert_eq!(chunk.choices[0].delta.as_ref().unwrap().content().text, "a", "{data}");
            }
            for field in ["index_", "logprobs", "native_finish_reason", "message", "text", "error"] {
                let data = format!(
                    r#"{{"choices":[{{"{field}":{value},"delta":{{"content":"a","role":{value}}}}}]}}"#
                );
                let chunk = decode_chunk(data.as_bytes()).unwrap();
                assert_eq!(chunk.choices[0].delta.as_ref().unwrap().content().text, "a", "{data}");
            }
            for whole in
                [value.to_owned(), format!(r#"{{"choices":{value}}}"#), format!(r#"{{"choices":[{value}]}}"#)]
            {
                assert!(decode_chunk(whole.as_bytes()).is_ok(), "{whole}");
            }
        }
    }
}
