//! The content of a session file.

use deftool_chat::Message;
use deftool_chat::request::Event;
use serde::{Deserialize, Serialize};

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
    /// Sets the system message in addition to the worker's.
    System {
        #[serde(default)]
        text: Option<String>,
    },
    /// Sets the model.
    Model { name: String },
}

/// The content of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::cli) struct Session {
    pub(in crate::cli) messages: Vec<Message>,
    pub(in crate::cli) system: Option<String>,
    pub(in crate::cli) model: Option<String>,
}
