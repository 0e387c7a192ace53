//! Members of a reply that only its server can read ([`Opaque`]), while the reply is received.
//!
//! In: members and parts in the order in which they arrive, in pieces. Out: the members as one message contains them.

use serde_json::{Map, Value, json};

use super::loose::Loose;
use crate::received::{MAX_OPAQUE_BYTES, Opaque, is_opaque_name, merge};

/// Maximum nesting of a part. A file with a deeper value could not be read.
const MAX_DEPTH: usize = 64;

/// The opaque parts so far.
#[derive(Debug, Default)]
pub(super) struct OpaqueReader {
    parts: Opaque,
    /// Bytes of all pieces and of their names.
    size: usize,
}

impl OpaqueReader {
    /// Adds text to a member. An empty text counts: some servers require the member to come back.
    pub(super) fn push_text(&mut self, name: &str, piece: &str) {
        if !self.reserve(piece.len()) {
            return;
        }
        if let Some(known) = self.parts.members.get_mut(name) {
            if let Value::String(text) = known
                && !is_repeated(name, text, piece)
            {
                text.push_str(piece);
            }
        } else if self.reserve(name.len()) {
            self.parts.members.insert(name.to_owned(), Value::from(piece));
        }
    }

    /// Adds the value of a member, of any type.
    pub(super) fn push_member(&mut self, name: &str, value: &Loose<'_>) {
        if let Loose::String(text) = value {
            self.push_text(name, text);
        } else if let Some(value) = self.take(value)
            && self.reserve(name.len())
        {
            add_member(&mut self.parts.members, name, value);
        }
    }

    /// Adds the content of a message, once a part of it is not text.
    pub(super) fn push_content(&mut self, content: &Loose<'_>) {
        let is_text = |part: &Loose<'_>| {
            matches!(part, Loose::String(_)) || part.get("type").and_then(Loose::as_text) == Some("text")
        };
        let is_first = self.parts.content.is_empty();
        match content {
            Loose::String(text) => self.push_content_text(text),
            Loose::Array(parts) if !is_first || !parts.iter().all(is_text) => {
                let parts = parts.iter().filter_map(|part| match part {
                    Loose::String(text) => Some(text_part(text)),
                    part => self.take(part),
                });
                let parts: Vec<Value> = parts.collect();
                self.push_parts(parts);
            }
            _ => {}
        }
    }

    /// Adds text to the content, if the content has parts.
    pub(super) fn push_content_text(&mut self, text: &str) {
        if !self.parts.content.is_empty() && !text.is_empty() && self.reserve(text.len()) {
            self.push_parts(vec![text_part(text)]);
        }
    }

    /// Adds an output item. Returns whether it is kept.
    pub(super) fn push_item(&mut self, item: &Loose<'_>) -> bool {
        let item = self.take(item);
        let is_kept = item.is_some();
        self.parts.items.extend(item);
        is_kept
    }

    /// Adds the opaque members of a call and of its function to `known`.
    pub(super) fn add_call(&mut self, known: &mut Map<String, Value>, call: &Loose<'_>) {
        let function = call.get("function").into_iter().flat_map(Loose::members);
        let members = call.members().map(|member| (false, member));
        for (is_inner, (name, value)) in members.chain(function.map(|member| (true, member))) {
            let Some(value) = Some(value).filter(|_| is_opaque_name(name)).and_then(|value| self.take(value))
            else {
                continue;
            };
            if !self.reserve(name.len()) {
                return;
            }
            let members = if is_inner {
                known.entry("function").or_insert_with(|| json!({})).as_object_mut()
            } else {
                Some(&mut *known)
            };
            if let Some(members) = members {
                add_member(members, name, value);
            }
        }
    }

    /// Returns the parts; `None` if they are too large.
    pub(super) fn finish(self) -> Option<Opaque> {
        (!self.is_full()).then_some(self.parts)
    }

    /// Adds parts of the content. The first ones are not merged: a complete message contains no fragments.
    fn push_parts(&mut self, parts: Vec<Value>) {
        if self.parts.content.is_empty() {
            self.parts.content = parts;
        } else {
            let mut content = Value::Array(std::mem::take(&mut self.parts.content));
            merge(&mut content, Value::Array(parts));
            if let Value::Array(parts) = content {
                self.parts.content = parts;
            }
        }
    }

    /// Copies a value other than null, unless a limit is exceeded.
    pub(super) fn take(&mut self, value: &Loose<'_>) -> Option<Value> {
        if *value == Loose::Null || self.is_full() || !is_flat(value, MAX_DEPTH) {
            return None;
        }
        let json = value.to_json();
        // A value that was parsed can be parsed again.
        self.reserve(json.len()).then(|| serde_json::from_str(&json).ok()).flatten()
    }

    fn is_full(&self) -> bool {
        self.size > MAX_OPAQUE_BYTES
    }

    /// Counts bytes. Returns false if the limit is exceeded: then nothing is kept.
    pub(super) fn reserve(&mut self, bytes: usize) -> bool {
        self.size = self.size.saturating_add(bytes);
        if self.is_full() {
            self.parts = Opaque::default();
        }
        !self.is_full()
    }
}

/// Whether values are nested at most `left` times.
fn is_flat(value: &Loose<'_>, left: usize) -> bool {
    match value {
        Loose::Array(items) => left > 0 && items.iter().all(|item| is_flat(item, left - 1)),
        Loose::Object(_) => left > 0 && value.members().all(|(_, value)| is_flat(value, left - 1)),
        Loose::Null | Loose::Bool(_) | Loose::Number(_) | Loose::String(_) => true,
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn add_member(members: &mut Map<String, Value>, name: &str, value: Value) {
    match members.get_mut(name) {
        Some(Value::String(known)) if value.as_str().is_some_and(|text| is_repeated(name, known, text)) => {}
        Some(known) => merge(known, value),
        None => drop(members.insert(name.to_owned(), value)),
    }
}

/// Whether a value is sent a second time. Some servers repeat the members of a call in every delta. Text may repeat itself.
fn is_repeated(name: &str, known: &str, text: &str) -> bool {
    ["signature", "opaque"].iter().any(|part| name.contains(part)) && known == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_signature_counts_once_and_repeated_text_is_text() {
        let delta = r#"{"signature": "s", "reasoning": "ha", "function": {"thought_signature": "t"}}"#;
        let delta: Loose<'_> = serde_json::from_str(delta).unwrap();
        let (mut reader, mut call) = (OpaqueReader::default(), Map::new());
        for _ in 0..2 {
            for name in ["signature", "reasoning"] {
                reader.push_member(name, delta.get(name).unwrap());
            }
            reader.add_call(&mut call, &delta);
        }
        let expected = json!({"signature": "s", "reasoning": "haha"});
        assert_eq!(Value::Object(reader.finish().unwrap().members), expected);
        assert_eq!(call["function"], json!({"thought_signature": "t"}));
        assert_eq!(call["signature"], "s");
    }

    #[test]
    fn the_limits_of_size_and_depth_are_exact() {
        for (size, is_kept) in [(MAX_OPAQUE_BYTES, true), (MAX_OPAQUE_BYTES + 1, false)] {
            let mut reader = OpaqueReader::default();
            reader.push_text("a", &"x".repeat(size - 1));
            assert_eq!(reader.finish().is_some(), is_kept, "{size}");
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for (depth, is_kept) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
                let json = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                let value: Loose<'_> = serde_json::from_str(&json).unwrap();
                assert_eq!(OpaqueReader::default().take(&value).is_some(), is_kept, "{open} {depth}");
            }
        }
    }

    #[test]
    fn text_is_kept_only_beside_other_parts() {
        for (first, expected) in
            [("", json!([])), (r#"[{"type": "x"}]"#, json!([{"type": "x"}, text_part("a")]))]
        {
            let mut reader = OpaqueReader::default();
            if let Ok(content) = serde_json::from_str(first) {
                reader.push_content(&content);
            }
            reader.push_content_text("a");
            assert_eq!(json!(reader.finish().unwrap().content), expected);
        }
    }
}
