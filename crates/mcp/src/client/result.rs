//! The result of a call, item by item.
//!
//! In: the result as the server sent it. Out: the structured result, or the texts as they are, and the images and audio.
//! Each of these, and other data, is one line of the text: a model would read base64 as text. Servers repeat the data in
//! the structured result, and in its text: there the line replaces it.

use deftool_lang::tool::{Attachment, Refused, attach, data_line};
use serde_json::Value;

/// A successful result.
#[derive(Debug, PartialEq)]
pub(super) struct CallResult {
    pub(super) value: Value,
    pub(super) attachments: Vec<Attachment>,
    /// Whether the value is the structured result, which the output schema of the tool describes.
    pub(super) is_structured: bool,
    /// The types of the content that is left out because they are unknown.
    pub(super) unknown: Vec<String>,
    /// The data in base64 of the content, with their lines.
    pub(super) data: Vec<(String, String)>,
}

impl CallResult {
    /// Reads a result.
    ///
    /// # Errors
    /// If the call failed. Returns the text for the model.
    pub(super) fn read(result: &Value) -> Result<Self, String> {
        // Without the object around it.
        let content = if result.is_object() { result.get("content") } else { Some(result) };
        let is_failed = result.get("isError") == Some(&Value::Bool(true));
        let mut reader = Reader { is_failed, ..Reader::default() };
        let text = reader.text_of(content.unwrap_or(&Value::Null));
        let Reader { attachments, unknown, data, .. } = reader;
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        if is_failed {
            let mut message = match structured {
                _ if !text.is_empty() => Value::String(text),
                Some(value) => value.clone(),
                None => Value::from("the tool failed without a message"),
            };
            without_data(&mut message, &data);
            return Err(message.as_str().map_or_else(|| message.to_string(), str::to_owned));
        }
        let (value, is_structured) = match structured {
            None => (Value::String(text), false),
            Some(value) => (value.clone(), true),
        };
        Ok(Self { value, attachments, is_structured, unknown, data })
    }
}

/// Shortest data that is replaced inside a text, such as a data URL.
const MIN_INSIDE: usize = 32;

/// Replaces data by its line in all strings of a value.
pub(super) fn without_data(value: &mut Value, data: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (data, line) in data {
                if text == data || (data.len() >= MIN_INSIDE && text.contains(data)) {
                    *text = text.replace(data, line);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_data(item, data)),
        Value::Object(members) => members.values_mut().for_each(|member| without_data(member, data)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads the content of a result.
#[derive(Default)]
struct Reader {
    /// The call failed: its error is text without attachments.
    is_failed: bool,
    attachments: Vec<Attachment>,
    /// The types of the content that is left out because they are unknown.
    unknown: Vec<String>,
    /// The data in base64, with their lines.
    data: Vec<(String, String)>,
}

impl Reader {
    /// Returns the content as text, one block after the other.
    fn text_of(&mut self, content: &Value) -> String {
        let blocks = match content {
            Value::Null => &[],
            Value::Array(blocks) => blocks.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut lines = Vec::with_capacity(blocks.len());
        for block in blocks {
            let line = self.line_of(block).unwrap_or_else(|| {
                let kind = block.get("type").and_then(Value::as_str).unwrap_or("no type").to_owned();
                let line = format!("[content of the unknown type `{kind}`, not shown]");
                self.unknown.push(kind);
                line
            });
            lines.push(line);
        }
        lines.join("\n")
    }

    /// Returns a block as text; `None` if its type is unknown, or it lacks a part that its type requires.
    fn line_of(&mut self, block: &Value) -> Option<String> {
        if let Value::String(text) = block {
            return Some(text.clone());
        }
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        match text("type") {
            Some("text") | None => match block.get("text")? {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            },
            Some(kind @ ("image" | "audio")) => {
                let declared = text("mimeType").filter(|declared| declared.starts_with(kind));
                let data = text("data")?;
                Some(self.attach(data, Attachment::from_base64(data, declared.unwrap_or(kind))))
            }
            Some("resource_link") => {
                let parts = [text("name"), text("uri"), text("mimeType"), text("description")];
                let parts: Vec<&str> = parts.into_iter().flatten().collect();
                Some(format!("[resource: {}]", parts.join(", ")))
            }
            Some("resource") => self.resource(block.get("resource")?),
            Some(_) => None,
        }
    }

    /// Returns a resource as text: its text, or a line for its data.
    fn resource(&mut self, resource: &Value) -> Option<String> {
        let text = |name: &str| resource.get(name).and_then(Value::as_str);
        if let Some(text) = text("text") {
            return Some(text.to_owned());
        }
        let (data, uri) = (text("blob")?, text("uri").unwrap_or_default());
        let media_type = text("mimeType").unwrap_or_default();
        let is_media = media_type.starts_with("image/") || media_type.starts_with("audio/");
        if is_media || matches!(media_type, "" | "application/octet-stream") {
            let attachment = Attachment::from_base64(data, media_type);
            if is_media || attachment.is_ok() {
                return Some(self.attach(data, attachment));
            }
        }
        let size = data.trim_end_matches('=').len() * 3 / 4;
        let line = data_line("resource", &[uri, media_type], size as u64);
        self.data.push((data.to_owned(), line.clone()));
        Some(line)
    }

    fn attach(&mut self, data: &str, attachment: Result<Attachment, Refused>) -> String {
        let line = match attachment {
            Ok(attachment) if self.is_failed => attachment.unsent_line("the call failed"),
            attachment => attach(&mut self.attachments, attachment),
        };
        self.data.push((data.to_owned(), line.clone()));
        line
    }
}
