//! What each server takes, ignores and refuses: one table, and what a server told of itself beside it.
//!
//! In: a [`Dialect`] and the answers to the probes. Out: [`Capabilities`], by which request bodies are shaped, timers
//! chosen and replies judged. Every fact has its source; where there is none for a server, it is taken to do as
//! `OpenAI` does, and a refusal teaches otherwise ([`super::Swap`]). `docs/servers.md` holds the same table, made of
//! this one.
//!
//! Absent: how a server is told from another; that takes a socket.

use serde::{Deserialize, Serialize};

use crate::spec::Dialect;

/// Something that servers differ in.
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
    /// `tools` for a model whose template has no place for them.
    ToolsForAnyModel,
    /// Response headers before the request's turn has come and its model is loaded.
    EarlyHeaders,
    /// A refusal where the prompt is larger than the context.
    OverflowRefusal,
    /// A slot that is free as soon as its client has gone.
    FreeOnDisconnect,
}

impl Feature {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::NamedTool,
        Self::StreamUsage,
        Self::ParallelToolCalls,
        Self::PromptProgress,
        Self::ToolsForAnyModel,
        Self::EarlyHeaders,
        Self::OverflowRefusal,
        Self::FreeOnDisconnect,
    ];

    /// What it is, for a reader.
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
        }
    }
}

/// What a server does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Does it.
    Takes,
    /// Says nothing and does not.
    Ignores,
    /// Answers with an error.
    Refuses,
}

/// One thing that is known of a dialect.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    /// Whose.
    pub dialect: Dialect,
    /// What about.
    pub feature: Feature,
    /// What it does.
    pub fate: Fate,
    /// What exactly, in a clause.
    pub says: &'static str,
    /// Where that was seen or stands; dated where it was looked up.
    pub source: &'static str,
}

const fn fact(
    dialect: Dialect,
    feature: Feature,
    fate: Fate,
    says: &'static str,
    source: &'static str,
) -> Fact {
    Fact { dialect, feature, fate, says, source }
}

/// All that is known.
pub const FACTS: &[Fact] = {
    use Dialect::{LlamaCpp, LmStudio, Ollama, OpenAi, OpenRouter, Vllm};
    use Fate::{Ignores, Refuses, Takes};
    use Feature::{
        EarlyHeaders, FreeOnDisconnect, NamedTool, OverflowRefusal, ParallelToolCalls, PromptProgress,
        StreamUsage, ToolsForAnyModel,
    };
    &[
        fact(
            OpenAi,
            NamedTool,
            Takes,
            "that tool is called",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            OpenAi,
            StreamUsage,
            Takes,
            "in a last chunk without choices",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            OpenAi,
            ParallelToolCalls,
            Takes,
            "true unless told otherwise",
            "platform.openai.com/docs/api-reference/chat/create",
        ),
        fact(
            LlamaCpp,
            NamedTool,
            Ignores,
            "an object is read as `auto`",
            "tried on the real server, 2026-11",
        ),
        fact(
            LlamaCpp,
            StreamUsage,
            Takes,
            "in a last chunk without choices",
            "recorded in tests/wire/llama-cpp/02",
        ),
        fact(
            LlamaCpp,
            ParallelToolCalls,
            Takes,
            "where `/props` says `supports_parallel_tool_calls`",
            "tried on the real server, 2026-11",
        ),
        fact(
            LlamaCpp,
            PromptProgress,
            Takes,
            "`prompt_progress` in chunks without text",
            "recorded in tests/wire/llama-cpp/25",
        ),
        fact(
            LlamaCpp,
            EarlyHeaders,
            Ignores,
            "no byte before a slot is free",
            "recorded in tests/wire/llama-cpp-special/83",
        ),
        fact(
            LlamaCpp,
            OverflowRefusal,
            Takes,
            "400 `exceed_context_size_error` with both sizes",
            "recorded in tests/wire/llama-cpp/34",
        ),
        fact(
            LlamaCpp,
            FreeOnDisconnect,
            Ignores,
            "busy until the prompt is done: 25 s for 7,000 tokens",
            "measured; ggml-org/llama.cpp#15232",
        ),
        fact(
            Vllm,
            NamedTool,
            Takes,
            "that tool is called",
            "docs.vllm.ai/en/latest/features/tool_calling, 2026-11",
        ),
        fact(
            Vllm,
            ToolsForAnyModel,
            Refuses,
            "400 unless it was started with `--enable-auto-tool-choice` and a parser",
            "docs.vllm.ai/en/latest/features/tool_calling, soapbucket/sbproxy#591, 2026-11",
        ),
        fact(
            Ollama,
            NamedTool,
            Ignores,
            "`tool_choice` is not looked at, `required` neither",
            "ollama/ollama#17921, 2026-11",
        ),
        fact(
            Ollama,
            StreamUsage,
            Takes,
            "in a last chunk without choices",
            "docs.ollama.com/api/openai-compatibility, 2026-11",
        ),
        fact(
            Ollama,
            ToolsForAnyModel,
            Refuses,
            "400 `does not support tools`",
            "continuedev/continue#10876, 2026-11",
        ),
        fact(
            Ollama,
            EarlyHeaders,
            Ignores,
            "up to 512 requests wait, then 503",
            "ollama/ollama#4144, 2026-11",
        ),
        fact(
            Ollama,
            OverflowRefusal,
            Ignores,
            "the oldest part is cut off without a word",
            "ollama/ollama#18107",
        ),
        fact(
            LmStudio,
            NamedTool,
            Refuses,
            "400: none, auto, required",
            "lmstudio-ai/lmstudio-bug-tracker#670, 2026-11",
        ),
        fact(
            LmStudio,
            EarlyHeaders,
            Ignores,
            "a request loads its model first",
            "lmstudio.ai/docs/api/headless, 2026-11",
        ),
        fact(
            OpenRouter,
            NamedTool,
            Takes,
            "404 where no provider of the model does",
            "zed-industries/zed#36094, 2026-11",
        ),
        fact(
            OpenRouter,
            ToolsForAnyModel,
            Refuses,
            "404 `No endpoints found that support tool use`",
            "evalstate/fast-agent#122, 2026-11",
        ),
        fact(
            OpenRouter,
            EarlyHeaders,
            Takes,
            "and comments, `: OPENROUTER PROCESSING`",
            "openrouter.ai/docs/api-reference/streaming",
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

/// A dialect's name in prose.
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

/// What is known of one server: its dialect, and what it told of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded")]
pub struct Capabilities {
    /// Whose server it is.
    pub dialect: Dialect,
    /// Whether requests are shaped for it. False only in recordings from before there were dialects: their requests
    /// were not, and are sent again as they were.
    pub shaped: bool,
    /// Tokens that a prompt and its reply may have together; `None`: it did not tell.
    pub context: Option<u64>,
    /// Whether the model's template takes several calls in one message; `None`: it did not tell.
    pub parallel_calls: Option<bool>,
    /// Whether the model's template has a place for tools; `None`: it did not tell.
    pub tools: Option<bool>,
    /// Whether it shows which of its slots are busy; `None`: it did not tell.
    pub slots_page: Option<bool>,
}

impl Capabilities {
    /// A server of which no more than its dialect is known.
    pub fn of(dialect: Dialect) -> Self {
        Self { dialect, shaped: true, context: None, parallel_calls: None, tools: None, slots_page: None }
    }

    /// What it does with `feature`; `None`: nothing is known.
    pub fn fate(&self, feature: Feature) -> Option<Fate> {
        let fact = FACTS.iter().find(|fact| fact.dialect == self.dialect && fact.feature == feature);
        fact.map(|fact| fact.fate)
    }

    /// Whether it is known to do it.
    pub fn takes(&self, feature: Feature) -> bool {
        self.fate(feature) == Some(Fate::Takes)
    }

    /// Whether it is known not to do it.
    pub fn lacks(&self, feature: Feature) -> bool {
        matches!(self.fate(feature), Some(Fate::Ignores | Fate::Refuses))
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::of(Dialect::default())
    }
}

/// As a recording holds it: whole, or, in older ones, whether it is a llama.cpp.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    IsLlamaCpp(bool),
    Whole {
        #[serde(default)]
        dialect: Dialect,
        #[serde(default)]
        shaped: bool,
        #[serde(default)]
        context: Option<u64>,
        #[serde(default)]
        parallel_calls: Option<bool>,
        #[serde(default)]
        tools: Option<bool>,
        #[serde(default)]
        slots_page: Option<bool>,
    },
}

impl From<Recorded> for Capabilities {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::IsLlamaCpp(is_it) => {
                let dialect = if is_it { Dialect::LlamaCpp } else { Dialect::OpenAi };
                Self { shaped: false, ..Self::of(dialect) }
            }
            Recorded::Whole { dialect, shaped, context, parallel_calls, tools, slots_page } => {
                Self { dialect, shaped, context, parallel_calls, tools, slots_page }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_known_once_and_has_a_source() {
        for (index, fact) in FACTS.iter().enumerate() {
            let same = |other: &&Fact| (other.dialect, other.feature) == (fact.dialect, fact.feature);
            assert_eq!(FACTS.iter().filter(same).count(), 1, "{index}: {fact:?}");
            assert!(!fact.source.is_empty() && !fact.says.is_empty(), "{fact:?}");
        }
    }

    #[test]
    fn capabilities_of_recordings_old_and_new() {
        let read = |text: &str| serde_json::from_str::<Capabilities>(text).unwrap();
        let old = |dialect| Capabilities { shaped: false, ..Capabilities::of(dialect) };
        assert_eq!(read("true"), old(Dialect::LlamaCpp));
        assert_eq!(read("false"), old(Dialect::OpenAi));
        let new =
            Capabilities { context: Some(4096), tools: Some(true), ..Capabilities::of(Dialect::Ollama) };
        assert_eq!(read(&serde_json::to_string(&new).unwrap()), new);
        assert_eq!(read(r#"{"dialect": "vllm", "shaped": true}"#), Capabilities::of(Dialect::Vllm));
    }
}
