use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_lang::tool::{Attachment, AttachmentData};
use serde::{Deserialize, Serialize};

use crate::recording::{redact_event, redact_message};
use crate::secrets::Mask;
use crate::stored::{StoredForm, StoredLine};

/// A line of a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[allow(missing_docs)] // Names and types are enough for most fields.
pub enum Line {
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
    /// Sets the worker, and with it the model.
    Worker { name: String },
}

impl Line {
    /// Returns the first line of a conversation that starts now.
    pub fn header(project: &Path, worker: &str, model: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self::Chat {
            version: StoredForm::Session.version(),
            created_at_ms: since.map_or(0, |since| since.as_millis() as u64),
            project: project.display().to_string(),
            worker: worker.to_owned(),
            model: model.to_owned(),
        }
    }
}

impl StoredLine for Line {
    fn attachments(&self) -> Vec<&Attachment> {
        match self {
            Self::Message { message } => message.attachments().iter().collect(),
            Self::Event { event: Event::ToolFinished { attachments, .. } } => attachments.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn redact(&mut self, mask: &Mask) {
        match self {
            Self::Message { message } => redact_message(message, mask),
            Self::Event { event } => redact_event(event, mask),
            Self::System { text } => text.iter_mut().for_each(|text| mask.in_place(text)),
            Self::Chat { .. }
            | Self::Rewind { .. }
            | Self::Model { .. }
            | Self::Worker { .. }
            | Self::Attachment(_) => {}
        }
    }
}

/// The content of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// The conversation.
    pub messages: Vec<Message>,
    /// The system message in addition to the worker's.
    pub system: Option<String>,
    /// The worker, if the user chose one in the session.
    pub worker: Option<String>,
    /// The model, if it is not the worker's.
    pub model: Option<String>,
}

impl Session {
    /// Returns the lines that set the system message, the worker and the model.
    pub fn settings(&self) -> Vec<Line> {
        let system = self.system.clone().map(|text| Line::System { text: Some(text) });
        let worker = self.worker.clone().map(|name| Line::Worker { name });
        let model = self.model.clone().map(|name| Line::Model { name });
        system.into_iter().chain(worker).chain(model).collect()
    }

    /// Returns the session as another worker continues it: a model belongs to the worker that was chosen with it.
    #[must_use]
    pub fn continued_by(self, worker: &str) -> Self {
        let is_other = self.worker.as_deref().is_some_and(|chosen| chosen != worker);
        Self { model: self.model.filter(|_| !is_other), ..self }
    }
}
