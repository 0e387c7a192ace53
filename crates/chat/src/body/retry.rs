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
    use BodyFallback::{CallPairs, EmptyContent, PlainRoles, SystemAsUser, SystemFirst, UseResponses};
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
        (&["must alternate"], &[SystemFirst, PlainRoles]),
        // Mistral's API.
        (&["unexpected role 'user'"], &[PlainRoles]),
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
        // Moonshot.
        (&["with role 'assistant' must not be empty"], &[EmptyContent, PlainRoles]),
    ]
};

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
    let changes_body = |fallback: &BodyFallback| {
        let fallbacks = form.fallbacks.with(*fallback);
        request.encode_body(BodyForm { fallbacks, ..form }) != sent
    };
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
        }
        if self.has("tools") && fallback == Fallback::On && refuses_tools(&self.message) {
            candidates.push(BodyFallback::NoTools);
        }
        // OpenRouter searches for a provider that supports every member of the request.
        let is_unrouted = status == 404 && self.message.contains("no endpoints found that support");
        if !matches!(status, 400 | 422) && !is_unrouted {
            return candidates;
        }
        if self.names("stream_options")
            || (self.has("stream_options") && self.message.contains("include_usage"))
        {
            candidates.push(BodyFallback::NoStreamOptions);
        }
        if error.kind != ServerErrorKind::ContextOverflow {
            candidates.extend(self.token_limit_fallback(applied));
        }
        if self.names("parallel_tool_calls") {
            candidates.push(BodyFallback::NoParallelToolCalls);
        }
        if self.names("return_progress") || self.names("cache_prompt") {
            candidates.push(BodyFallback::NoProgress);
        }
        if self.names("tool_choice") {
            let is_object = self.sent.get("tool_choice").is_some_and(Value::is_object);
            candidates.extend(is_object.then_some(BodyFallback::ToolAlone));
            candidates.push(BodyFallback::NoToolChoice);
        }
        candidates
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
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::{Message, MessageToolCall};
    use crate::{Api, classify_http_error};
    use serde_json::json;

    /// A request with everything that a server may reject: two calls in a message, a late system message, every
    /// parameter.
    fn request(params: &Value) -> ChatRequest {
        let user = |text: &str| Message::User { content: text.to_owned() };
        let system = |text: &str| Message::System { content: text.to_owned() };
        let calls = ["1", "2"].map(|id| MessageToolCall::new(id, "g", "{}"));
        let result = |id: &str| Message::Tool { tool_call_id: id.to_owned(), content: String::from("3") };
        let assistant = Message::Assistant { content: String::new(), tool_calls: calls.to_vec() };
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        ChatRequest {
            model: String::from("m"),
            messages: [system("a"), system("b"), user("c"), assistant, result("1"), result("2")]
                .map(Arc::new)
                .into(),
            tools: vec![tool("f"), tool("g")],
            params: params.as_object().cloned().unwrap(),
        }
    }

    fn rejection(status: u16, message: &str) -> ServerError {
        let body = if message.starts_with('{') {
            message.to_owned()
        } else {
            json!({"error": {"message": message}}).to_string()
        };
        classify_http_error(status, body.as_bytes())
    }

    fn named() -> Value {
        json!({"type": "function", "function": {"name": "f"}})
    }

    fn form_for(api: Api) -> BodyForm {
        BodyForm { api, ..BodyForm::default() }
    }

    #[test]
    fn a_rejection_is_recognised_by_the_member_it_names() {
        let sent = request(&json!({
            "tool_choice": named(), "max_tokens": 9, "parallel_tool_calls": true, "return_progress": true,
        }));
        let pairs = include_str!("../../tests/wire/llama-cpp-special/99_llama31_two_calls_one_message.json");
        let alternate =
            "Jinja Exception: After the optional system message, conversation roles must alternate";
        // The fallback for chat completions and the one for responses.
        let both = |fallback: BodyFallback| (Some(fallback), Some(fallback));
        let completions_only = |fallback: BodyFallback| (Some(fallback), None);
        let neither = (None, None);
        let cases = [
            (
                400,
                "Unrecognized request argument supplied: stream_options",
                completions_only(BodyFallback::NoStreamOptions),
            ),
            (401, "stream_options", neither),
            (500, "stream_options", neither),
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
                completions_only(BodyFallback::UseMaxCompletionTokens),
            ),
            // Rejected values: a different name might disable the limit.
            (400, "max_tokens is too large: 9. This model supports at most 8 completion tokens", neither),
            (400, "'max_tokens' or 'max_completion_tokens' is too large: 9.", neither),
            (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", neither),
            (
                400,
                "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens",
                neither,
            ),
            (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", neither),
            (400, "max_tokens must be an integer", neither),
            // A member that was not sent cannot be rejected.
            (422, "max_completion_tokens: Extra inputs are not permitted", neither),
            (400, "parallel_tool_calls is not supported", both(BodyFallback::NoParallelToolCalls)),
            (400, "unknown field `return_progress`", both(BodyFallback::NoProgress)),
            (
                400,
                "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
                both(BodyFallback::ToolAlone),
            ),
            (
                404,
                "No endpoints found that support the provided 'tool_choice' value.",
                both(BodyFallback::ToolAlone),
            ),
            (404, "no such model: tool_choice", neither),
            (400, pairs, both(BodyFallback::CallPairs)),
            (500, alternate, both(BodyFallback::SystemFirst)),
            (
                400,
                "Jinja Exception: System message must be at the beginning.",
                both(BodyFallback::SystemFirst),
            ),
            (400, "System role not supported", both(BodyFallback::SystemAsUser)),
            (400, "registry.ollama.ai/library/gemma:2b does not support tools", both(BodyFallback::NoTools)),
            (404, "No endpoints found that support tool use.", both(BodyFallback::NoTools)),
            (429, "System role not supported", neither),
            (400, "bad seed", neither),
        ];
        for (status, message, (completions, responses)) in cases {
            let error = rejection(status, message);
            for (api, expected) in [(Api::ChatCompletions, completions), (Api::Responses, responses)] {
                let mut form = form_for(api);
                let found = next_body_fallback(&sent, form, &error, Fallback::On);
                assert_eq!(found, expected, "{api:?}: {status} {message}");
                // Each fallback is applied once and no body is repeated.
                let mut bodies = vec![sent.encode_body(form)];
                while let Some(fallback) = next_body_fallback(&sent, form, &error, Fallback::On) {
                    form.fallbacks = form.fallbacks.with(fallback);
                    bodies.push(sent.encode_body(form));
                    assert!(!bodies[..bodies.len() - 1].contains(&bodies[bodies.len() - 1]), "{message}");
                }
                assert!(bodies.len() <= 3, "{message}");
            }
        }
        // Without the call convention in the prompt, the model could not call tools.
        let tools = rejection(400, "m does not support tools");
        assert_eq!(next_body_fallback(&sent, BodyForm::default(), &tools, Fallback::Auto), None);
    }

    #[test]
    fn a_rejected_tool_choice_is_simplified_step_by_step() {
        let error = rejection(400, "tool_choice must be a string");
        for (choice, expected) in [
            (json!("required"), vec![BodyFallback::NoToolChoice]),
            (named(), vec![BodyFallback::ToolAlone, BodyFallback::NoToolChoice]),
            // The choice names no tool that could be offered alone.
            (json!({"type": "auto"}), vec![BodyFallback::NoToolChoice]),
        ] {
            for api in [Api::ChatCompletions, Api::Responses] {
                let sent = request(&json!({"tool_choice": choice}));
                let mut form = form_for(api);
                let mut fallbacks = Vec::new();
                while let Some(fallback) = next_body_fallback(&sent, form, &error, Fallback::On) {
                    form.fallbacks = form.fallbacks.with(fallback);
                    fallbacks.push(fallback);
                }
                assert_eq!(fallbacks, expected, "{api:?}: {choice}");
                assert_eq!(sent.encode_body(form).get("tool_choice"), None);
            }
        }
    }

    #[test]
    fn the_token_limit_is_renamed_once_in_either_direction() {
        let error = rejection(400, "max_tokens? max_completion_tokens?");
        for (params, fallback) in [
            (json!({"max_tokens": 9}), BodyFallback::UseMaxCompletionTokens),
            (json!({"max_completion_tokens": 9}), BodyFallback::UseMaxTokens),
        ] {
            let sent = request(&params);
            assert_eq!(next_body_fallback(&sent, BodyForm::default(), &error, Fallback::On), Some(fallback));
            let form = BodyForm { fallbacks: BodyFallbacks::default().with(fallback), ..BodyForm::default() };
            assert_eq!(
                next_body_fallback(&sent, form, &error, Fallback::On),
                None,
                "renamed twice: {params}"
            );
        }
    }

    #[test]
    fn fallbacks_are_serialised_as_a_list() {
        let fallbacks =
            BodyFallbacks::default().with(BodyFallback::NoTools).with(BodyFallback::NoStreamOptions);
        let text = serde_json::to_string(&fallbacks).unwrap();
        assert_eq!(text, r#"["no_stream_options","no_tools"]"#);
        assert_eq!(serde_json::from_str::<BodyFallbacks>(&text).unwrap(), fallbacks);
        let old: BodyFallbacks = serde_json::from_str(r#"["token_limit"]"#).unwrap();
        assert_eq!(old, BodyFallbacks::default().with(BodyFallback::UseMaxCompletionTokens));
        assert!(
            BodyFallback::ALL.into_iter().enumerate().all(|(index, fallback)| fallback as usize == index)
        );
    }
}
