//! Refusals that name what the server does not take: which other form must follow, and what it must look like.

use std::collections::BTreeSet;

use deftool::chat::Swap;
use deftool::request::{Fallback, RunConfig};
use serde_json::{Value, json};

use super::dice::Dice;
use super::ledger::Exchange;
use super::wire;

/// What a refusal complains of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
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

/// The forms that a request has taken.
pub(super) type Forms = BTreeSet<u16>;

/// A swap as a member of [`Forms`].
pub(super) fn bit(swap: Swap) -> u16 {
    swap as u16
}

fn has(forms: &Forms, swap: Swap) -> bool {
    forms.contains(&bit(swap))
}

impl Refused {
    /// A refusal: the status, what is said, what to count it as.
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
        // As a rule, what there is.
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
            // What is seldom there.
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

    /// The form in which `body` is sent again, if there is another.
    fn answer(self, body: &Value, forms: &Forms, fallback: Fallback) -> Option<Swap> {
        let messages = wire::messages(body).unwrap_or_default();
        let is_system = |message: &Value| message["role"] == "system";
        let is_late = messages.iter().skip(1).any(is_system);
        let sent = |member: &str| body.get(member).is_some();
        let (swap, helps) = match self {
            Self::StreamOptions => (Swap::NoStreamOptions, sent("stream_options")),
            Self::TokenLimit => {
                let to_new = sent("max_tokens");
                let swap = if to_new { Swap::UseMaxCompletionTokens } else { Swap::UseMaxTokens };
                let was_renamed = LIMITS.iter().any(|(_, swap)| has(forms, *swap));
                (swap, (to_new || sent("max_completion_tokens")) && !was_renamed)
            }
            Self::ParallelToolCalls => (Swap::NoParallelToolCalls, sent("parallel_tool_calls")),
            Self::Progress => (Swap::NoProgress, sent("return_progress")),
            Self::ToolChoice if body["tool_choice"].is_object() => (Swap::ToolAlone, true),
            Self::ToolChoice => (Swap::NoToolChoice, sent("tool_choice")),
            Self::SeveralCalls => (Swap::CallPairs, messages.iter().any(|message| calls(message) > 1)),
            Self::LateSystem => (Swap::SystemFirst, is_late),
            Self::System => (Swap::SystemAsUser, messages.iter().any(is_system)),
            Self::Roles if is_late => (Swap::SystemFirst, true),
            Self::Roles => (Swap::PlainRoles, messages.iter().any(|message| message["role"] == "tool")),
            Self::Tools => (Swap::NoTools, sent("tools") && fallback == Fallback::On),
        };
        (helps && !has(forms, swap)).then_some(swap)
    }
}

fn calls(message: &Value) -> usize {
    message["tool_calls"].as_array().map_or(0, Vec::len)
}

/// The names of the token limit, each with the form in which it is no longer sent.
const LIMITS: [(&str, Swap); 2] =
    [("max_tokens", Swap::UseMaxCompletionTokens), ("max_completion_tokens", Swap::UseMaxTokens)];

/// The form that must follow an exchange at once, by a request that had `forms` before it.
pub(super) fn next_form(exchange: &Exchange, forms: &Forms, fallback: Fallback) -> Option<Swap> {
    let refused = exchange.script.refused.filter(|_| exchange.is_delivered() && exchange.streams)?;
    refused.answer(&exchange.body, forms, fallback)
}

/// How a conversation is laid out.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct Layout {
    /// No message is the system's.
    pub(super) no_system: bool,
    /// One is, the first.
    pub(super) one_system: bool,
    /// Calls and results are text.
    pub(super) plain: bool,
    /// No message has several calls.
    pub(super) pairs: bool,
}

pub(super) fn layout(forms: &Forms) -> Layout {
    let no_system = has(forms, Swap::SystemAsUser);
    Layout {
        no_system,
        one_system: !no_system && (has(forms, Swap::SystemFirst) || has(forms, Swap::PlainRoles)),
        plain: has(forms, Swap::PlainRoles) || has(forms, Swap::NoTools),
        pairs: has(forms, Swap::CallPairs),
    }
}

/// Whether tools are told in the text alone.
pub(super) fn has_no_tools(forms: &Forms) -> bool {
    has(forms, Swap::NoTools)
}

/// What of a body its server has refused before.
pub(super) fn still_refused(body: &Value, forms: &Forms, run: &RunConfig) -> Option<&'static str> {
    let sent = |member: &str| body.get(member).is_some();
    let both = LIMITS.iter().all(|(_, swap)| has(forms, *swap));
    let is_refused = |(name, swap): &(&str, Swap)| {
        !both && has(forms, *swap) && run.params.contains_key(*name) && sent(name)
    };
    if LIMITS.iter().any(is_refused) {
        return Some("the token limit");
    }
    let any_object = body["tool_choice"].is_object();
    [
        (Swap::NoStreamOptions, sent("stream_options"), "stream_options"),
        (Swap::NoParallelToolCalls, sent("parallel_tool_calls"), "parallel_tool_calls"),
        (Swap::NoProgress, sent("return_progress") || sent("cache_prompt"), "return_progress"),
        (Swap::ToolAlone, any_object, "a tool_choice that is an object"),
        (Swap::NoToolChoice, sent("tool_choice"), "tool_choice"),
        (Swap::NoTools, sent("tools"), "tools"),
    ]
    .into_iter()
    .find_map(|(swap, found, name)| (has(forms, swap) && found).then_some(name))
}

/// What a swap does not touch: `before` and `after` must be the same in it.
pub(super) fn untouched(body: &Value, swap: Option<Swap>) -> Value {
    let names: &[&str] = match swap {
        None => &[],
        Some(Swap::NoStreamOptions) => &["stream_options"],
        Some(Swap::UseMaxCompletionTokens | Swap::UseMaxTokens) => &["max_tokens", "max_completion_tokens"],
        Some(Swap::NoParallelToolCalls) => &["parallel_tool_calls"],
        Some(Swap::NoProgress) => &["return_progress", "cache_prompt"],
        Some(Swap::ToolAlone) => &["tool_choice", "tools"],
        Some(Swap::NoToolChoice) => &["tool_choice"],
        Some(Swap::CallPairs | Swap::SystemFirst | Swap::SystemAsUser | Swap::PlainRoles) => {
            &["messages", "input"]
        }
        Some(Swap::NoTools) => &["messages", "input", "tools", "tool_choice", "parallel_tool_calls"],
    };
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        for name in names {
            members.shift_remove(*name);
        }
    }
    body
}

/// Words of a conversation that another form of it has lost.
pub(super) fn lost(before: &Value, after: &Value) -> Option<String> {
    let texts = |body: &Value| -> Vec<String> {
        let messages = wire::messages(body).unwrap_or_default();
        messages.iter().filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
    };
    let kept = texts(after);
    texts(before).into_iter().find(|text| !kept.iter().any(|kept| kept.contains(text.as_str())))
}
