//! The features in which servers differ.

use serde::Deserialize;

/// A feature in which servers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// `eager_input_streaming` of a tool: its arguments arrive as they are generated.
    EarlyArguments,
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
        Self::EarlyArguments,
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
            Self::EarlyArguments => "`eager_input_streaming` of tools",
            Self::OverflowRefusal => "a prompt larger than the context",
            Self::FreeOnDisconnect => "a slot whose client left during the prompt",
            Self::Images => "images in messages of the user",
            Self::Audio => "audio in messages of the user",
        }
    }
}

/// A server's handling of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The server supports the feature.
    Supported,
    /// The server silently ignores the feature.
    Ignored,
    /// The server answers with an error.
    Rejected,
}
