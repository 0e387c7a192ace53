//! What a response is made of: messages, reasoning, calls.

use serde_json::{Map, Value, json};

/// One item of the output.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) place: Place,
}

/// Where events say that they belong; what is not there is left out of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) id: Option<Value>,
    pub(super) index: Option<Value>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Message {
        text: String,
    },
    /// As text, as a summary, or both.
    Reasoning {
        text: String,
        summary: String,
    },
    Call {
        id: Option<Value>,
        name: Value,
        /// Text, as a rule.
        arguments: Option<Value>,
        /// The chunk that holds the last of it.
        last: usize,
    },
}

impl Item {
    /// What the events of the item are about.
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
        set(&mut item, "id", self.place.id.as_ref());
        item
    }
}

impl Place {
    /// An event about what stands here.
    pub(super) fn event(&self, kind: &str, members: Value) -> Value {
        let mut event = json!({"type": kind});
        set(&mut event, "item_id", self.id.as_ref());
        self.with_members(event, members)
    }

    /// An event that holds the item, which has its id in itself.
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

/// A part of a message.
pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// The id of the item that holds a call of this id.
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

/// Members of a chunk that the API does not know.
pub(super) fn unknown_members(chunk: &Value) -> Map<String, Value> {
    const KNOWN: [&str; 7] = ["id", "object", "created", "model", "choices", "usage", "error"];
    let members = chunk.as_object().into_iter().flatten();
    let unknown = members.filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}
