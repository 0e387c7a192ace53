//! What each API is sent for a set of tools.
//!
//! For the targets that gptel knows the JSON is, key order included, what gptel sends for the same specs, except that
//! an explicit `:additionalProperties` of an argument is kept as written. What a target drops, weakens or refuses is in
//! its [`claims`]; [`check_target`] tells it of one tool.

mod anthropic;
mod check;
pub mod claims;
mod gemini;
mod loss;
mod mcp;
mod openai;
mod openai_responses;
mod openai_strict;
mod parameters;
mod place;

use serde_json::Value;

pub use check::{Held, check_count, check_target, check_tools, losses};
pub(crate) use loss::Loss;
pub use openai_strict::strict_parameters;
pub(crate) use place::{accepts_null, required_names};

use crate::spec::Tool;
use crate::text::Span;

/// A model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// OpenAI chat completions, and every server that imitates it.
    OpenAi,
    /// OpenAI responses.
    OpenAiResponses,
    /// OpenAI chat completions with `strict: true`.
    OpenAiStrict,
    /// Anthropic messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// Ollama's own chat API.
    Ollama,
    /// The Model Context Protocol.
    Mcp,
    /// llama.cpp's server, which makes a grammar of every schema.
    LlamaCpp,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 8] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::OpenAiStrict,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Mcp,
        Self::LlamaCpp,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiStrict => "openai-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Mcp => "mcp",
            Self::LlamaCpp => "llama-cpp",
        }
    }

    /// What it is, in a clause.
    pub fn summary(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI chat completions, and every server that imitates it",
            Self::OpenAiResponses => "OpenAI responses",
            Self::OpenAiStrict => "OpenAI chat completions with strict schemas",
            Self::Anthropic => "Anthropic messages",
            Self::Gemini => "Google Gemini",
            Self::Ollama => "Ollama's own chat API",
            Self::Mcp => "the Model Context Protocol",
            Self::LlamaCpp => "llama.cpp's server, which samples under a grammar made of the schema",
        }
    }

    /// Whether its refusals are certain: a tool that it refuses is not emitted, since one would spoil the request.
    pub fn quarantines(self) -> bool {
        match self {
            Self::OpenAiStrict | Self::LlamaCpp => true,
            Self::OpenAi
            | Self::OpenAiResponses
            | Self::Anthropic
            | Self::Gemini
            | Self::Ollama
            | Self::Mcp => false,
        }
    }
}

/// The JSON that `target` is sent for `tools`, in their order, without those that it is certain to refuse.
pub fn emit<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Value {
    let tools = tools.into_iter().filter(|tool| !check::is_quarantined(target, tool));
    match target {
        Target::OpenAi | Target::Ollama | Target::LlamaCpp => {
            tools.map(|tool| openai::emit_tool(target, tool)).collect()
        }
        Target::OpenAiResponses => tools.map(openai_responses::emit_tool).collect(),
        Target::OpenAiStrict => tools.map(openai_strict::emit_tool).collect(),
        Target::Anthropic => tools.map(anthropic::emit_tool).collect(),
        Target::Gemini => gemini::emit_tools(tools),
        Target::Mcp => tools.map(mcp::emit_tool).collect(),
    }
}

/// The `openai` definition of one tool: `{"type": "function", "function": {name, description, parameters}}`.
pub fn emit_definition(tool: &Tool) -> Value {
    openai::emit_tool(Target::OpenAi, tool)
}

/// The tool's description for a target, its own unless `:targets` gives another, and where it was written.
pub(crate) fn description_for(target: Target, tool: &Tool) -> (&str, Span) {
    let given = tool.overrides.iter().find(|given| given.target.value == target.as_str());
    let text = given.and_then(|given| given.description.as_ref()).unwrap_or(&tool.description);
    (&text.value, text.span)
}
