//! Request variants for servers that reject the first body.
//!
//! In: the request, the form in which it was sent, and the server's error. Out: the next [`BodyFallback`] to apply, if
//! any. Each fallback is applied at most once, because it stays active for later attempts. A fallback that does not
//! change the body is skipped. Therefore the number of attempts is bounded and the same body is never sent twice.
//!
//! A rejection is recognised by the member that the server's message names, or by its wording: `LAYOUT_REJECTIONS` lists
//! the wordings. Prompts cannot trigger a fallback: only the server's message is searched, and only for members that
//! were sent.

use deftool_lang::spec::Fallback;
use serde_json::Value;

use super::encode::Body;
use super::model::{BodyFallback, BodyFallbacks, BodyForm, ChatRequest};
use super::optional::OptionalMember;
use super::params::TOKEN_LIMITS;
use crate::event::{ServerError, ServerErrorKind};

/// Phrases that reject a value, not a name. A different name would not help, and an unknown name would disable the
/// limit.
const VALUE_REJECTIONS: [&str; 18] = [
    "too large",
    "too small",
    "at least",
    "at most",
    "less than",
    "greater than",
    "larger than",
    "must be positive",
    "must be between",
    "valid range",
    "out of range",
    "exceed",
    "maximum",
    "integer",
    " > ",
    " >= ",
    " < ",
    " <= ",
];

/// Phrases about the state of earlier replies and the ids of calls, and what helps. One alternative of each text must
/// occur. Sources: messages of `DeepSeek`, Kimi, Gemini, Groq, Cerebras, Mistral, `OpenAI`, Anthropic and llama.cpp in
/// reports of 2026.
const STATE_REJECTIONS: [(&[&str], BodyFallback); 16] = [
    (&["reasoning_content", "missing|must be passed back|required"], BodyFallback::EmptyReasoning),
    (&["thought_signature", "missing"], BodyFallback::NoSignatureCheck),
    (&["encrypted", "not supported|unsupported|invalid value"], BodyFallback::NoEncryptedReasoning),
    (&["include", UNKNOWN_MEMBER], BodyFallback::NoEncryptedReasoning),
    (&["reasoning|thinking|thought|extra_content|provider_specific", UNKNOWN_MEMBER], BodyFallback::NoState),
    (
        &["encrypted", "could not be verified|could not be decrypted|invalid_encrypted_content"],
        BodyFallback::NoEarlierState,
    ),
    // Azure; an item with encrypted content is complete without its id.
    (&["item with id", "not found"], BodyFallback::NoItemIds),
    (&["item ", "without its required|not found|cannot determine type"], BodyFallback::NoEarlierState),
    (&["item['", "is not an array|cannot determine type"], BodyFallback::NoEarlierState),
    (&["summary", "missing required"], BodyFallback::NoEarlierState),
    (&["signature", "invalid `signature`|invalid signature"], BodyFallback::NoEarlierState),
    (&["thinking", "cannot be modified"], BodyFallback::NoEarlierState),
    (&["final block in an assistant message cannot be", "thinking"], BodyFallback::NoEarlierState),
    (&["signature", "field required"], BodyFallback::NoEarlierState),
    (
        &["tool call id|tool_call|tool_use", "must be a-z|alphanumeric|match pattern"],
        BodyFallback::PortableIds,
    ),
    (&["call_id|tool_call", "string_above_max_length|string too long"], BodyFallback::PortableIds),
];

/// Phrases for a member that a server does not know.
const UNKNOWN_MEMBER: &str = "is unsupported|unsupported property|extra_forbidden|extra inputs|not permitted|unrecognized|\
                              unknown|unexpected|not allowed";

/// Phrases that report a model without tool support.
const NO_TOOLS: [&str; 12] = [
    "does not support tool",
    "doesn't support tool",
    "not support tools",
    "support tool use",
    "tool use is not supported",
    "tool calling is not supported",
    "tools are not supported",
    "tool calls are not supported",
    "does not support function",
    "function calling is not",
    "tools param requires --jinja",
    "--enable-auto-tool-choice",
];

/// Phrases that reject the API, or the layout of the messages: the message of a server, or of a chat template, which
/// llama.cpp and vLLM pass on. The first row with a phrase of the server's message applies. Of its fallbacks, the first
/// that changes the body is applied; the next one follows if the server rejects that body for the same reason.
const LAYOUT_REJECTIONS: &[(&[&str], &[BodyFallback])] = {
    use BodyFallback::{
        CallPairs, EmptyContent, NoEarlierState, NoResultImages, PlainRoles, SystemAsUser, SystemFirst,
        TextOrCalls, UseResponses,
    };
    &[
        // OpenAI: models from gpt-5.4; pro and codex models. litellm#34569, 2026-07.
        (
            &["function tools with reasoning_effort are not supported", "only supported in v1/responses"],
            &[UseResponses],
        ),
        // Llama 3.
        (&["single tool-call", "only supports single tool call"], &[CallPairs]),
        // Gemma 2; Granite 20B.
        (
            &[
                "system role not supported",
                "system role is not supported",
                "does not support system",
                "unexpected combination of role and message content",
            ],
            &[SystemAsUser],
        ),
        // Qwen 3.5; Mistral's API, code 3230 (hermes-agent#20154, 2026-05); MiniMax (openclaw#19386, 2026-02).
        (
            &[
                "system message must be",
                "system messages must be",
                "only one system message",
                "unexpected role 'system'",
                "but got system",
                "invalid chat setting",
            ],
            &[SystemFirst],
        ),
        // Ministral 3; Spark 2.5; FireFunction 2.
        (&["got system", "role: system", "invalid role system"], &[SystemFirst, SystemAsUser]),
        // Gemma 3, Devstral.
        (&["must alternate"], &[SystemFirst, NoResultImages, PlainRoles]),
        // Mistral's API.
        (&["unexpected role 'user'"], &[NoResultImages, PlainRoles]),
        // Mistral, InternLM 2; Apertus; Qwen 3; Spark 2.5; GLM, code 1214.
        (
            &[
                "roles are supported",
                "invalid message role",
                "unexpected message role",
                "unsupported message role",
                "incorrect role information",
            ],
            &[SystemFirst, PlainRoles, SystemAsUser],
        ),
        // OpenAI; Ollama; LM Studio.
        (
            &[
                "expected a string, got null",
                "invalid message content type: <nil>",
                "'content' field must be a string or an array",
            ],
            &[EmptyContent],
        ),
        // OpenAI, DeepSeek, Kimi; Gemini; MiniMax.
        (
            &[
                "must be followed by tool messages",
                "number of function response parts",
                "function call turn comes immediately after",
                "tool call result does not follow tool call",
            ],
            &[CallPairs, PlainRoles],
        ),
        // Mistral's tokenizers up to v3.
        (
            &["either content or tool_calls", "tool calls and content defined in the same assistant message"],
            &[TextOrCalls],
        ),
        // Moonshot.
        (&["with role 'assistant' must not be empty"], &[EmptyContent, PlainRoles]),
        // Anthropic: a thought is missing before a call. As text, the call needs none.
        (&["must start with a thinking block"], &[NoEarlierState, PlainRoles]),
        // Anthropic: a call without its result, and the reverse.
        (&["ids were found without", "block must have a corresponding"], &[CallPairs, PlainRoles]),
    ]
};

/// Phrases for all images and audio: `OpenAI` (vllm#11629), `DeepSeek` (vercel/ai#9179), `OpenRouter` (nexu-io/nexu#733),
/// Ollama (ollama/ollama#17301), LM Studio (lmstudio-bug-tracker#473), Groq, which wants a string; llama.cpp asks for the
/// `mmproj` of the model, and vLLM reports that the model is not multimodal.
const NO_IMAGES: [&str; 14] = [
    "only supported by certain models",
    "unknown variant `image_url`",
    "unknown variant `input_audio`",
    "support image input",
    "image input is not supported",
    "required for image input",
    "not support images",
    "not support vision",
    "not support audio",
    "mmproj",
    "not a multimodal model",
    "at most 0 image",
    "at most 0 audio",
    "content must be a string",
];

/// Words about images and audio. A message without a phrase of [`NO_IMAGES`] is about one of those that were sent:
/// Anthropic names the image that is too large, and all servers reject a damaged one.
const IMAGE_WORDS: [&str; 5] = ["image", "audio", "vision", "multimodal", "multi-modal"];

/// The status of a request that is too large.
const TOO_LARGE: u16 = 413;

/// Whether a server's message reports a model without tool support.
pub fn refuses_tools(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    NO_TOOLS.iter().any(|phrase| message.contains(phrase))
}

/// Returns the next change to `request`, which was sent in `form` and rejected with `error`. Returns `None` if no known
/// change may help. Tools are omitted only if calls are also read from unmarked text.
pub fn next_body_fallback(
    request: &ChatRequest,
    form: BodyForm,
    error: &ServerError,
    fallback: Fallback,
) -> Option<BodyFallback> {
    let sent = request.encode_body(form);
    let rejection = Rejection { sent: &sent, message: error.message.to_ascii_lowercase() };
    let changes_body = |fallback: &BodyFallback| request.encode_body(form.after(*fallback, request)) != sent;
    rejection.candidates(form.fallbacks, error, fallback).into_iter().find(changes_body)
}

/// A rejected request and the server's message.
struct Rejection<'a> {
    sent: &'a Body,
    /// The message in lower case.
    message: String,
}

impl Rejection<'_> {
    fn has(&self, member: &str) -> bool {
        self.sent.get(member).is_some()
    }

    fn names(&self, member: &str) -> bool {
        self.has(member) && self.message.contains(member)
    }

    /// Returns the fallbacks that may help, the most likely first.
    fn candidates(
        &self,
        applied: BodyFallbacks,
        error: &ServerError,
        fallback: Fallback,
    ) -> Vec<BodyFallback> {
        let status = error.code.unwrap_or_default();
        let mut candidates = Vec::new();
        // These messages are specific enough; older llama.cpp versions send those of chat templates with status 500.
        if (400..=599).contains(&status) && !matches!(status, 401 | 403 | 408 | 409 | 429 | 503) {
            candidates.extend(self.layout_fallbacks());
            candidates.extend_from_slice(self.image_fallbacks(status));
        }
        if self.has("tools") && fallback == Fallback::On && refuses_tools(&self.message) {
            candidates.push(BodyFallback::NoTools);
        }
        // A missing item has the status 400 or 404 (openai-agents-js#546, 2025-09).
        if matches!(status, 400 | 422) || (status == 404 && self.message.contains("item with id")) {
            candidates.extend(self.state_fallbacks());
        }
        // OpenRouter searches for a provider that supports every member of the request.
        let is_unrouted = status == 404 && self.message.contains("no endpoints found that support");
        if !matches!(status, 400 | 422) && !is_unrouted {
            return candidates;
        }
        if error.kind != ServerErrorKind::ContextOverflow {
            candidates.extend(self.token_limit_fallback(applied));
        }
        let named = OptionalMember::all().filter(|member| member.is_named_in(&self.message));
        candidates.extend(named.map(BodyFallback::Without));
        if self.names("tool_choice") {
            let is_object = self.sent.get("tool_choice").is_some_and(Value::is_object);
            candidates.extend(is_object.then_some(BodyFallback::ToolAlone));
            candidates.push(BodyFallback::NoToolChoice);
        }
        candidates
    }

    /// Returns the fallbacks for a message about the state of earlier replies or their ids. One that does not change the
    /// body is skipped.
    fn state_fallbacks(&self) -> impl Iterator<Item = BodyFallback> {
        STATE_REJECTIONS
            .iter()
            .filter(|(all, _)| {
                all.iter().all(|words| words.split('|').any(|word| self.message.contains(word)))
            })
            .map(|(_, fallback)| *fallback)
    }

    /// Returns the fallbacks for a message about images. Only what is said about all images applies to later ones.
    fn image_fallbacks(&self, status: u16) -> &'static [BodyFallback] {
        let names = |phrases: &[&str]| phrases.iter().any(|phrase| self.message.contains(phrase));
        if names(&NO_IMAGES) {
            &[BodyFallback::NoImages]
        } else if status == TOO_LARGE || names(&IMAGE_WORDS) {
            &[BodyFallback::NoNewImages, BodyFallback::NoEarlierImages]
        } else {
            &[]
        }
    }

    /// Returns the fallback that renames the token limit, unless the limit was renamed before.
    fn token_limit_fallback(&self, applied: BodyFallbacks) -> Option<BodyFallback> {
        let [old, new] = TOKEN_LIMITS;
        let fallbacks = [(old, BodyFallback::UseMaxCompletionTokens), (new, BodyFallback::UseMaxTokens)];
        if fallbacks.iter().any(|(_, fallback)| applied.has(*fallback)) {
            return None;
        }
        let rejects_value = VALUE_REJECTIONS.iter().any(|phrase| self.message.contains(phrase));
        let names_other = TOKEN_LIMITS.iter().all(|name| self.message.contains(name))
            && ["instead", "unsupported", "not supported"].iter().any(|word| self.message.contains(word));
        let (_, fallback) = fallbacks.into_iter().find(|(name, _)| self.names(name))?;
        (!rejects_value || names_other).then_some(fallback)
    }

    /// Returns the fallbacks for the layout that the server's message rejects.
    fn layout_fallbacks(&self) -> impl Iterator<Item = BodyFallback> {
        let is_named = |(phrases, _): &&(&[&str], &[BodyFallback])| {
            phrases.iter().any(|phrase| self.message.contains(phrase))
        };
        LAYOUT_REJECTIONS
            .iter()
            .find(is_named)
            .into_iter()
            .flat_map(|(_, fallbacks)| fallbacks.iter().copied())
    }
}

#[cfg(test)]
mod tests;
