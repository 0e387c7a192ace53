//! The parts of a reply that only its server can read: reasoning, signatures, encrypted items.
//!
//! Many models continue a conversation only if these parts come back as they were sent. They are kept beside the parsed
//! reply and never shown, searched or changed, and they go back only to the server and model that sent them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum size of these parts of one reply, in bytes. If they are larger, none of them is kept.
pub(crate) const MAX_OPAQUE_BYTES: usize = 4 * 1024 * 1024;

/// The types of the items that the text, the calls and the reasoning of a reply contain.
const PARSED_ITEMS: [&str; 7] =
    ["text", "tool_use", "thinking", "redacted_thinking", "message", "function_call", "reasoning"];

/// The server and the model that sent a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct ReplySource {
    /// The URL of the API, without secrets.
    pub url: String,
    /// The model's name, as it was requested.
    pub model: String,
}

/// The parts of a reply that only its server can read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
#[serde(default)]
pub struct Opaque {
    /// Members of a chat completions message, such as `reasoning_content` and `reasoning_details`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub members: Map<String, Value>,
    /// The parts of a message's `content`, if one of them is not text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Value>,
    /// Members of the calls of a chat completions message, by the id of the call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, Map<String, Value>>,
    /// The output items of the Responses API, or the content blocks of the Messages API, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Value>,
}

/// What is sent again because of a reply: the parts that only its server can read, and the lines of its request that are
/// not part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Received {
    /// Where the reply came from.
    pub source: ReplySource,
    /// The parts.
    #[serde(flatten)]
    pub parts: Opaque,
    /// The variable lines of the engine's system message that the request contained. The message before the reply keeps
    /// them: the prompt cache of a server ends where a message changes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lines: String,
}

impl Received {
    /// Whether nothing is sent again.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.lines.is_empty()
    }

    /// Returns the parts without the lines; `None` if there are no parts.
    pub(crate) fn without_lines(self: &Arc<Self>) -> Option<Arc<Self>> {
        if self.lines.is_empty() {
            return Some(Arc::clone(self));
        }
        let Self { source, parts, lines: _ } = &**self;
        let kept = || Self { source: source.clone(), parts: parts.clone(), lines: String::new() };
        (!parts.is_empty()).then(|| Arc::new(kept()))
    }
}

impl Opaque {
    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        let Self { members, content, calls, items } = self;
        members.is_empty() && content.is_empty() && calls.is_empty() && items.is_empty()
    }

    /// Whether an item is neither text, a call nor reasoning, such as a call of the server's own tools: the reply has content
    /// without text.
    pub(crate) fn has_other_content(&self) -> bool {
        let is_parsed = |item: &Value| {
            item.get("type").and_then(Value::as_str).is_some_and(|kind| PARSED_ITEMS.contains(&kind))
        };
        !self.items.iter().all(is_parsed)
    }

    /// Removes the parts for which `is_kept` returns false. A part is never changed: it may be signed.
    pub fn retain(&mut self, is_kept: impl Fn(&Value) -> bool) {
        self.members.retain(|_, value| is_kept(value));
        self.content.retain(&is_kept);
        self.calls.retain(|_, members| {
            members.retain(|_, value| is_kept(value));
            !members.is_empty()
        });
        self.items.retain(&is_kept);
    }
}

/// Whether a member of a message or call has a name that is used for state of the model. The names differ between
/// vendors: `reasoning_content`, `reasoning_opaque`, `thinking_blocks`, `thought_signature`.
pub(crate) fn is_opaque_name(name: &str) -> bool {
    ["reasoning", "thinking", "thought", "signature"].iter().any(|part| name.contains(part))
        || matches!(name, "extra_content" | "provider_specific_fields")
}

/// Adds a value that continues an earlier one: text and lists grow, objects are merged, other values are replaced.
pub(crate) fn merge(known: &mut Value, more: Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Object(members), Value::Object(more)) => {
            for (name, value) in more {
                match members.get_mut(&name) {
                    Some(known @ Value::Object(_)) => merge(known, value),
                    Some(_) if value.is_null() => {}
                    Some(known) => *known = value,
                    None => drop(members.insert(name, value)),
                }
            }
        }
        (Value::Array(parts), Value::Array(more)) => {
            for part in more {
                merge_part(parts, part);
            }
        }
        (known, more) => *known = more,
    }
}

/// Adds a part to a list. A part that continues the last one is merged with it: of the same `type`, `id` and `index`,
/// where one of them may be missing. Its text grows. `signature`, `format` and `data` may be in any fragment; two
/// different ones belong to two parts.
fn merge_part(parts: &mut Vec<Value>, part: Value) {
    let (Some(Value::Object(last)), Value::Object(more)) = (parts.last_mut(), &part) else {
        return parts.push(part);
    };
    if !continues(last, more) {
        return parts.push(part);
    }
    for (name, value) in more {
        match last.get_mut(name) {
            Some(Value::String(text)) if TEXTS.contains(&name.as_str()) => {
                text.push_str(value.as_str().unwrap_or_default());
            }
            Some(Value::Array(known)) if TEXTS.contains(&name.as_str()) => {
                value.as_array().into_iter().flatten().cloned().for_each(|part| merge_part(known, part));
            }
            Some(known) if is_blank(known) => *known = value.clone(),
            Some(Value::Bool(known)) => *known = value.as_bool().unwrap_or(*known),
            Some(_) => {}
            None => drop(last.insert(name.clone(), value.clone())),
        }
    }
}

/// The members of a part whose text grows.
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];

/// Whether a fragment continues the part before it.
fn continues(last: &Map<String, Value>, more: &Map<String, Value>) -> bool {
    let is_same = |name: &str| match (last.get(name), more.get(name)) {
        (Some(one), Some(other)) => is_blank(one) || is_blank(other) || one == other,
        (None, _) | (_, None) => true,
    };
    !(is_ended(last) && has_text(more) && !is_ended(more))
        && last.get("type") == more.get("type")
        && ["id", "index", "signature", "format", "data"].into_iter().all(is_same)
}

/// Whether a part with text is complete: its signature is the last that is sent of it.
fn is_ended(part: &Map<String, Value>) -> bool {
    let is_signed = part.get("signature").is_some_and(|signature| !is_blank(signature));
    (is_signed || part.get("closed") == Some(&Value::Bool(true))) && has_text(part)
}

fn has_text(part: &Map<String, Value>) -> bool {
    let is_set = |text: &Value| !is_blank(text) && text.as_array().is_none_or(|parts| !parts.is_empty());
    TEXTS.iter().any(|name| part.get(*name).is_some_and(is_set))
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fragments_are_merged_with_the_part_that_they_continue() {
        let text = |index: u32, text: &str| json!({"type": "reasoning.text", "text": text, "index": index});
        for (fragments, expected) in [
            // Every block has index 0. The signature comes last, without text.
            (
                vec![
                    json!([{"type": "reasoning.text", "text": "a", "format": "f", "index": 0}]),
                    json!([{"type": "reasoning.text", "text": "b", "index": 0}]),
                    json!([{"type": "reasoning.text", "signature": "s", "text": null, "index": 0}]),
                    json!([{"type": "reasoning.encrypted", "data": "x", "index": 0}]),
                    json!([{"type": "reasoning.encrypted", "data": "y", "index": 0}]),
                ],
                json!([
                    {"type": "reasoning.text", "text": "ab", "format": "f", "index": 0, "signature": "s"},
                    {"type": "reasoning.encrypted", "data": "x", "index": 0},
                    {"type": "reasoning.encrypted", "data": "y", "index": 0},
                ]),
            ),
            (vec![json!([text(0, "a")]), json!([text(1, "b")])], json!([text(0, "a"), text(1, "b")])),
            // The signature ends a part: text after it belongs to the next one.
            (
                vec![
                    json!([{"type": "thinking", "thinking": "a"}]),
                    json!([{"type": "thinking", "thinking": "", "signature": "s"}]),
                    json!([{"type": "thinking", "thinking": "b"}]),
                    json!([{"type": "thinking", "signature": "t"}]),
                ],
                json!([
                    {"type": "thinking", "thinking": "a", "signature": "s"},
                    {"type": "thinking", "thinking": "b", "signature": "t"},
                ]),
            ),
            (
                vec![
                    json!([{"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "closed": false}]),
                    json!([{"type": "thinking", "thinking": [{"type": "text", "text": "b"}], "closed": true}]),
                    json!([{"type": "text", "text": "c"}]),
                ],
                json!([
                    {"type": "thinking", "thinking": [{"type": "text", "text": "ab"}], "closed": true},
                    {"type": "text", "text": "c"},
                ]),
            ),
            (
                vec![json!({"google": {"thought": true}}), json!({"google": {"thought_signature": "s"}})],
                json!({"google": {"thought": true, "thought_signature": "s"}}),
            ),
            (vec![json!(""), json!("a"), json!(null), json!("b")], json!("ab")),
        ] {
            let mut merged = fragments.into_iter();
            let mut known = match merged.next().unwrap() {
                Value::Array(parts) => {
                    let mut list = json!([]);
                    merge(&mut list, Value::Array(parts));
                    list
                }
                first => first,
            };
            merged.for_each(|more| merge(&mut known, more));
            assert_eq!(known, expected);
        }
    }
}
