//! Signals: recorded exit calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RawArguments;

/// An exit call, which is recorded and never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The exit tool.
    pub tool_name: String,
    /// The arguments: an object, or invalid arguments as a string.
    pub arguments: Value,
    /// The reason why the arguments are not an object: the reply was cut off, or they are not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// Milliseconds since the request was submitted.
    pub emitted_at_ms: u64,
}

impl Signal {
    pub(super) fn new(tool_name: &str, arguments: &RawArguments, emitted_at_ms: u64) -> Self {
        let (arguments, arguments_error) = match arguments {
            RawArguments::Object { value } => (Value::Object(value.clone()), None),
            RawArguments::Malformed { text, error, .. } => (Value::String(text.clone()), Some(error.clone())),
        };
        Self { tool_name: tool_name.to_owned(), arguments, arguments_error, emitted_at_ms }
    }
}
