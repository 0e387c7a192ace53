//! A scripted reply of the model.

use std::time::Duration;

use serde_json::{Value, json};

use super::fault::Fault;
use super::model::Ending;

/// The maximum count of [`Part::Tokens`].
pub(super) const MAX_TOKENS: u32 = 100_000;

/// The reasoning of a reply that must start with some.
const THOUGHT: &str = "Let me think.";

/// A scripted reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(super) parts: Vec<Part>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) chunk: Option<usize>,
    pub(super) every: Option<Duration>,
    pub(super) delay: Duration,
    pub(super) ending: Ending,
    pub(super) headers: Vec<(String, String)>,
    pub(super) faults: Vec<&'static Fault>,
}

/// Token counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    /// The tokens of the prompt that were read from a cache.
    pub(super) cached: u64,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
    /// A call. The arguments are sent unchanged, valid JSON or not.
    Call {
        name: String,
        arguments: String,
        id: Option<String>,
    },
    /// This number of short words, one per delta.
    Tokens(u32),
    /// A pause.
    Wait(Duration),
}

impl Reply {
    /// Returns an empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(text.into()))
    }

    /// Appends reasoning.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.part(Part::Reasoning(text.into()))
    }

    /// Appends a call of the tool `name`.
    #[must_use]
    pub fn call(self, name: impl Into<String>, arguments: &Value) -> Self {
        self.part(Part::Call { name: name.into(), arguments: arguments.to_string(), id: None })
    }

    /// Appends a pause.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.part(Part::Wait(time))
    }

    /// Sets the wait before each delta.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = Some(every);
        self
    }

    /// Sets the ending.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: &'static Fault) -> Self {
        self.faults.push(fault);
        self
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub(super) fn finish_reason(&self) -> &str {
        let has_call = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.finish.as_deref().unwrap_or(if has_call { "tool_calls" } else { "stop" })
    }

    /// Whether the reply starts with reasoning.
    pub(super) fn has_thought(&self) -> bool {
        let first = self.parts.iter().find(|part| !matches!(part, Part::Wait(_)));
        matches!(first, Some(Part::Reasoning(_)))
    }

    /// Returns the reply after a short reasoning.
    pub(super) fn after_thought(mut self) -> Self {
        self.parts.insert(0, Part::Reasoning(String::from(THOUGHT)));
        self
    }

    pub(super) fn usage_json(&self) -> Value {
        let tokens: u64 = self.parts.iter().map(Part::tokens).sum();
        let estimated = Usage { prompt: 10, completion: tokens.max(1), cached: 0 };
        let Usage { prompt, completion, cached } = self.usage.unwrap_or(estimated);
        let mut usage = json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        });
        if let (Value::Object(members), 1..) = (&mut usage, cached) {
            members.insert(String::from("prompt_tokens_details"), json!({"cached_tokens": cached}));
        }
        usage
    }
}

impl Part {
    /// Estimates the number of tokens.
    fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.split_whitespace().count() as u64,
            Self::Call { arguments, .. } => 4 + arguments.len() as u64 / 4,
            Self::Tokens(count) => u64::from(*count),
            Self::Wait(_) => 0,
        }
    }

    /// Returns a call as text, in the format of many model families.
    pub(super) fn as_written(&self) -> Option<String> {
        let Self::Call { name, arguments, .. } = self else { return None };
        Some(format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {arguments}}}</tool_call>"))
    }
}
