//! Compiles tools to the JSON of each API.
//!
//! For the targets that gptel supports, the JSON is identical to what gptel sends for the same specs, including the
//! key order. One exception: an explicit `:additionalProperties` of an argument is kept as written. The [`support`]
//! tables list what a target drops, weakens or rejects; [`check_target`] reports it for one tool.

mod anthropic;
mod check;
mod gemini;
mod limitation;
mod mcp;
mod model;
mod node;
mod openai;
mod openai_responses;
mod openai_strict;
mod parameters;
pub mod support;

use serde_json::Value;

pub use check::{Limitation, check_count, check_target, check_tools, limitations, takes_any_number};
pub(crate) use limitation::ToolLimitation;
pub use model::Target;
pub(crate) use model::description_for;
pub use node::accepts_type;
pub(crate) use node::{accepts_null, is_of_type, required_names};
pub use openai_strict::strict_parameters;

use crate::spec::Tool;

/// Compiles `tools`, in order, to the JSON for `target`. Omits tools that the target is known to reject.
pub fn emit<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Value {
    let tools = tools.into_iter().filter(|tool| !check::is_omitted(target, tool));
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

/// Returns the `openai` definition of one tool: `{"type": "function", "function": {name, description, parameters}}`.
pub fn emit_definition(tool: &Tool) -> Value {
    openai::emit_tool(Target::OpenAi, tool)
}
