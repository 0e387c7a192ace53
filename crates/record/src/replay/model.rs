//! The options and the time of a replay, and its differences from the recording.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::compare::Difference;
use crate::secrets::Secrets;

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// Whether to answer a request that differs from the recorded request.
    pub lenient: bool,
    /// Whether to use recorded tool results instead of running tools.
    pub recorded_tools: bool,
    /// Secrets to redact in differences.
    pub secrets: Secrets,
}

/// The time in a replay: that of the last recorded line that was reached.
#[derive(Debug, Clone, Default)]
pub struct RecordedTime(Arc<AtomicU64>);

impl RecordedTime {
    /// Returns the milliseconds since the submission of the request.
    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the time. It never decreases, even if the recorded time does.
    pub fn advance_to(&self, at_ms: u64) {
        self.0.fetch_max(at_ms, Ordering::AcqRel);
    }
}

/// A difference between a replay and its recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Number of the request in the recording, from 1.
    pub request: usize,
    /// The part of the request: `turn 2`, `call 1 of count`, `outcome`.
    pub place: String,
    /// Description.
    pub message: String,
    /// The differing field, if there is exactly one.
    #[serde(flatten)]
    pub field: Option<Difference>,
    /// Whether the recording has several requests. The number is shown only in that case.
    #[serde(skip)]
    pub(super) is_one_of_many: bool,
}

impl ReplayDifference {
    /// Whether it is a difference of a request body.
    pub fn is_of_a_body(&self) -> bool {
        self.field.is_some() && self.place.starts_with("turn ")
    }
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one_of_many {
            write!(f, "request {}, ", self.request)?;
        }
        write!(f, "{}: {}", self.place, self.message)
    }
}
