//! Whether a call may be made, as a person says it.

use serde::{Deserialize, Serialize};

/// An answer to a call that needs one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Approval {
    /// The call is made.
    Allowed,
    /// It is not; the model is told so, which is a result and no failure.
    Refused {
        /// Why, for the model; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}
