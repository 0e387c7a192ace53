//! What each API is sent for a set of tools.
//!
//! The JSON is, key order included, what gptel sends for the same specs, except that an explicit
//! `:additionalProperties` of an argument is kept as written.

mod anthropic;
mod gemini;
mod openai;
mod openai_responses;
mod parameters;

use serde_json::Value;

use crate::spec::Tool;

/// A model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// OpenAI chat completions, and every server that imitates it.
    OpenAi,
    /// OpenAI responses.
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// Ollama's own chat API.
    Ollama,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}

/// The JSON that `target` is sent for `tools`, in their order.
pub fn emit<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Value {
    let tools = tools.into_iter();
    match target {
        Target::OpenAi | Target::Ollama => tools.map(openai::emit_tool).collect(),
        Target::OpenAiResponses => tools.map(openai_responses::emit_tool).collect(),
        Target::Anthropic => tools.map(anthropic::emit_tool).collect(),
        Target::Gemini => gemini::emit_tools(tools),
    }
}

/// The `openai` definition of one tool: `{"type": "function", "function": {name, description, parameters}}`.
pub fn emit_definition(tool: &Tool) -> Value {
    openai::emit_tool(tool)
}
