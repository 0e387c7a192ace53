//! Messages of a conversation, in the format of the chat completions API.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::received::Received;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions.
    System {
        /// The text.
        content: String,
    },
    /// A message of the user.
    User {
        /// The text.
        content: String,
    },
    /// A message of the model.
    Assistant {
        /// The text; empty if the model only called tools.
        content: String,
        /// The calls of normal tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<MessageToolCall>,
        /// The parts of the reply that only its server can read, such as signed reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "definitions", ts(optional))]
        received: Option<Arc<Received>>,
    },
    /// The result of one call.
    Tool {
        /// The id of the call.
        tool_call_id: String,
        /// The result: JSON, or the text of a tool that returns text.
        content: String,
    },
}

/// A call inside an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct MessageToolCall {
    /// The call's id, unique in the conversation: the id of the server, unless it sent none or repeated one.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The called function.
    pub function: FunctionCall,
}

/// Name and arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct FunctionCall {
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, always an object, byte for byte as the model wrote it.
    pub arguments: String,
}

impl MessageToolCall {
    /// Creates a function call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: String::from("function"),
            function: FunctionCall { name: name.into(), arguments: arguments.into() },
        }
    }
}

/// Whether a result is an error, in the form in which a failed call is answered. Lines of the BIOS may follow it.
pub(crate) fn is_error_result(content: &str) -> bool {
    let is_text = |value: Option<&Value>| value.is_some_and(Value::is_string);
    content.starts_with("{\"error\":")
        && serde_json::Deserializer::from_str(content).into_iter::<Value>().next().is_some_and(|answer| {
            let error = answer.ok().and_then(|mut answer| answer.get_mut("error").map(Value::take));
            error.is_some_and(|error| is_text(error.get("kind")) && is_text(error.get("message")))
        })
}

/// Characters of an id that every server accepts.
const ID_ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Returns an id of nine letters and digits, a format that every server accepts.
pub(crate) fn portable_id(mut bits: u64) -> String {
    (0..9)
        .map(|_| {
            let index = (bits % ID_ALPHABET.len() as u64) as usize;
            bits /= ID_ALPHABET.len() as u64;
            ID_ALPHABET.get(index).map_or('A', |&byte| char::from(byte))
        })
        .collect()
}
