//! What a vendor or a server program does, as data: `defdialect`.

use serde_json::{Map, Value};

use crate::text::{SourceId, Span, Spanned};

/// The dialects that are built in, in the order of the documentation.
pub const DIALECTS: [&str; 31] = [
    "openai",
    "openai-com",
    "llama-cpp",
    "lm-studio",
    "ollama",
    "vllm",
    "sglang",
    "openrouter",
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "kimi",
    "glm",
    "minimax",
    "qwen",
    "xai",
    "azure",
    "azure-ai",
    "bedrock",
    "cohere",
    "vertex",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "perplexity",
    "nvidia",
    "huggingface",
    "copilot",
    "any",
];

/// A dialect as written. Its keys and words are those of [`reference`](super::reference).
#[derive(Debug, Clone)]
pub struct DialectSpec {
    /// The file that defines it.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// The name.
    pub name: Spanned<String>,
    /// The other keys with their values: words are strings, durations are seconds, plists are
    /// objects, and lists of plists are arrays.
    pub rows: Map<String, Value>,
}
