//! The content of a session file.

use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_lang::tool::{Attachment, AttachmentData};
use deftool_record::{Mask, Redaction, redact_message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Version of the file format.
pub(in crate::cli) const VERSION: u32 = 1;

/// A line of a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(in crate::cli) enum Line {
    /// The first line.
    Chat {
        version: u32,
        /// Unix time in milliseconds.
        created_at_ms: u64,
        project: String,
        worker: String,
        model: String,
    },
    /// Appends a message.
    Message { message: Message },
    /// Truncates the conversation to `to` messages.
    Rewind { to: usize },
    /// A part of an incomplete reply.
    Event { event: Event },
    /// The bytes of an image or audio, once in the file.
    Attachment(AttachmentData),
    /// Sets the system message in addition to the worker's.
    System {
        #[serde(default)]
        text: Option<String>,
    },
    /// Sets the model.
    Model { name: String },
}

impl Line {
    /// Returns the images and audio of the line.
    pub(super) fn attachments(&self) -> &[Attachment] {
        match self {
            Self::Message { message } => message.attachments(),
            Self::Event { event: Event::ToolFinished { attachments, .. } } => attachments,
            _ => &[],
        }
    }

    /// Returns the JSON of the line without the API key and the same secrets as in recordings.
    pub(in crate::cli) fn redacted(&self, redaction: &Redaction) -> Value {
        let mask = redaction.mask();
        let mut line = self.clone();
        match &mut line {
            Self::Message { message } => redact_message(message, mask),
            Self::Event { event } => redact_event(event, mask),
            Self::System { text } => text.iter_mut().for_each(|text| mask.in_place(text)),
            Self::Chat { .. } | Self::Rewind { .. } | Self::Model { .. } | Self::Attachment(_) => {}
        }
        let mut value = json!(line);
        redaction.key().value(&mut value);
        value
    }
}

/// Redacts the user's secrets in an event that is stored.
fn redact_event(event: &mut Event, mask: &Mask) {
    match event {
        Event::Text { text } => mask.in_place(text),
        Event::ToolCall { arguments, .. } => mask.value(Arc::make_mut(arguments)),
        Event::ToolFinished { result, error, .. } => {
            result.iter_mut().chain(error).for_each(|value| mask.value(value));
        }
        // Others are not stored.
        _ => {}
    }
}

/// The content of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::cli) struct Session {
    pub(in crate::cli) messages: Vec<Message>,
    pub(in crate::cli) system: Option<String>,
    pub(in crate::cli) model: Option<String>,
}
