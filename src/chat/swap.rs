//! Other forms of a request, for servers that refuse the first.
//!
//! In: the form that was sent, the body that came of it, and what the server said. Out: one [`Swap`], or none. Each
//! is made at most once, since it stays in the form from then on: a request is sent at most once more for each of
//! them.
//!
//! A refusal is known by what it names. What people write into their prompts cannot be taken for one: only the
//! server's message is looked at, and only a member that was sent can have been refused.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::ServerError;
use super::request_body::BodyForm;
use crate::spec::Fallback;

/// One way to write a request otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Swap {
    /// Without `stream_options`.
    NoStreamOptions,
    /// `max_tokens` as `max_completion_tokens`, or the other way round.
    TokenLimit,
    /// Without `parallel_tool_calls`.
    NoParallelToolCalls,
    /// Without `cache_prompt` and `return_progress`.
    NoProgress,
    /// The tool that `tool_choice` names alone, and `required`.
    ToolAlone,
    /// Without `tool_choice`.
    NoToolChoice,
    /// Calls of one message as pairs of call and result.
    CallPairs,
    /// All system messages as one, at the head.
    SystemFirst,
    /// All system messages in the first user message.
    SystemAsUser,
    /// Calls and results as text, so that only users and assistants speak, in turn.
    PlainRoles,
    /// Without tools: they are told in the text.
    NoTools,
}

impl Swap {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::NoStreamOptions,
        Self::TokenLimit,
        Self::NoParallelToolCalls,
        Self::NoProgress,
        Self::ToolAlone,
        Self::NoToolChoice,
        Self::CallPairs,
        Self::SystemFirst,
        Self::SystemAsUser,
        Self::PlainRoles,
        Self::NoTools,
    ];

    /// How the request is sent then.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NoStreamOptions => "without stream_options",
            Self::TokenLimit => "with the other name of the token limit",
            Self::NoParallelToolCalls => "without parallel_tool_calls",
            Self::NoProgress => "without cache_prompt and return_progress",
            Self::ToolAlone => "with the forced tool alone and `required`",
            Self::NoToolChoice => "without tool_choice",
            Self::CallPairs => "with each call and its result as a pair",
            Self::SystemFirst => "with one system message at the head",
            Self::SystemAsUser => "with the system messages in the user's",
            Self::PlainRoles => "with calls and results as text",
            Self::NoTools => "without tools, which are told in the text",
        }
    }

    /// What a server says that makes it.
    pub fn cause(self) -> &'static str {
        match self {
            Self::NoStreamOptions => "400 or 422 that names `stream_options`",
            Self::TokenLimit => {
                "400 or 422 that names the one that was sent, and does not merely find its value too large"
            }
            Self::NoParallelToolCalls => "400 or 422 that names `parallel_tool_calls`",
            Self::NoProgress => "400 or 422 that names `cache_prompt` or `return_progress`",
            Self::ToolAlone => "400 or 422 that names `tool_choice`, which was an object; OpenRouter's 404",
            Self::NoToolChoice => "400 or 422 that names `tool_choice`, which was a word",
            Self::CallPairs => "a template that supports single tool calls only",
            Self::SystemFirst => {
                "a template that wants its system message first, or roles that alternate, while there are several"
            }
            Self::SystemAsUser => "a template without a system role",
            Self::PlainRoles => "a template whose roles must alternate, and calls in the conversation",
            Self::NoTools => "a model that does not support tools, under `:fallback on` alone",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Which swaps were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Swap>", into = "Vec<Swap>")]
pub struct Swaps(u16);

impl Swaps {
    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Whether `swap` was.
    pub fn has(self, swap: Swap) -> bool {
        self.0 & swap.bit() != 0
    }

    /// These and `swap`.
    #[must_use]
    pub fn with(self, swap: Swap) -> Self {
        Self(self.0 | swap.bit())
    }

    /// These and those.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl From<Vec<Swap>> for Swaps {
    fn from(swaps: Vec<Swap>) -> Self {
        swaps.into_iter().fold(Self::default(), Self::with)
    }
}

impl From<Swaps> for Vec<Swap> {
    fn from(swaps: Swaps) -> Self {
        Swap::ALL.into_iter().filter(|swap| swaps.has(*swap)).collect()
    }
}

/// The two names of the token limit.
pub(super) const TOKEN_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// What servers say of a value, not of a name: another name would not help.
const VALUE_FAULTS: [&str; 8] = [
    "too large",
    "too small",
    "at least",
    "at most",
    "less than",
    "greater than",
    "larger than",
    "must be positive",
];

/// Ways to say that a model takes no tools.
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

/// Whether a server says that its model takes no tools.
pub fn refuses_tools(message: &str) -> bool {
    let said = message.to_ascii_lowercase();
    NO_TOOLS.iter().any(|phrase| said.contains(phrase))
}

/// What to send instead of `sent`, which was made in `form` and refused with `error`. `None`: nothing else is known
/// that might help. Tools are left out only where calls are read from unmarked text, too.
pub fn next_swap(form: BodyForm, sent: &Value, error: &ServerError, fallback: Fallback) -> Option<Swap> {
    let status = error.code.unwrap_or_default();
    let said = error.message.to_ascii_lowercase();
    let is_new = |swap: Swap| !form.swaps.has(swap);
    let has = |member: &str| sent.get(member).is_some();
    let names = |member: &str| has(member) && said.contains(member);
    // A template's own words are plain enough; older llama.cpp answers them with 500.
    if (400..=599).contains(&status)
        && !matches!(status, 401 | 403 | 408 | 409 | 429 | 503)
        && let Some(swap) = template_swap(&said, sent).filter(|swap| is_new(*swap))
    {
        return Some(swap);
    }
    if has("tools") && fallback == Fallback::On && is_new(Swap::NoTools) && refuses_tools(&said) {
        return Some(Swap::NoTools);
    }
    // OpenRouter looks for a provider that takes all that was asked for.
    let is_unrouted = status == 404 && said.contains("no endpoints found that support");
    if !matches!(status, 400 | 422) && !is_unrouted {
        return None;
    }
    if (names("stream_options") || (has("stream_options") && said.contains("include_usage")))
        && is_new(Swap::NoStreamOptions)
    {
        return Some(Swap::NoStreamOptions);
    }
    if TOKEN_LIMITS.iter().any(|name| names(name)) && is_new(Swap::TokenLimit) {
        let names_both = TOKEN_LIMITS.iter().all(|name| said.contains(name));
        if names_both || !VALUE_FAULTS.iter().any(|fault| said.contains(fault)) {
            return Some(Swap::TokenLimit);
        }
    }
    if names("parallel_tool_calls") && is_new(Swap::NoParallelToolCalls) {
        return Some(Swap::NoParallelToolCalls);
    }
    if (names("return_progress") || names("cache_prompt")) && is_new(Swap::NoProgress) {
        return Some(Swap::NoProgress);
    }
    if names("tool_choice") {
        let is_object = sent.get("tool_choice").is_some_and(Value::is_object);
        let swap = if is_object { Swap::ToolAlone } else { Swap::NoToolChoice };
        return is_new(swap).then_some(swap);
    }
    None
}

/// What a chat template says by `raise_exception`.
fn template_swap(said: &str, sent: &Value) -> Option<Swap> {
    let messages = sent.get("messages").and_then(Value::as_array)?;
    let of_role = |role: &str| messages.iter().filter(|message| message["role"] == role).count();
    let calls = |message: &Value| message["tool_calls"].as_array().map_or(0, Vec::len);
    if said.contains("single tool-call") || said.contains("only supports single tool call") {
        return messages.iter().any(|message| calls(message) > 1).then_some(Swap::CallPairs);
    }
    let system = of_role("system");
    let no_system = ["system role not supported", "system role is not supported", "does not support system"];
    if system > 0 && no_system.iter().any(|phrase| said.contains(phrase)) {
        return Some(Swap::SystemAsUser);
    }
    let only_first = ["system message must be", "system messages must be", "only one system message"];
    let is_first = messages.iter().skip(1).all(|message| message["role"] != "system");
    if only_first.iter().any(|phrase| said.contains(phrase)) {
        return (!is_first).then_some(Swap::SystemFirst);
    }
    if said.contains("must alternate") {
        return Some(if is_first { Swap::PlainRoles } else { Swap::SystemFirst })
            .filter(|swap| *swap == Swap::SystemFirst || of_role("tool") > 0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::http_error::classify_http_error;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_known_by_what_it_names() {
        let sent = json!({
            "messages": [
                {"role": "system", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"},
                {"role": "assistant", "tool_calls": [{}, {}]}, {"role": "tool"},
            ],
            "tools": [{}], "tool_choice": {"type": "function", "function": {"name": "f"}}, "max_tokens": 9,
            "parallel_tool_calls": true, "return_progress": true, "stream_options": {"include_usage": true},
        });
        let pairs = include_str!("../../tests/wire/llama-cpp-special/99_llama31_two_calls_one_message.json");
        let cases: &[(u16, &str, Option<Swap>)] = &[
            (400, "Unrecognized request argument supplied: stream_options", Some(Swap::NoStreamOptions)),
            (401, "stream_options", None),
            (500, "stream_options", None),
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
                Some(Swap::TokenLimit),
            ),
            (400, "max_tokens is too large: 9. This model supports at most 8 completion tokens", None),
            // A member that was not sent was not refused.
            (422, "max_completion_tokens: Extra inputs are not permitted", None),
            (400, "parallel_tool_calls is not supported", Some(Swap::NoParallelToolCalls)),
            (400, "unknown field `return_progress`", Some(Swap::NoProgress)),
            (
                400,
                "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
                Some(Swap::ToolAlone),
            ),
            (404, "No endpoints found that support the provided 'tool_choice' value.", Some(Swap::ToolAlone)),
            (404, "no such model: tool_choice", None),
            (400, pairs, Some(Swap::CallPairs)),
            (
                500,
                "Jinja Exception: After the optional system message, conversation roles must alternate",
                Some(Swap::SystemFirst),
            ),
            (400, "Jinja Exception: System message must be at the beginning.", Some(Swap::SystemFirst)),
            (400, "System role not supported", Some(Swap::SystemAsUser)),
            (400, "registry.ollama.ai/library/gemma:2b does not support tools", Some(Swap::NoTools)),
            (404, "No endpoints found that support tool use.", Some(Swap::NoTools)),
            (429, "System role not supported", None),
            (400, "bad seed", None),
        ];
        let refusal = |status: u16, said: &str| {
            let body = if said.starts_with('{') {
                said.to_owned()
            } else {
                json!({"error": {"message": said}}).to_string()
            };
            classify_http_error(status, body.as_bytes())
        };
        for (status, said, expected) in cases {
            let error = refusal(*status, said);
            let found = next_swap(BodyForm::default(), &sent, &error, Fallback::On);
            assert_eq!(found, *expected, "{status} {said}");
            if let Some(swap) = found {
                let form = BodyForm { swaps: Swaps::default().with(swap), ..BodyForm::default() };
                assert_eq!(next_swap(form, &sent, &error, Fallback::On), None, "once: {said}");
            }
        }
        // Without the convention in the text, nothing would call.
        let tools = refusal(400, "m does not support tools");
        assert_eq!(next_swap(BodyForm::default(), &sent, &tools, Fallback::Auto), None);
    }

    #[test]
    fn swaps_are_kept_as_a_list() {
        let swaps = Swaps::default().with(Swap::NoTools).with(Swap::NoStreamOptions);
        let text = serde_json::to_string(&swaps).unwrap();
        assert_eq!(text, r#"["no_stream_options","no_tools"]"#);
        assert_eq!(serde_json::from_str::<Swaps>(&text).unwrap(), swaps);
        assert!(Swap::ALL.into_iter().enumerate().all(|(index, swap)| swap as usize == index));
    }
}
