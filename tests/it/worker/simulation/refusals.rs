//! Answers that refuse a request feature, the body fallback that must follow, and checks of its body.

use std::collections::BTreeSet;

use deftool_chat::request::RunConfig;
use deftool_chat::{BodyFallback, OptionalMember};
use serde_json::{Value, json};

use super::dice::Dice;
use super::wire;

/// A request feature that a server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusedFeature {
    StreamOptions,
    TokenLimit,
    ParallelToolCalls,
    Progress,
    ToolChoice,
    SeveralCalls,
    LateSystem,
    System,
    Roles,
    Tools,
}

/// The body fallbacks in use, as numbers.
pub(super) type BodyFallbacks = BTreeSet<u16>;

/// Returns the number of a body fallback.
pub(super) fn bit(body_fallback: BodyFallback) -> u16 {
    BodyFallback::all().position(|known| known == body_fallback).unwrap() as u16
}

fn has(body_fallbacks: &BodyFallbacks, body_fallback: BodyFallback) -> bool {
    body_fallbacks.contains(&bit(body_fallback))
}

impl RefusedFeature {
    /// Returns a refused feature, the status and body of the answer, and the coverage name.
    pub(super) fn draw(dice: &mut Dice, body: &str) -> (Self, u16, Value, &'static str) {
        let all = [
            (Self::StreamOptions, "stream_options is not known", "head: refuses stream_options"),
            (
                Self::TokenLimit,
                "max_tokens or max_completion_tokens: take the other one",
                "head: refuses the token limit",
            ),
            (
                Self::ParallelToolCalls,
                "parallel_tool_calls: extra inputs are not permitted",
                "head: refuses parallel_tool_calls",
            ),
            (Self::Progress, "unknown field `return_progress`", "head: refuses return_progress"),
            (Self::ToolChoice, "invalid tool_choice", "head: refuses tool_choice"),
            (
                Self::SeveralCalls,
                "This model only supports single tool calls at once!",
                "head: refuses several calls",
            ),
            (
                Self::LateSystem,
                "System message must be at the beginning.",
                "head: refuses late system messages",
            ),
            (Self::System, "System role not supported", "head: refuses system messages"),
            (
                Self::Roles,
                "Conversation roles must alternate user/assistant/user/assistant",
                "head: refuses roles",
            ),
            (Self::Tools, "this model does not support tools", "head: refuses tools"),
        ];
        // Prefer features that the body has.
        let fits = |(refused, _, _): &&(Self, &str, &str)| {
            let sign = match refused {
                Self::StreamOptions => "\"stream_options\":",
                Self::TokenLimit => "\"max_",
                Self::ParallelToolCalls => "\"parallel_tool_calls\":",
                Self::Progress => "\"return_progress\":",
                Self::ToolChoice => "\"tool_choice\":",
                Self::SeveralCalls | Self::Roles => "\"role\":\"tool\"",
                Self::LateSystem | Self::System => "\"role\":\"system\"",
                Self::Tools => "\"tools\":",
            };
            body.contains(sign)
        };
        let mut fitting: Vec<_> = all.iter().filter(fits).copied().collect();
        if dice.chance(60) {
            // Prefer rare features.
            let is_common = |refused: &Self| {
                matches!(refused, Self::StreamOptions | Self::LateSystem | Self::System | Self::Tools)
            };
            fitting.retain(|(refused, _, _)| !is_common(refused));
        }
        let from: &[_] = if dice.chance(80) && !fitting.is_empty() { &fitting } else { &all };
        let (refused, message, feature) = *dice.pick(from);
        let of_template =
            matches!(refused, Self::SeveralCalls | Self::LateSystem | Self::System | Self::Roles);
        let statuses: &[u16] = if of_template { &[400, 500] } else { &[400, 422] };
        (refused, *dice.pick(statuses), json!({"error": {"message": message}}), feature)
    }

    /// Returns the body fallback that must follow, if there is one.
    pub(super) fn answer(self, body: &Value, body_fallbacks: &BodyFallbacks) -> Option<BodyFallback> {
        let messages = wire::messages(body).unwrap_or_default();
        let is_system = |message: &Value| message["role"] == "system";
        let is_late = messages.iter().skip(1).any(is_system);
        let sent = |member: &str| body.get(member).is_some();
        let is_message = wire::is_message(body);
        let names_tool =
            body["tool_choice"].is_object() && (!is_message || body["tool_choice"]["type"] == "tool");
        let has_state = is_message && body["messages"].to_string().contains("\"signature\":");
        let (body_fallback, helps) = match self {
            Self::StreamOptions => (without("stream_options"), sent("stream_options")),
            // The Messages API has one name for it.
            Self::TokenLimit if is_message => (BodyFallback::UseMaxTokens, false),
            Self::TokenLimit => {
                let to_new = sent("max_tokens");
                let body_fallback =
                    if to_new { BodyFallback::UseMaxCompletionTokens } else { BodyFallback::UseMaxTokens };
                let was_renamed = LIMITS.iter().any(|(_, body_fallback)| has(body_fallbacks, *body_fallback));
                (body_fallback, (to_new || sent("max_completion_tokens")) && !was_renamed)
            }
            Self::ParallelToolCalls => (without("parallel_tool_calls"), sent("parallel_tool_calls")),
            Self::Progress => (without("return_progress"), sent("return_progress")),
            Self::ToolChoice if names_tool => (BodyFallback::ToolAlone, true),
            Self::ToolChoice => (BodyFallback::NoToolChoice, sent("tool_choice")),
            Self::SeveralCalls => {
                (BodyFallback::CallPairs, messages.iter().any(|message| calls(message) > 1))
            }
            Self::LateSystem => (BodyFallback::SystemFirst, is_late),
            Self::System => (BodyFallback::SystemAsUser, messages.iter().any(is_system)),
            Self::Roles if is_late => (BodyFallback::SystemFirst, true),
            Self::Roles => {
                let any_result = messages.iter().any(|message| message["role"] == "tool");
                (BodyFallback::PlainRoles, any_result || has_state)
            }
            // Only a prompt that describes the tools helps.
            Self::Tools => return None,
        };
        (helps && !has(body_fallbacks, body_fallback)).then_some(body_fallback)
    }
}

fn calls(message: &Value) -> usize {
    message["tool_calls"].as_array().map_or(0, Vec::len)
}

/// The names of the token limit, each with the body fallback that removes it.
const LIMITS: [(&str, BodyFallback); 2] = [
    ("max_tokens", BodyFallback::UseMaxCompletionTokens),
    ("max_completion_tokens", BodyFallback::UseMaxTokens),
];

/// The layout of a conversation.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Layout {
    /// There are no system messages.
    pub(super) no_system: bool,
    /// Only the first message is a system message.
    pub(super) one_system: bool,
    /// Calls and results are text.
    pub(super) plain: bool,
    /// Each message has at most one call.
    pub(super) pairs: bool,
}

/// `writes_calls`: calls and results are text.
pub(super) fn layout(body_fallbacks: &BodyFallbacks, writes_calls: bool) -> Layout {
    let no_system = has(body_fallbacks, BodyFallback::SystemAsUser);
    Layout {
        no_system,
        one_system: !no_system
            && (has(body_fallbacks, BodyFallback::SystemFirst)
                || has(body_fallbacks, BodyFallback::PlainRoles)),
        plain: writes_calls || has(body_fallbacks, BodyFallback::PlainRoles),
        pairs: has(body_fallbacks, BodyFallback::CallPairs),
    }
}

/// Returns the fallback that omits an optional member.
fn without(name: &str) -> BodyFallback {
    BodyFallback::Without(OptionalMember::named(name).unwrap())
}

/// Returns a feature of the body that the server has refused before.
pub(super) fn still_refused(
    body: &Value,
    body_fallbacks: &BodyFallbacks,
    run: &RunConfig,
) -> Option<&'static str> {
    let sent = |member: &str| body.get(member).is_some();
    let both = LIMITS.iter().all(|(_, body_fallback)| has(body_fallbacks, *body_fallback));
    let is_refused = |(name, body_fallback): &(&str, BodyFallback)| {
        !both && has(body_fallbacks, *body_fallback) && run.params.contains_key(*name) && sent(name)
    };
    if LIMITS.iter().any(is_refused) {
        return Some("the token limit");
    }
    let any_object =
        body["tool_choice"].is_object() && (!wire::is_message(body) || body["tool_choice"]["type"] == "tool");
    [
        (without("stream_options"), sent("stream_options"), "stream_options"),
        (without("parallel_tool_calls"), sent("parallel_tool_calls"), "parallel_tool_calls"),
        (without("return_progress"), sent("return_progress"), "return_progress"),
        (BodyFallback::ToolAlone, any_object, "a tool_choice that is an object"),
        (BodyFallback::NoToolChoice, sent("tool_choice"), "tool_choice"),
    ]
    .into_iter()
    .find_map(|(body_fallback, found, name)| (has(body_fallbacks, body_fallback) && found).then_some(name))
}

/// Returns the part of a body that a body fallback must not change.
pub(super) fn untouched(body: &Value, body_fallback: Option<BodyFallback>) -> Value {
    let names: &[&str] = match body_fallback {
        None => &[],
        Some(BodyFallback::UseMaxCompletionTokens | BodyFallback::UseMaxTokens) => {
            &["max_tokens", "max_completion_tokens"]
        }
        Some(BodyFallback::ToolAlone) => &["tool_choice", "tools"],
        Some(BodyFallback::NoToolChoice) => &["tool_choice"],
        Some(
            BodyFallback::CallPairs
            | BodyFallback::SystemFirst
            | BodyFallback::SystemAsUser
            | BodyFallback::PlainRoles
            | BodyFallback::EmptyReasoning
            | BodyFallback::NoSignatureCheck
            | BodyFallback::NoState
            | BodyFallback::NoEarlierState
            | BodyFallback::NoItemIds
            | BodyFallback::PortableIds
            | BodyFallback::TextOrCalls
            | BodyFallback::NoResultImages
            | BodyFallback::NoImages
            | BodyFallback::NoNewImages
            | BodyFallback::NoEarlierImages,
        ) => &["messages", "input", "system"],
        Some(BodyFallback::EmptyContent) => &["messages"],
        Some(BodyFallback::TypedSchemas) => &["tools"],
        Some(BodyFallback::UseResponses) => &["messages", "input", "stream_options", "store"],
        Some(BodyFallback::NoEncryptedReasoning) => &["include"],
        Some(BodyFallback::Without(member)) if member.name() == "cache_control" => {
            &["messages", "system", "tools"]
        }
        Some(BodyFallback::Without(member)) => &[member.name()],
    };
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        for name in names {
            members.shift_remove(*name);
        }
    }
    body
}

/// Returns a text of `before` that is missing in `after`.
pub(super) fn lost(before: &Value, after: &Value) -> Option<String> {
    let texts = |body: &Value| -> Vec<String> {
        let messages = wire::messages(body).unwrap_or_default();
        messages.iter().filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
    };
    let kept = texts(after);
    // Text that is no longer sent as it came has no space at its end.
    texts(before).into_iter().find(|text| !kept.iter().any(|kept| kept.contains(text.trim_end())))
}
