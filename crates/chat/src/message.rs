//! Messages of a conversation, in the format of the chat completions API.

use serde::{Deserialize, Serialize};

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
    /// The call's id, unique in the conversation: nine characters of `[A-Za-z0-9]`, a format that every server accepts.
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
    /// The arguments as JSON text, always an object.
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
