//! What is known of one server: its dialect, and what it reports about itself.

use serde::{Deserialize, Serialize};

use super::feature::{Feature, Support};
use super::known::Dialect;
use crate::fallback::FormSet;

/// The known properties of one server: its dialect, and what it reports about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
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
        Self { dialect, ..Self::default() }
    }

    /// Whether the server is a hosted API, or one is assumed. Errors of hosted APIs before a reply are usually temporary.
    /// Those of a local server are usually permanent: llama.cpp answers 500 if the template rejects the messages.
    pub fn is_hosted(&self) -> bool {
        !self.dialect.is_local()
    }

    /// Returns the server's support for `feature`, or `None` if it is unknown.
    pub fn support(&self, feature: Feature) -> Option<Support> {
        self.dialect.feature(feature).map(|row| row.support)
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
