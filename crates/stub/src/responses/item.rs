//! The response object and its output items: messages, reasoning, calls.

use serde_json::{Value, json};

use crate::completions::CREATED;

/// Returns a response object. It contains the members that strictly typed clients require.
pub(super) fn response(model: &str, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": "resp_stub", "object": "response", "created_at": CREATED, "status": status, "model": model,
        "output": output, "error": null, "incomplete_details": null, "usage": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null,
    })
}

/// An output item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) reference: ItemRef,
}

/// The item that an event refers to. Members that are `None` are omitted.
#[derive(Debug, Clone, Default)]
pub(super) struct ItemRef {
    pub(super) id: Option<Value>,
    pub(super) index: Option<Value>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Message {
        text: String,
    },
    /// Reasoning as text, as a summary, or both.
    Reasoning {
        text: String,
        summary: String,
    },
    Call {
        id: Option<Value>,
        name: Value,
        /// Usually a string.
        arguments: Option<Value>,
        /// The index of the last chunk with a part of the call.
        last: usize,
    },
}

impl Item {
    /// Returns the item as JSON.
    pub(super) fn json(&self, status: &str) -> Value {
        let mut item = match &self.kind {
            Kind::Message { text } => {
                let parts: Vec<Value> = (!text.is_empty()).then(|| text_part(text)).into_iter().collect();
                json!({"type": "message", "status": status, "role": "assistant", "content": parts})
            }
            Kind::Reasoning { text, summary } => {
                let part = |kind: &str, text: &String| -> Vec<Value> {
                    (!text.is_empty()).then(|| json!({"type": kind, "text": text})).into_iter().collect()
                };
                json!({
                    "type": "reasoning", "summary": part("summary_text", summary), "content": part("reasoning_text", text),
                })
            }
            Kind::Call { id, name, arguments, last: _ } => {
                let mut call = json!({"type": "function_call", "name": name, "status": status});
                set(&mut call, "call_id", id.as_ref());
                set(&mut call, "arguments", arguments.as_ref());
                call
            }
        };
        set(&mut item, "id", self.reference.id.as_ref());
        item
    }
}

impl ItemRef {
    /// Returns an event that refers to the item.
    pub(super) fn event(&self, kind: &str, members: Value) -> Value {
        let mut event = json!({"type": kind});
        set(&mut event, "item_id", self.id.as_ref());
        self.with_members(event, members)
    }

    /// Returns an event that contains the item. The item itself has the id.
    pub(super) fn item_event(&self, kind: &str, item: Value) -> Value {
        self.with_members(json!({"type": kind}), json!({"item": item}))
    }

    fn with_members(&self, mut event: Value, members: Value) -> Value {
        set(&mut event, "output_index", self.index.as_ref());
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        event
    }
}

/// Returns a text part of a message.
pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Returns the id of the item for a call with this id.
pub(super) fn item_id(call_id: &Value) -> Value {
    match call_id.as_str() {
        Some("") | None => call_id.clone(),
        Some(id) => json!(format!("fc_{id}")),
    }
}

pub(super) fn set(object: &mut Value, member: &str, value: Option<&Value>) {
    if let (Value::Object(members), Some(value)) = (object, value) {
        members.insert(member.to_owned(), value.clone());
    }
}
