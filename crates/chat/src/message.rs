//! Messages of a conversation, in the format of the chat completions API.

use std::sync::Arc;

use deftool_lang::tool::Attachment;
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
        /// The text. It contains the line of each attachment.
        content: String,
        /// The images and audio.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A message of the model.
    Assistant {
        /// The text; empty if the model only called tools.
        content: String,
        /// The calls of normal tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<MessageToolCall>,
        /// What is sent again because of the reply, such as signed reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "definitions", ts(optional))]
        received: Option<Arc<Received>>,
    },
    /// The result of one call.
    Tool {
        /// The id of the call.
        tool_call_id: String,
        /// The result: JSON, or the text of a tool that returns text, with the line of each attachment. The beginning of a
        /// longer one than the worker sends.
        content: String,
        /// The images and audio of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
}

impl Message {
    /// Creates a message of the user without attachments.
    pub fn user(content: impl Into<String>) -> Self {
        Self::User { content: content.into(), attachments: Vec::new() }
    }

    /// Creates the result of a call without attachments.
    pub fn tool(tool_call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Tool { tool_call_id: tool_call_id.into(), content: content.into(), attachments: Vec::new() }
    }

    /// Returns the attachments.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::User { attachments, .. } | Self::Tool { attachments, .. } => attachments,
            Self::System { .. } | Self::Assistant { .. } => &[],
        }
    }

    /// Returns the attachments, to restore their bytes.
    pub fn attachments_mut(&mut self) -> &mut [Attachment] {
        match self {
            Self::User { attachments, .. } | Self::Tool { attachments, .. } => attachments,
            Self::System { .. } | Self::Assistant { .. } => &mut [],
        }
    }
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
