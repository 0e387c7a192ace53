//! Other forms of a request, for servers that refuse the first.
//!
//! In: the request, the form in which it was sent, and what the server said. Out: one [`Swap`], or none. Each is made at
//! most once, since it stays in the form from then on, and one that leaves the body as it is is none: a request is sent
//! at most once more for each of them, and never the same again.
//!
//! A refusal is known by what it names. What people write into their prompts cannot be taken for one: only the
//! server's message is looked at, and only a member that was sent can have been refused.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{ServerError, ServerErrorKind};
use super::message::Message;
use super::request_body::{BodyForm, ChatRequest};
use super::shape::shape_messages;
use crate::spec::Fallback;

/// One way to write a request otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Swap {
    /// Without `stream_options`.
    NoStreamOptions,
    /// `max_tokens` as `max_completion_tokens`. Recordings from before there were two ways are read as this
    /// one, which most were.
    #[serde(alias = "token_limit")]
    UseMaxCompletionTokens,
    /// `max_completion_tokens` as `max_tokens`.
    UseMaxTokens,
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
    pub const ALL: [Self; 12] = [
        Self::NoStreamOptions,
        Self::UseMaxCompletionTokens,
        Self::UseMaxTokens,
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
            Self::UseMaxCompletionTokens => "with max_completion_tokens in place of max_tokens",
            Self::UseMaxTokens => "with max_tokens in place of max_completion_tokens",
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
            Self::UseMaxCompletionTokens => {
                "400 or 422 that names `max_tokens`, which was sent, and finds no fault with its value"
            }
            Self::UseMaxTokens => {
                "400 or 422 that names `max_completion_tokens`, which was sent, and finds no fault with its value"
            }
            Self::NoParallelToolCalls => "400 or 422 that names `parallel_tool_calls`",
            Self::NoProgress => "400 or 422 that names `cache_prompt` or `return_progress`",
            Self::ToolAlone => "400 or 422 that names `tool_choice`, which named tools; OpenRouter's 404",
            Self::NoToolChoice => "400 or 422 that names `tool_choice`, which named none",
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

/// What servers say of a value, not of a name: another name would not help, and one that the server does not know would
/// be no limit at all.
const VALUE_FAULTS: [&str; 18] = [
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

/// What to send instead of `request` as it was sent in `form` and refused with `error`. `None`: nothing else is known
/// that might help. Tools are left out only where calls are read from unmarked text, too.
pub fn next_swap(
    request: &ChatRequest,
    form: BodyForm,
    error: &ServerError,
    fallback: Fallback,
) -> Option<Swap> {
    let sent = request.encode_body(form);
    let messages = shape_messages(&request.messages, form.swaps);
    let refusal = Refusal { sent: &sent, messages: &messages, said: error.message.to_ascii_lowercase() };
    let is_other = |swap: &Swap| {
        let swaps = form.swaps.with(*swap);
        request.encode_body(BodyForm { swaps, ..form }) != sent
    };
    refusal.remedies(form.swaps, error, fallback).into_iter().find(is_other)
}

/// What was sent, and what was said of it.
struct Refusal<'a> {
    sent: &'a Value,
    messages: &'a [Message],
    /// In lower case.
    said: String,
}

impl Refusal<'_> {
    fn has(&self, member: &str) -> bool {
        self.sent.get(member).is_some()
    }

    fn names(&self, member: &str) -> bool {
        self.has(member) && self.said.contains(member)
    }

    /// What might help, the likeliest first.
    fn remedies(&self, made: Swaps, error: &ServerError, fallback: Fallback) -> Vec<Swap> {
        let status = error.code.unwrap_or_default();
        let mut remedies = Vec::new();
        // A template's own words are plain enough; older llama.cpp answers them with 500.
        if (400..=599).contains(&status) && !matches!(status, 401 | 403 | 408 | 409 | 429 | 503) {
            remedies.extend(self.of_template());
        }
        if self.has("tools") && fallback == Fallback::On && refuses_tools(&self.said) {
            remedies.push(Swap::NoTools);
        }
        // OpenRouter looks for a provider that takes all that was asked for.
        let is_unrouted = status == 404 && self.said.contains("no endpoints found that support");
        if !matches!(status, 400 | 422) && !is_unrouted {
            return remedies;
        }
        if self.names("stream_options") || (self.has("stream_options") && self.said.contains("include_usage"))
        {
            remedies.push(Swap::NoStreamOptions);
        }
        if error.kind != ServerErrorKind::ContextOverflow {
            remedies.extend(self.of_token_limit(made));
        }
        if self.names("parallel_tool_calls") {
            remedies.push(Swap::NoParallelToolCalls);
        }
        if self.names("return_progress") || self.names("cache_prompt") {
            remedies.push(Swap::NoProgress);
        }
        if self.names("tool_choice") {
            let is_object = self.sent.get("tool_choice").is_some_and(Value::is_object);
            remedies.extend(is_object.then_some(Swap::ToolAlone));
            remedies.push(Swap::NoToolChoice);
        }
        remedies
    }

    /// The other name, once: there and back is no help.
    fn of_token_limit(&self, made: Swaps) -> Option<Swap> {
        let [old, new] = TOKEN_LIMITS;
        let swaps = [(old, Swap::UseMaxCompletionTokens), (new, Swap::UseMaxTokens)];
        if swaps.iter().any(|(_, swap)| made.has(*swap)) {
            return None;
        }
        let is_of_value = VALUE_FAULTS.iter().any(|fault| self.said.contains(fault));
        let tells_other = TOKEN_LIMITS.iter().all(|name| self.said.contains(name))
            && ["instead", "unsupported", "not supported"].iter().any(|word| self.said.contains(word));
        let (_, swap) = swaps.into_iter().find(|(name, _)| self.names(name))?;
        (!is_of_value || tells_other).then_some(swap)
    }

    /// What a chat template says by `raise_exception`.
    fn of_template(&self) -> Option<Swap> {
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| self.said.contains(phrase));
        let is_system = |message: &&Message| matches!(message, Message::System { .. });
        if says(&["single tool-call", "only supports single tool call"]) {
            return Some(Swap::CallPairs);
        }
        let has_system = self.messages.iter().any(|message| is_system(&message));
        if has_system
            && says(&["system role not supported", "system role is not supported", "does not support system"])
        {
            return Some(Swap::SystemAsUser);
        }
        let is_late = self.messages.iter().skip(1).any(|message| is_system(&message));
        if says(&["system message must be", "system messages must be", "only one system message"]) {
            return is_late.then_some(Swap::SystemFirst);
        }
        if says(&["must alternate"]) {
            let has_results = self.messages.iter().any(|message| matches!(message, Message::Tool { .. }));
            return if is_late { Some(Swap::SystemFirst) } else { has_results.then_some(Swap::PlainRoles) };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Api;
    use super::super::http_error::classify_http_error;
    use super::super::message::MessageToolCall;
    use super::*;
    use serde_json::json;

    /// Everything that can be refused: two calls in a message, a late system message, every parameter.
    fn request(params: &Value) -> ChatRequest {
        let user = |text: &str| Message::User { content: text.to_owned() };
        let system = |text: &str| Message::System { content: text.to_owned() };
        let calls = ["1", "2"].map(|id| MessageToolCall::new(id, "g", "{}"));
        let result = |id: &str| Message::Tool { tool_call_id: id.to_owned(), content: String::from("3") };
        let said = Message::Assistant { content: String::new(), tool_calls: calls.to_vec() };
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        ChatRequest {
            model: String::from("m"),
            messages: vec![system("a"), system("b"), user("c"), said, result("1"), result("2")],
            tools: vec![tool("f"), tool("g")],
            params: params.as_object().cloned().unwrap(),
        }
    }

    fn refusal(status: u16, said: &str) -> ServerError {
        let body = if said.starts_with('{') {
            said.to_owned()
        } else {
            json!({"error": {"message": said}}).to_string()
        };
        classify_http_error(status, body.as_bytes())
    }

    fn named() -> Value {
        json!({"type": "function", "function": {"name": "f"}})
    }

    fn over(api: Api) -> BodyForm {
        BodyForm { api, ..BodyForm::default() }
    }

    #[test]
    fn a_refusal_is_known_by_what_it_names() {
        let sent = request(&json!({
            "tool_choice": named(), "max_tokens": 9, "parallel_tool_calls": true, "return_progress": true,
        }));
        let pairs = include_str!("../../tests/wire/llama-cpp-special/99_llama31_two_calls_one_message.json");
        let alternate =
            "Jinja Exception: After the optional system message, conversation roles must alternate";
        // What is swapped over chat completions, and what over responses.
        let same = |swap: Swap| (Some(swap), Some(swap));
        let here = |swap: Swap| (Some(swap), None);
        let never = (None, None);
        let cases = [
            (400, "Unrecognized request argument supplied: stream_options", here(Swap::NoStreamOptions)),
            (401, "stream_options", never),
            (500, "stream_options", never),
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
                here(Swap::UseMaxCompletionTokens),
            ),
            // Faults of the value: by another name it might be no limit at all.
            (400, "max_tokens is too large: 9. This model supports at most 8 completion tokens", never),
            (400, "'max_tokens' or 'max_completion_tokens' is too large: 9.", never),
            (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", never),
            (400, "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens", never),
            (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", never),
            (400, "max_tokens must be an integer", never),
            // A member that was not sent was not refused.
            (422, "max_completion_tokens: Extra inputs are not permitted", never),
            (400, "parallel_tool_calls is not supported", same(Swap::NoParallelToolCalls)),
            (400, "unknown field `return_progress`", same(Swap::NoProgress)),
            (
                400,
                "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
                same(Swap::ToolAlone),
            ),
            (404, "No endpoints found that support the provided 'tool_choice' value.", same(Swap::ToolAlone)),
            (404, "no such model: tool_choice", never),
            (400, pairs, same(Swap::CallPairs)),
            (500, alternate, same(Swap::SystemFirst)),
            (400, "Jinja Exception: System message must be at the beginning.", same(Swap::SystemFirst)),
            (400, "System role not supported", same(Swap::SystemAsUser)),
            (400, "registry.ollama.ai/library/gemma:2b does not support tools", same(Swap::NoTools)),
            (404, "No endpoints found that support tool use.", same(Swap::NoTools)),
            (429, "System role not supported", never),
            (400, "bad seed", never),
        ];
        for (status, said, (completions, responses)) in cases {
            let error = refusal(status, said);
            for (api, expected) in [(Api::ChatCompletions, completions), (Api::Responses, responses)] {
                let mut form = over(api);
                let found = next_swap(&sent, form, &error, Fallback::On);
                assert_eq!(found, expected, "{api:?}: {status} {said}");
                // Once each, and no body again.
                let mut bodies = vec![sent.encode_body(form)];
                while let Some(swap) = next_swap(&sent, form, &error, Fallback::On) {
                    form.swaps = form.swaps.with(swap);
                    bodies.push(sent.encode_body(form));
                    assert!(!bodies[..bodies.len() - 1].contains(&bodies[bodies.len() - 1]), "{said}");
                }
                assert!(bodies.len() <= 3, "{said}");
            }
        }
        // Without the convention in the text, nothing would call.
        let tools = refusal(400, "m does not support tools");
        assert_eq!(next_swap(&sent, BodyForm::default(), &tools, Fallback::Auto), None);
    }

    #[test]
    fn a_choice_that_is_refused_goes_as_far_as_it_must() {
        let error = refusal(400, "tool_choice must be a string");
        for (choice, expected) in [
            (json!("required"), vec![Swap::NoToolChoice]),
            (named(), vec![Swap::ToolAlone, Swap::NoToolChoice]),
            // It names no tool that could go alone.
            (json!({"type": "auto"}), vec![Swap::NoToolChoice]),
        ] {
            for api in [Api::ChatCompletions, Api::Responses] {
                let sent = request(&json!({"tool_choice": choice}));
                let mut form = over(api);
                let mut swaps = Vec::new();
                while let Some(swap) = next_swap(&sent, form, &error, Fallback::On) {
                    form.swaps = form.swaps.with(swap);
                    swaps.push(swap);
                }
                assert_eq!(swaps, expected, "{api:?}: {choice}");
                assert_eq!(sent.encode_body(form).get("tool_choice"), None);
            }
        }
    }

    #[test]
    fn the_name_of_the_token_limit_is_learned_for_whoever_has_the_other() {
        let error = refusal(400, "max_tokens? max_completion_tokens?");
        for (params, swap) in [
            (json!({"max_tokens": 9}), Swap::UseMaxCompletionTokens),
            (json!({"max_completion_tokens": 9}), Swap::UseMaxTokens),
        ] {
            let sent = request(&params);
            assert_eq!(next_swap(&sent, BodyForm::default(), &error, Fallback::On), Some(swap));
            let form = BodyForm { swaps: Swaps::default().with(swap), ..BodyForm::default() };
            assert_eq!(next_swap(&sent, form, &error, Fallback::On), None, "there and back: {params}");
        }
    }

    #[test]
    fn swaps_are_kept_as_a_list() {
        let swaps = Swaps::default().with(Swap::NoTools).with(Swap::NoStreamOptions);
        let text = serde_json::to_string(&swaps).unwrap();
        assert_eq!(text, r#"["no_stream_options","no_tools"]"#);
        assert_eq!(serde_json::from_str::<Swaps>(&text).unwrap(), swaps);
        let old: Swaps = serde_json::from_str(r#"["token_limit"]"#).unwrap();
        assert_eq!(old, Swaps::default().with(Swap::UseMaxCompletionTokens));
        assert!(Swap::ALL.into_iter().enumerate().all(|(index, swap)| swap as usize == index));
    }
}
