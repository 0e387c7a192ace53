//! The changes to a body that a server rejected.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::optional::OptionalMember;

/// A change to a request body that the server rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFallback {
    /// Sends `max_tokens` as `max_completion_tokens`. Older recordings store one value for both directions. It is
    /// read as this variant, which was the more frequent one.
    #[serde(alias = "token_limit")]
    UseMaxCompletionTokens,
    /// Sends `max_completion_tokens` as `max_tokens`.
    UseMaxTokens,
    /// Offers only the tool that `tool_choice` names, with `required`.
    ToolAlone,
    /// Omits `tool_choice`.
    NoToolChoice,
    /// Sends the calls of one message as pairs of call and result.
    CallPairs,
    /// Merges all system messages into one at the start.
    SystemFirst,
    /// Moves all system messages into the first user message.
    SystemAsUser,
    /// Sends calls and results as text, so that only user and assistant messages alternate.
    PlainRoles,
    /// Sends an empty string in place of null, as the text of a message that only calls tools.
    EmptyContent,
    /// Uses the responses API.
    UseResponses,
    /// Adds an empty `reasoning_content` to messages with calls that lack it.
    EmptyReasoning,
    /// Adds the value that makes Gemini accept calls without a signature.
    NoSignatureCheck,
    /// Omits the parts that only their server can read, such as `reasoning_content`.
    NoState,
    /// Omits these parts in the replies so far. It applies to the request, and later replies are not affected.
    NoEarlierState,
    /// Does not request encrypted reasoning.
    NoEncryptedReasoning,
    /// Omits the ids of output items. The server stores no items, and looks them up all the same.
    NoItemIds,
    /// Replaces call ids other than nine letters and digits.
    PortableIds,
    /// Moves the text of messages with calls to the end of their turn.
    TextOrCalls,
    /// Omits the images and audio of results. Chat completions place them in a message of the user, and some servers
    /// reject such a message after results.
    NoResultImages,
    /// Omits images and audio.
    NoImages,
    /// Omits the images and audio since the last reply, one of which the server rejects. Later ones are sent.
    NoNewImages,
    /// Omits the images and audio of the messages so far. Later ones are sent.
    NoEarlierImages,
    /// Sends a type for each schema of a tool, and definitions under `$defs`.
    TypedSchemas,
    /// Omits a member without which the reply means the same. `cache_control`: also in messages and tools;
    /// `eager_input_streaming`: in tools.
    Without(OptionalMember),
}

impl BodyFallback {
    /// All body fallbacks, except those without an optional member.
    pub const OTHERS: [Self; 23] = [
        Self::UseMaxCompletionTokens,
        Self::UseMaxTokens,
        Self::ToolAlone,
        Self::NoToolChoice,
        Self::CallPairs,
        Self::SystemFirst,
        Self::SystemAsUser,
        Self::PlainRoles,
        Self::EmptyContent,
        Self::UseResponses,
        Self::EmptyReasoning,
        Self::NoSignatureCheck,
        Self::NoState,
        Self::NoEarlierState,
        Self::NoEncryptedReasoning,
        Self::NoItemIds,
        Self::PortableIds,
        Self::TextOrCalls,
        Self::NoResultImages,
        Self::NoImages,
        Self::NoNewImages,
        Self::NoEarlierImages,
        Self::TypedSchemas,
    ];

    /// Returns all body fallbacks.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OTHERS.into_iter().chain(OptionalMember::all().map(Self::Without))
    }

    /// Describes the new body, to complete "sent again …".
    pub fn describe(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Without(member) => return Cow::Owned(format!("without {}", member.name())),
            Self::UseMaxCompletionTokens => "with max_completion_tokens in place of max_tokens",
            Self::UseMaxTokens => "with max_tokens in place of max_completion_tokens",
            Self::ToolAlone => "with only the forced tool and `required`",
            Self::NoToolChoice => "without tool_choice",
            Self::CallPairs => "with pairs of call and result",
            Self::SystemFirst => "with one system message at the start",
            Self::SystemAsUser => "with the system messages in the first user message",
            Self::PlainRoles => "with calls and results as text",
            Self::EmptyContent => "with empty strings in place of null",
            Self::UseResponses => "to the responses API",
            Self::EmptyReasoning => "with an empty reasoning_content where none was received",
            Self::NoSignatureCheck => "with `skip_thought_signature_validator` for calls without a signature",
            Self::NoState => "without the reasoning of earlier replies",
            Self::NoEarlierState => "without the reasoning that the server cannot read",
            Self::NoEncryptedReasoning => "without the request for encrypted reasoning",
            Self::NoItemIds => "without the ids of output items",
            Self::PortableIds => "with call ids of nine letters and digits",
            Self::TextOrCalls => "with the text beside calls at the end of its turn",
            Self::NoResultImages => "without the images of results",
            Self::NoImages => "without images",
            Self::NoNewImages => "without the new images",
            Self::NoEarlierImages => "without the images so far",
            Self::TypedSchemas => "with a type for each schema of the tools",
        })
    }

    /// Describes the server's answer that triggers the fallback.
    pub fn cause(self) -> &'static str {
        match self {
            Self::UseMaxCompletionTokens => {
                "400 or 422 that names `max_tokens`, if it was sent and its value is not rejected"
            }
            Self::UseMaxTokens => {
                "400 or 422 that names `max_completion_tokens`, if it was sent and its value is not rejected"
            }
            Self::ToolAlone => "400 or 422 that names `tool_choice`, if it is an object; OpenRouter's 404",
            Self::NoToolChoice => "400 or 422 that names `tool_choice`, if it is a string or names no tool",
            Self::CallPairs => "a template that supports single tool calls only",
            Self::SystemFirst => {
                "a server or template that takes only one system message, or none after other messages"
            }
            Self::SystemAsUser => "a template without a system role",
            Self::PlainRoles => {
                "a server or template that rejects roles or the order of calls and results, if no other order helps"
            }
            Self::EmptyContent => "a server that rejects null as the text of a message",
            Self::UseResponses => "a model whose tools need the responses API",
            Self::EmptyReasoning => "400 that reports a missing `reasoning_content`",
            Self::NoSignatureCheck => "400 that reports a missing `thought_signature`",
            Self::NoState => "400 or 422 that rejects a member of an earlier reply as unknown",
            Self::NoEarlierState => {
                "400 that rejects reasoning of another key or model, such as `invalid_encrypted_content`"
            }
            Self::NoEncryptedReasoning => "400 that names `include`, or encrypted content as not supported",
            Self::NoItemIds => "400 or 404 that does not find an output item of an earlier reply",
            Self::PortableIds => "400 or 422 that rejects the form or length of a call id",
            Self::TextOrCalls => "a server that rejects messages with both text and calls",
            Self::NoResultImages => "a server that rejects a message of the user after results",
            Self::NoImages => "a server that reports that it takes no images",
            Self::NoNewImages => "413, or a server that rejects an image, such as a damaged one",
            Self::NoEarlierImages => "the same, if there are no new images, or if it rejects the rest",
            Self::TypedSchemas => "a server that refuses a schema without a type, or with `definitions`",
            Self::Without(_) => "400 or 422 that names it, if it was sent",
        }
    }

    /// Returns the fallback that omits an optional member.
    #[cfg(test)]
    pub(crate) fn without(name: &str) -> Self {
        Self::Without(OptionalMember::named(name).unwrap())
    }

    fn bit(self) -> u64 {
        let others = Self::OTHERS.len() as u32;
        match self {
            Self::Without(member) => 1 << (others + member.index()),
            other => 1 << Self::OTHERS.iter().take_while(|known| **known != other).count(),
        }
    }
}

/// A set of body fallbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<BodyFallback>", into = "Vec<BodyFallback>")]
pub struct BodyFallbacks(u64);

impl BodyFallbacks {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains `fallback`.
    pub fn has(self, fallback: BodyFallback) -> bool {
        self.0 & fallback.bit() != 0
    }

    /// Whether the optional member called `name` is omitted.
    pub(super) fn omits(self, name: &str) -> bool {
        OptionalMember::named(name).is_some_and(|member| self.has(BodyFallback::Without(member)))
    }

    /// Returns the set with `fallback` added.
    #[must_use]
    pub fn with(self, fallback: BodyFallback) -> Self {
        Self(self.0 | fallback.bit())
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl From<Vec<BodyFallback>> for BodyFallbacks {
    fn from(fallbacks: Vec<BodyFallback>) -> Self {
        fallbacks.into_iter().fold(Self::default(), Self::with)
    }
}

impl From<BodyFallbacks> for Vec<BodyFallback> {
    fn from(fallbacks: BodyFallbacks) -> Self {
        BodyFallback::all().filter(|fallback| fallbacks.has(*fallback)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_are_serialised_as_a_list() {
        let fallbacks =
            BodyFallbacks::default().with(BodyFallback::without("seed")).with(BodyFallback::NoImages);
        let text = serde_json::to_string(&fallbacks).unwrap();
        assert_eq!(text, r#"["no_images",{"without":"seed"}]"#);
        assert_eq!(serde_json::from_str::<BodyFallbacks>(&text).unwrap(), fallbacks);
        let old: BodyFallbacks = serde_json::from_str(r#"["token_limit"]"#).unwrap();
        assert_eq!(old, BodyFallbacks::default().with(BodyFallback::UseMaxCompletionTokens));
        let bits = BodyFallback::all().map(|fallback| BodyFallbacks::default().with(fallback).0);
        assert!(bits.enumerate().all(|(index, bits)| bits == 1 << index));
    }
}
