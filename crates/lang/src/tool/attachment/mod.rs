//! Images and audio beside the text of a message.
//!
//! In: bytes from outside and their declared type. Out: an [`Attachment`] with the type that its first bytes show, or a
//! [`Refused`]. Both have a line for the text, so that a message is complete without its attachments: a model that cannot
//! receive an image reads that there is one. Bytes never become text in base64.
//!
//! An attachment is serialised without its bytes. What stores it keeps them once, as [`AttachmentData`], and
//! [`AttachmentStore`] returns them.

mod media_type;
mod store;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::{from_base64, sha256_hex, to_base64};
pub use media_type::MediaType;
use media_type::dimensions;
pub use store::{AttachmentData, AttachmentStore};

/// Maximum size of an attachment, in bytes. No known server accepts a larger image in a request.
pub const MAX_ATTACHMENT: usize = 20_000_000;

/// Maximum number of attachments of one result.
const MAX_COUNT: usize = 20;

/// Maximum size of the attachments of one result together, in bytes. In base64, they fit into a frame between processes.
const MAX_TOTAL: u64 = 40_000_000;

/// Maximum length of a declared type in a message.
const MAX_DECLARED: usize = 64;

/// An image or audio. A clone shares the bytes.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS), ts(optional_fields))]
pub struct Attachment {
    /// The type of its first bytes.
    #[serde(rename = "type")]
    media_type: MediaType,
    /// The size in bytes.
    size: u64,
    /// The width of an image, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// The height of an image, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    /// The SHA-256 of the bytes in hexadecimal.
    sha256: String,
    /// The bytes; `None` if they were not stored.
    #[serde(skip)]
    bytes: Option<Arc<[u8]>>,
}

/// Bytes that are not an attachment. Its text is a line for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Refused {
    line: String,
    reason: String,
}

impl Refused {
    /// Returns why the bytes are not an attachment, as a clause without a subject.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl Attachment {
    /// Creates an attachment. `declared` is a MIME type, or only `image` or `audio`; it is used in the error.
    ///
    /// # Errors
    /// If the bytes are not of a [`MediaType`], or more than [`MAX_ATTACHMENT`].
    pub fn new(bytes: impl Into<Arc<[u8]>>, declared: &str) -> Result<Self, Refused> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let refused = |reason: &str| refuse(declared, size, reason);
        if bytes.is_empty() {
            return Err(refused("empty"));
        }
        if bytes.len() > MAX_ATTACHMENT {
            return Err(too_large(declared, size));
        }
        let media_type = MediaType::of(&bytes).ok_or_else(|| {
            refused(if declared.starts_with("audio") {
                "not WAV or MP3"
            } else {
                "not PNG, JPEG, GIF or WebP"
            })
        })?;
        let (width, height) = dimensions(media_type, &bytes).unzip();
        Ok(Self { media_type, size, width, height, sha256: sha256_hex(&bytes), bytes: Some(bytes) })
    }

    /// Creates an attachment from base64, as [`Attachment::new`]. A data URL is accepted, too.
    ///
    /// # Errors
    /// As [`Attachment::new`], or if the text is not base64.
    pub fn from_base64(text: &str, declared: &str) -> Result<Self, Refused> {
        let data = text.split_once(";base64,").filter(|(head, _)| head.starts_with("data:"));
        let text = data.map_or(text, |(_, data)| data);
        let size = (text.trim_end_matches('=').len() / 4 * 3) as u64;
        if size > 2 * MAX_ATTACHMENT as u64 {
            return Err(too_large(declared, size));
        }
        let bytes = from_base64(text).ok_or_else(|| refuse(declared, size, "not base64"))?;
        Self::new(bytes, declared)
    }

    /// The type.
    pub fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The larger of width and height, in pixels, if it is known.
    pub fn longest_side(&self) -> Option<u32> {
        self.width.max(self.height)
    }

    /// The SHA-256 of the bytes in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The bytes; `None` if they were not stored.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Returns the bytes in base64.
    pub fn to_base64(&self) -> Option<String> {
        self.bytes().map(to_base64)
    }

    /// Returns the bytes as a data URL.
    pub fn data_url(&self) -> Option<String> {
        Some(format!("data:{};base64,{}", self.media_type.as_str(), self.to_base64()?))
    }

    /// Returns the line that stands for it in a text: `[image: image/png, 1024×768, 83 kB]`.
    pub fn line(&self) -> String {
        format!("[{}]", self.description())
    }

    /// Returns the line that stands for it in a text that is sent without it.
    pub fn unsent_line(&self, reason: &str) -> String {
        format!("[{}; not sent: {reason}]", self.description())
    }

    fn description(&self) -> String {
        let media_type = self.media_type.as_str();
        let kind = if self.media_type.is_image() { "image" } else { "audio" };
        let pixels = self.width.zip(self.height).map(|(width, height)| format!(", {width}×{height}"));
        format!("{kind}: {media_type}{}, {}", pixels.unwrap_or_default(), size_text(self.size))
    }
}

impl PartialEq for Attachment {
    fn eq(&self, other: &Self) -> bool {
        // Equal digests mean equal bytes.
        (&self.sha256, self.media_type, self.bytes.is_some())
            == (&other.sha256, other.media_type, other.bytes.is_some())
    }
}

impl Eq for Attachment {}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

/// Returns the line for data that is not an attachment, such as a document. `size` is its size in bytes.
pub fn data_line(kind: &str, names: &[&str], size: u64) -> String {
    let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    let separator = if names.is_empty() { "" } else { ", " };
    format!("[{kind}: {}{separator}{}; not sent: not an image]", names.join(", "), size_text(size))
}

fn too_large(declared: &str, size: u64) -> Refused {
    refuse(declared, size, &format!("larger than {}", size_text(MAX_ATTACHMENT as u64)))
}

fn refuse(declared: &str, size: u64, reason: &str) -> Refused {
    let kind = if declared.starts_with("audio") { "audio" } else { "image" };
    let is_type = declared.contains('/')
        && declared.len() <= MAX_DECLARED
        && declared.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte));
    let declared = if is_type { format!("{declared}, ") } else { String::new() };
    let line = format!("[{kind}: {declared}{}; not sent: {reason}]", size_text(size));
    Refused { line, reason: reason.to_owned() }
}

/// Returns a size in decimal units, as vendors state their limits: `83 kB`.
#[allow(clippy::cast_precision_loss)] // two digits are shown
fn size_text(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} bytes"),
        1_000..1_000_000 => format!("{} kB", size / 1_000),
        _ => format!("{:.1} MB", size as f64 / 1e6),
    }
}

/// The result of a tool: a value, and attachments. The value contains the line of each attachment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The value.
    pub value: Value,
    /// The attachments, in the order of their lines.
    pub attachments: Vec<Attachment>,
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { value, attachments: Vec::new() }
    }
}

/// Adds an attachment to those of a result. Returns the line for the value, which reports why it was not added.
pub fn attach(attachments: &mut Vec<Attachment>, attachment: Result<Attachment, Refused>) -> String {
    let attachment = match attachment {
        Ok(attachment) => attachment,
        Err(refused) => return refused.to_string(),
    };
    let total: u64 = attachments.iter().map(Attachment::size).sum();
    if attachments.len() >= MAX_COUNT {
        return attachment.unsent_line(&format!("more than {MAX_COUNT} in one result"));
    }
    if total.saturating_add(attachment.size) > MAX_TOTAL {
        return attachment.unsent_line(&format!("more than {} in one result", size_text(MAX_TOTAL)));
    }
    let line = attachment.line();
    attachments.push(attachment);
    line
}

#[cfg(test)]
mod tests;
