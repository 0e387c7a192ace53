//! The part of a distributed trace that a request belongs to.

use deftool_lang::tool::TraceContext;
use serde::{Deserialize, Serialize};

/// The spans of a trace above the calls of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestTrace {
    /// The span of the submitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitter: Option<TraceContext>,
}

impl RequestTrace {
    /// Whether the request belongs to no trace.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the span of an operation of the request, as the parent of what it sends.
    pub(crate) fn operation(&self) -> Option<TraceContext> {
        self.submitter.clone()
    }
}
