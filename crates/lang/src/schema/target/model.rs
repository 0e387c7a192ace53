//! The target APIs.

use serde_json::{Value, json};

use crate::spec::{Origin, Tool};
use crate::text::Span;

/// A model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// OpenAI chat completions, and every compatible server.
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
    /// The llama.cpp server, which converts every schema to a grammar.
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

    /// Returns the name on the command line.
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

    /// Returns a one-line description.
    pub fn summary(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI chat completions, and every compatible server",
            Self::OpenAiResponses => "OpenAI responses",
            Self::OpenAiStrict => "OpenAI chat completions with strict schemas",
            Self::Anthropic => "Anthropic messages",
            Self::Gemini => "Google Gemini",
            Self::Ollama => "Ollama's own chat API",
            Self::Mcp => "the Model Context Protocol",
            Self::LlamaCpp => {
                "the llama.cpp server, which converts schemas to a grammar that constrains sampling"
            }
        }
    }

    /// Returns whether a tool that the target rejects is omitted from the output.
    ///
    /// True if the rejection is certain: one rejected tool makes the whole request fail.
    pub fn omits_refused_tools(self) -> bool {
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

/// Returns the tool's description for a target and its span: the one in `:targets`, or else the tool's own.
pub(crate) fn description_for(target: Target, tool: &Tool) -> (&str, Span) {
    let given = tool.overrides.iter().find(|given| given.target.value == target.as_str());
    let text = given.and_then(|given| given.description.as_ref()).unwrap_or(&tool.description);
    (&text.value, text.span)
}

/// Returns the description to send. For a tool of Emacs without one it is `{}`, as gptel sends it.
pub(super) fn emit_description(target: Target, tool: &Tool) -> Value {
    match description_for(target, tool).0 {
        "" if tool.origin != Origin::Spec && tool.lacks_description() => json!({}),
        text => Value::from(text),
    }
}
