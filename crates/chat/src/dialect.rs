//! The features that each server supports, ignores or rejects: a table of facts, plus the properties that a server
//! reports.
//!
//! In: a [`Dialect`] and the answers to the probes. Out: [`Capabilities`], which determine request bodies, timers and
//! the interpretation of replies. Every fact has a source. A server without a fact is assumed to behave like `OpenAI`;
//! a rejected request then triggers a [`super::BodyFallback`]. `docs/servers.md` is generated from this table.
//!
//! Dialect detection is not part of this module, because it needs a socket.

use deftool_lang::spec::Dialect;
use serde::{Deserialize, Serialize};

use crate::fallback::FormSet;

/// A feature in which servers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// `tool_choice` as an object that names one tool.
    NamedTool,
    /// `stream_options.include_usage`.
    StreamUsage,
    /// `parallel_tool_calls`.
    ParallelToolCalls,
    /// `return_progress` and `cache_prompt`.
    PromptProgress,
    /// `tools` for a model whose template does not support tools.
    ToolsForAnyModel,
    /// Response headers while a request is queued or its model is being loaded.
    EarlyHeaders,
    /// An error for a prompt that is larger than the context.
    OverflowRefusal,
    /// A slot that becomes free as soon as its client disconnects.
    FreeOnDisconnect,
    /// `image_url` parts in messages of the user, also after results.
    Images,
    /// `input_audio` parts in messages of the user.
    Audio,
}

impl Feature {
    /// All features, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::NamedTool,
        Self::StreamUsage,
        Self::ParallelToolCalls,
        Self::PromptProgress,
        Self::ToolsForAnyModel,
        Self::EarlyHeaders,
        Self::OverflowRefusal,
        Self::FreeOnDisconnect,
        Self::Images,
        Self::Audio,
    ];

    /// The title in the documentation.
    pub fn title(self) -> &'static str {
        match self {
            Self::NamedTool => "`tool_choice` that names one tool",
            Self::StreamUsage => "token counts in the stream",
            Self::ParallelToolCalls => "`parallel_tool_calls`",
            Self::PromptProgress => "`return_progress`, `cache_prompt`",
            Self::ToolsForAnyModel => "`tools` for a model without tool support",
            Self::EarlyHeaders => "response headers while a request waits",
            Self::OverflowRefusal => "a prompt larger than the context",
            Self::FreeOnDisconnect => "a slot whose client left during the prompt",
            Self::Images => "images in messages of the user",
            Self::Audio => "audio in messages of the user",
        }
    }
}

/// A server's handling of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The server supports the feature.
    Supported,
    /// The server silently ignores the feature.
    Ignored,
    /// The server answers with an error.
    Rejected,
}

/// A known property of a dialect.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    /// The server's dialect.
    pub dialect: Dialect,
    /// The feature.
    pub feature: Feature,
    /// The server's support.
    pub support: Support,
    /// The exact behaviour, as a clause.
    pub detail: &'static str,
    /// The source of the fact, with the date if it was looked up.
    pub source: &'static str,
}

const fn fact(
    dialect: Dialect,
    feature: Feature,
    support: Support,
    detail: &'static str,
    source: &'static str,
) -> Fact {
    Fact { dialect, feature, support, detail, source }
}

/// All known facts.
pub const FACTS: &[Fact] = {
    use Dialect::{LlamaCpp, LmStudio, Ollama, OpenAi, OpenRouter, Vllm};
    use Feature::{
        Audio, EarlyHeaders, FreeOnDisconnect, Images, NamedTool, OverflowRefusal, ParallelToolCalls,
        PromptProgress, StreamUsage, ToolsForAnyModel,
    };
    use Support::{Ignored, Rejected, Supported};
    &[
        fact(
            OpenAi,
            NamedTool,
            Supported,
            "that tool is called",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            OpenAi,
            StreamUsage,
            Supported,
            "in a last chunk without choices",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            OpenAi,
            ParallelToolCalls,
            Supported,
            "true by default",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            LlamaCpp,
            NamedTool,
            Ignored,
            "an object is read as `auto`",
            "tried on the real server, 2026-11",
        ),
        fact(
            LlamaCpp,
            StreamUsage,
            Supported,
            "in a last chunk without choices",
            "recorded in crates/chat/tests/wire/llama-cpp/02",
        ),
        fact(
            LlamaCpp,
            ParallelToolCalls,
            Supported,
            "if `/props` contains `supports_parallel_tool_calls`",
            "tried on the real server, 2026-11",
        ),
        fact(
            LlamaCpp,
            PromptProgress,
            Supported,
            "`prompt_progress` in chunks without text",
            "recorded in crates/chat/tests/wire/llama-cpp/25",
        ),
        fact(
            LlamaCpp,
            EarlyHeaders,
            Ignored,
            "no byte before a slot is free",
            "recorded in crates/chat/tests/wire/llama-cpp-special/83",
        ),
        fact(
            LlamaCpp,
            OverflowRefusal,
            Supported,
            "400 `exceed_context_size_error` with both sizes",
            "recorded in crates/chat/tests/wire/llama-cpp/34",
        ),
        fact(
            LlamaCpp,
            FreeOnDisconnect,
            Ignored,
            "busy until the prompt is done: 25 s for 7,000 tokens",
            "measured; ggml-org/llama.cpp#15232",
        ),
        fact(
            Vllm,
            NamedTool,
            Supported,
            "that tool is called",
            "docs.vllm.ai/en/latest/features/tool_calling, 2026-11",
        ),
        fact(
            Vllm,
            ToolsForAnyModel,
            Rejected,
            "400 unless it was started with `--enable-auto-tool-choice` and a parser",
            "docs.vllm.ai/en/latest/features/tool_calling, soapbucket/sbproxy#591, 2026-11",
        ),
        fact(
            Ollama,
            NamedTool,
            Ignored,
            "`tool_choice` is ignored, even `required`",
            "ollama/ollama#17921, 2026-11",
        ),
        fact(
            Ollama,
            StreamUsage,
            Supported,
            "in a last chunk without choices",
            "docs.ollama.com/api/openai-compatibility, 2026-11",
        ),
        fact(
            Ollama,
            ToolsForAnyModel,
            Rejected,
            "400 `does not support tools`",
            "continuedev/continue#10876, 2026-11",
        ),
        fact(
            Ollama,
            EarlyHeaders,
            Ignored,
            "up to 512 requests wait, then 503",
            "ollama/ollama#4144, 2026-11",
        ),
        fact(Ollama, OverflowRefusal, Ignored, "the oldest part is silently cut off", "ollama/ollama#18107"),
        fact(
            LmStudio,
            NamedTool,
            Rejected,
            "400: only none, auto, required",
            "lmstudio-ai/lmstudio-bug-tracker#670, 2026-11",
        ),
        fact(
            LmStudio,
            EarlyHeaders,
            Ignored,
            "a request loads its model first",
            "lmstudio.ai/docs/api/headless, 2026-11",
        ),
        fact(
            OpenRouter,
            NamedTool,
            Supported,
            "404 if no provider of the model supports it",
            "zed-industries/zed#36094, 2026-11",
        ),
        fact(
            OpenRouter,
            ToolsForAnyModel,
            Rejected,
            "404 `No endpoints found that support tool use`",
            "evalstate/fast-agent#122, 2026-11",
        ),
        fact(
            OpenRouter,
            EarlyHeaders,
            Supported,
            "and comments, `: OPENROUTER PROCESSING`",
            "openrouter.ai/docs/api-reference/streaming",
        ),
        fact(
            OpenAi,
            Images,
            Supported,
            "400 `only supported by certain models`, and for images in results",
            "platform.openai.com/docs/guides/images-vision, vllm-project/vllm#11629, 2026-11",
        ),
        fact(
            OpenAi,
            Audio,
            Supported,
            "by models with `audio` in their name",
            "platform.openai.com/docs/guides/audio, 2026-11",
        ),
        fact(
            LlamaCpp,
            Images,
            Supported,
            "if `/props` contains `modalities.vision`; otherwise 500 `provide the mmproj`",
            "llama.cpp, docs/multimodal.md, 2026-11",
        ),
        fact(
            LlamaCpp,
            Audio,
            Supported,
            "if `/props` contains `modalities.audio`",
            "llama.cpp, docs/multimodal.md, 2026-11",
        ),
        fact(
            Vllm,
            Images,
            Supported,
            "400 `is not a multimodal model` for others; images in results are rejected",
            "vllm-project/vllm#43203, 2026-05",
        ),
        fact(
            Ollama,
            Images,
            Supported,
            "if `/api/show` lists `vision`; otherwise 400 `does not support image input`",
            "docs.ollama.com/api/openai-compatibility, ollama/ollama#17301, 2026-11",
        ),
        fact(
            LmStudio,
            Images,
            Supported,
            "400 `Model does not support images` for others",
            "lmstudio-ai/lmstudio-bug-tracker#473, 2026-11",
        ),
        fact(
            OpenRouter,
            Images,
            Supported,
            "404 `No endpoints found that support image input` for others",
            "openrouter.ai/docs/features/multimodal/images, nexu-io/nexu#733, 2026-11",
        ),
    ]
};

/// All dialects, in the order of the documentation.
pub const DIALECTS: [Dialect; 6] = [
    Dialect::OpenAi,
    Dialect::LlamaCpp,
    Dialect::Vllm,
    Dialect::Ollama,
    Dialect::LmStudio,
    Dialect::OpenRouter,
];

/// Returns the display name of a dialect.
pub fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAi => "OpenAI",
        Dialect::LlamaCpp => "llama.cpp",
        Dialect::Vllm => "vLLM",
        Dialect::Ollama => "Ollama",
        Dialect::LmStudio => "LM Studio",
        Dialect::OpenRouter => "OpenRouter",
    }
}

/// The known properties of one server: its dialect, and what it reports about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// The server's dialect.
    pub dialect: Dialect,
    /// Maximum number of tokens of a prompt and its reply together; `None`: not reported.
    pub context: Option<u64>,
    /// Whether the model's template supports several calls in one message; `None`: not reported.
    pub parallel_calls: Option<bool>,
    /// Whether the model's template supports tools; `None`: not reported.
    pub tools: Option<bool>,
    /// Whether the server reports which slots are busy; `None`: not reported.
    pub slots_page: Option<bool>,
    /// Whether the model takes images; `None`: not reported.
    pub images: Option<bool>,
    /// Whether the model takes audio; `None`: not reported.
    pub audio: Option<bool>,
    /// The forms of calls written as text that the names and the chat template of the model indicate.
    #[serde(skip_serializing_if = "FormSet::is_empty")]
    pub text_forms: FormSet,
}

impl Capabilities {
    /// Creates capabilities from a dialect. All other properties are unknown.
    pub fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            context: None,
            parallel_calls: None,
            tools: None,
            slots_page: None,
            images: None,
            audio: None,
            text_forms: FormSet::default(),
        }
    }

    /// Whether the server is a hosted API, or one is assumed. Errors of hosted APIs before a reply are usually temporary.
    /// Those of a local server are usually permanent: llama.cpp answers 500 if the template rejects the messages.
    pub fn is_hosted(&self) -> bool {
        match self.dialect {
            Dialect::OpenAi | Dialect::OpenRouter => true,
            Dialect::LlamaCpp | Dialect::Vllm | Dialect::Ollama | Dialect::LmStudio => false,
        }
    }

    /// Returns the server's support for `feature`, or `None` if it is unknown.
    pub fn support(&self, feature: Feature) -> Option<Support> {
        let fact = FACTS.iter().find(|fact| fact.dialect == self.dialect && fact.feature == feature);
        fact.map(|fact| fact.support)
    }

    /// Whether the server is known to support `feature`.
    pub fn supports(&self, feature: Feature) -> bool {
        self.support(feature) == Some(Support::Supported)
    }

    /// Whether the server is known not to support `feature`.
    pub fn lacks(&self, feature: Feature) -> bool {
        matches!(self.support(feature), Some(Support::Ignored | Support::Rejected))
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::of(Dialect::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_unique_and_have_a_source() {
        for (index, fact) in FACTS.iter().enumerate() {
            let same = |other: &&Fact| (other.dialect, other.feature) == (fact.dialect, fact.feature);
            assert_eq!(FACTS.iter().filter(same).count(), 1, "{index}: {fact:?}");
            assert!(!fact.source.is_empty() && !fact.detail.is_empty(), "{fact:?}");
        }
    }

    #[test]
    fn recordings_contain_capabilities() {
        let read = |text: &str| serde_json::from_str::<Capabilities>(text).unwrap();
        let known =
            Capabilities { context: Some(4096), tools: Some(true), ..Capabilities::of(Dialect::Ollama) };
        assert_eq!(read(&serde_json::to_string(&known).unwrap()), known);
        assert_eq!(read(r#"{"dialect": "vllm", "shaped": true}"#), Capabilities::of(Dialect::Vllm));
    }
}
