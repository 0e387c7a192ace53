//! The parameters of a request: the members that a server accepts, and their names.

use serde_json::{Map, Value};

use super::change::{BodyFallback, BodyFallbacks};
use super::model::ChatRequest;
use crate::dialect::{Capabilities, Feature};

/// Members that are set by this program and ignored in `params`.
pub const OWN_MEMBERS: &[&str] = &["model", "messages", "tools", "stream", "stream_options"];

/// The two names of the token limit.
pub(super) const TOKEN_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Members that make llama.cpp report the progress of prompt processing and reuse the cached prompt.
const PROGRESS_MEMBERS: [&str; 2] = ["cache_prompt", "return_progress"];

impl ChatRequest {
    /// Returns the parameters that the server accepts, for any API. `tool_offer` handles `tool_choice`.
    pub(super) fn accepted_params(
        &self,
        has_tools: bool,
        fallbacks: BodyFallbacks,
    ) -> impl Iterator<Item = (&str, &Value)> {
        let params = self.params.iter().map(|(name, value)| (name.as_str(), value));
        params.filter(move |(name, _)| match *name {
            "tool_choice" => false,
            "parallel_tool_calls" if !has_tools => false,
            name => !fallbacks.omits(name),
        })
    }

    /// Returns the name under which a parameter is sent. The token limit has two names, of which a server may accept
    /// only one. Returns `None` if the parameter is also given under the new name.
    pub(super) fn renamed<'n>(&self, name: &'n str, fallbacks: BodyFallbacks) -> Option<&'n str> {
        let [old, new] = TOKEN_LIMITS;
        let (from, to) = match (
            fallbacks.has(BodyFallback::UseMaxTokens),
            fallbacks.has(BodyFallback::UseMaxCompletionTokens),
        ) {
            (true, false) => (new, old),
            (false, true) => (old, new),
            // The models of one server differ. Without exactly one fallback, the name from `:params` is sent.
            (true, true) | (false, false) => return Some(name),
        };
        if name != from {
            Some(name)
        } else if self.params.contains_key(to) {
            None
        } else {
            Some(to)
        }
    }
}

/// Adds server-specific members, unless the worker's `:params` contain them.
pub(super) fn add_extras(
    body: &mut Map<String, Value>,
    server: Capabilities,
    fallbacks: BodyFallbacks,
    has_tools: bool,
) {
    let mut add = |name: &str| {
        if !fallbacks.omits(name) {
            body.entry(name).or_insert(Value::Bool(true));
        }
    };
    if server.supports(Feature::PromptProgress) {
        PROGRESS_MEMBERS.into_iter().for_each(&mut add);
    }
    // Other servers default to true.
    if server.supports(Feature::ParallelToolCalls) && has_tools && server.parallel_calls == Some(true) {
        add("parallel_tool_calls");
    }
}
