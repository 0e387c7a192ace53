//! What a session must not hold: the API key, and what a recording would not hold either (`docs/replay.md`).

use serde_json::{Value, json};

use super::session::Line;
use crate::request::Event;
use crate::worker::{Mask, Redactor, Secrets, redact_message};

/// Takes secrets out of what is written of a chat.
pub(super) struct Hidden {
    key: Redactor,
    mask: Mask,
}

impl Hidden {
    pub(super) fn new(key: Option<&str>, secrets: Secrets) -> Self {
        Self { key: Redactor::new(key), mask: Mask::new(secrets) }
    }

    /// How much of a reply's text can be written before the rest of it is known; as [`Mask::settled`].
    pub(super) fn settled(&self, text: &str, from: usize) -> usize {
        self.mask.settled(text, from)
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.key.text(&self.mask.text(text))
    }

    /// A line as it is written.
    pub(super) fn line(&self, line: &Line) -> Value {
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
            Event::ToolCall { arguments, .. } => self.mask.value(arguments),
            Event::ToolFinished { result, error, .. } => {
                result.iter_mut().chain(error).for_each(|value| self.mask.value(value));
            }
            // Not kept.
            Event::Submitted { .. }
            | Event::TurnStarted { .. }
            | Event::Reasoning { .. }
            | Event::Approval { .. }
            | Event::ToolStarted { .. }
            | Event::Signal(_)
            | Event::Budget { .. }
            | Event::Retry { .. }
            | Event::Reloaded { .. }
            | Event::Warning { .. }
            | Event::Finished(_) => {}
        }
    }
}
