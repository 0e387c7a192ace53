//! Approval of a call by the user.

use serde::{Deserialize, Serialize};

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Approval {
    /// The call is executed.
    Allowed,
    /// The call is not executed. The model receives a regular result that says so.
    Refused {
        /// The reason for the model; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}
