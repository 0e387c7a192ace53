//! What exit calls leave behind.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::RawArguments;

/// An exit call, recorded and never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The exit tool.
    pub tool_name: String,
    /// Its arguments: an object, or what came instead of one as a string.
    pub arguments: Value,
    /// Why the arguments are not an object, if they are not: the model's reply was cut off, or is not JSON.
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
