//! Redacts sessions: removes the API key and the same secrets as in recordings (`docs/replay.md`).

use std::sync::Arc;

use deftool_chat::request::Event;
use deftool_record::{Mask, Redactor, Secrets, redact_message};
use serde_json::{Value, json};

use super::model::Line;

/// Removes secrets from everything that a chat writes to files.
pub(in crate::cli) struct SessionRedactor {
    key: Redactor,
    mask: Mask,
}

impl SessionRedactor {
    pub(in crate::cli) fn new(key: Option<&str>, secrets: Secrets) -> Self {
        Self { key: Redactor::new(key), mask: Mask::new(secrets) }
    }

    /// Returns the length of the text that can be redacted before more text arrives; see [`Mask::redactable_prefix`].
    pub(in crate::cli) fn safe_prefix(&self, text: &str, from: usize) -> usize {
        self.mask.redactable_prefix(text, from)
    }

    /// Redacts a text.
    pub(in crate::cli) fn text(&self, text: &str) -> String {
        self.key.text(&self.mask.text(text))
    }

    /// Returns the redacted JSON of a line.
    pub(in crate::cli) fn line(&self, line: &Line) -> Value {
        let mut line = line.clone();
        match &mut line {
            Line::Message { message } => redact_message(message, &self.mask),
            Line::Event { event } => self.event(event),
            Line::System { text } => text.iter_mut().for_each(|text| self.mask.in_place(text)),
            Line::Chat { .. } | Line::Rewind { .. } | Line::Model { .. } => {}
        }
        let mut value = json!(line);
        self.key.value(&mut value);
        value
    }

    fn event(&self, event: &mut Event) {
        match event {
            Event::Text { text } => self.mask.in_place(text),
            Event::ToolCall { arguments, .. } => self.mask.value(Arc::make_mut(arguments)),
            Event::ToolFinished { result, error, .. } => {
                result.iter_mut().chain(error).for_each(|value| self.mask.value(value));
            }
            // Not stored.
            Event::Submitted { .. }
            | Event::TurnStarted { .. }
            | Event::Reasoning { .. }
            | Event::Approval { .. }
            | Event::ToolStarted { .. }
            | Event::Signal(_)
            | Event::Budget { .. }
            | Event::Retry { .. }
            | Event::ArgumentsRepaired { .. }
            | Event::Reloaded { .. }
            | Event::Resumed { .. }
            | Event::Warning { .. }
            | Event::Finished(_) => {}
        }
    }
}
