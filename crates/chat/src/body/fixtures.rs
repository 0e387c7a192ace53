//! Requests for the tests of this folder.

use std::sync::Arc;

use serde_json::{Value, json};

use super::model::{BodyForm, ChatRequest};
use crate::message::{Message, MessageToolCall};
use crate::received::{Opaque, Received, ReplySource};

/// Returns a request whose model called `f` with this id, and whose server sent opaque parts with the reply.
pub(super) fn request(model: &str, id: &str) -> ChatRequest {
    let members = json!({"reasoning_content": "hm"}).as_object().cloned().unwrap();
    let source = ReplySource { url: String::from("http://a/v1"), model: String::from(model) };
    let parts = Opaque {
        members,
        calls: [(id.to_owned(), json!({"extra_content": 1}).as_object().cloned().unwrap())].into(),
        ..Opaque::default()
    };
    let received = Some(Arc::new(Received { source: source.clone(), parts, ..Received::default() }));
    let tool_calls = vec![MessageToolCall::new(id, "f", "{}")];
    ChatRequest {
        messages: vec![
            Arc::new(Message::user("hello")),
            Arc::new(Message::Assistant { content: String::new(), tool_calls, received }),
            Arc::new(Message::tool(id, "1")),
        ],
        source,
        ..ChatRequest::default()
    }
}

/// Returns the messages of its body.
pub(super) fn sent(request: &ChatRequest) -> Value {
    request.encode_body(BodyForm::default()).to_value()["messages"].clone()
}
