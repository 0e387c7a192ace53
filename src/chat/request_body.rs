//! What is asked of a chat server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Message;

/// One chat completion to be streamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The conversation, system messages included.
    pub messages: Vec<Message>,
    /// The `openai` definitions of the tools on offer.
    pub tools: Vec<Value>,
    /// Further members of the body.
    pub params: Map<String, Value>,
}
