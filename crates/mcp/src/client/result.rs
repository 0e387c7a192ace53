//! The result of a call, item by item.
//!
//! In: the result as the server sent it. Out: the structured result, or the texts as they are. Other content is
//! replaced by one line that describes it: a model would read base64 as text.

use serde_json::Value;

/// A successful result.
#[derive(Debug, PartialEq)]
pub(super) struct CallResult {
    pub(super) value: Value,
    /// Whether the value is the structured result, which the output schema of the tool describes.
    pub(super) is_structured: bool,
    /// The types of the content that is left out because they are unknown.
    pub(super) unknown: Vec<String>,
}

impl CallResult {
    /// Reads a result.
    ///
    /// # Errors
    /// If the call failed. Returns the text for the model.
    pub(super) fn read(result: &Value) -> Result<Self, String> {
        // Without the object around it.
        let content = if result.is_object() { result.get("content") } else { Some(result) };
        let (text, unknown) = text_of(content.unwrap_or(&Value::Null));
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        if result.get("isError") == Some(&Value::Bool(true)) {
            return Err(match structured {
                _ if !text.is_empty() => text,
                Some(value) => value.to_string(),
                None => String::from("the tool failed without a message"),
            });
        }
        Ok(match structured {
            None => Self { value: Value::String(text), is_structured: false, unknown },
            Some(value) => Self { value: value.clone(), is_structured: true, unknown },
        })
    }
}

/// Returns the content as text, one block after the other, and its unknown types.
fn text_of(content: &Value) -> (String, Vec<String>) {
    let blocks = match content {
        Value::Null => &[],
        Value::Array(blocks) => blocks.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut unknown = Vec::new();
    let lines: Vec<String> = blocks
        .iter()
        .map(|block| {
            line_of(block).unwrap_or_else(|| {
                let kind = block.get("type").and_then(Value::as_str).unwrap_or("no type").to_owned();
                let line = format!("[content of the unknown type `{kind}`, not shown]");
                unknown.push(kind);
                line
            })
        })
        .collect();
    (lines.join("\n"), unknown)
}

/// Returns a block as text; `None` if its type is unknown, or it lacks a part that its type requires.
fn line_of(block: &Value) -> Option<String> {
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
        Some(kind @ ("image" | "audio")) => Some(describe(kind, None, text("mimeType"), text("data")?)),
        Some("resource_link") => {
            let parts = [text("name"), text("uri"), text("mimeType"), text("description")];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            Some(format!("[resource: {}]", parts.join(", ")))
        }
        Some("resource") => {
            let resource = block.get("resource")?;
            let text = |name: &str| resource.get(name).and_then(Value::as_str);
            match text("text") {
                Some(text) => Some(text.to_owned()),
                None => Some(describe("resource", text("uri"), text("mimeType"), text("blob")?)),
            }
        }
        Some(_) => None,
    }
}

/// Returns a line that replaces data in base64.
fn describe(kind: &str, uri: Option<&str>, mime_type: Option<&str>, data: &str) -> String {
    let size = data.trim_end_matches('=').len() * 3 / 4;
    let known: Vec<&str> = uri.into_iter().chain(mime_type).collect();
    let separator = if known.is_empty() { "" } else { ", " };
    format!("[{kind}: {}{separator}{size} bytes, not shown]", known.join(", "))
}
