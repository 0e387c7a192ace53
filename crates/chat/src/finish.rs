//! Finish reasons: what the values that servers send mean. The values are rows of the dialects.

use deftool_lang::text::one_line;
use serde::{Deserialize, Serialize};

/// Maximum length of a reported value, in characters.
const MAX_SHOWN: usize = 64;

/// Maximum length of a reported explanation, in characters.
const MAX_DETAIL: usize = 500;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishMeaning {
    /// The model finished.
    Finished,
    /// The model called tools.
    Called,
    /// The server paused the reply, and continues it when it gets it back.
    Paused,
    /// A limit was reached.
    CutShort,
    /// A filter ended the reply, or the model refused.
    Filtered,
    /// The server failed. The reply is not complete.
    Failed,
}

/// Returns a finish reason for a message.
pub(crate) fn shown_finish_reason(reason: &str) -> String {
    one_line(reason.chars().take(MAX_SHOWN).collect())
}

/// Returns the explanation of a finish reason for a message.
pub(crate) fn shown_finish_detail(detail: &str) -> String {
    one_line(detail.chars().take(MAX_DETAIL).collect())
}
