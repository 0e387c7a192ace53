//! Progress and log lines of running calls, reported to the client that sent the call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// An event of a running call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// Its progress.
    Progressed {
        /// The completed fraction, from 0 to 1, if known.
        fraction: Option<f64>,
        /// The current activity.
        text: String,
    },
    /// A log line.
    Logged {
        /// The level.
        level: LogLevel,
        /// The line.
        text: String,
    },
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For the developer of the tool.
    Debug,
    /// Normal operation.
    Info,
    /// Something unexpected that the tool could handle.
    Warning,
    /// A failure.
    Error,
}

/// Passes the events of a tool to its call. The tool limits their number.
#[derive(Debug, Clone, Default)]
pub struct CallEvents(Arc<Mutex<HashMap<String, UnboundedSender<CallEvent>>>>);

impl CallEvents {
    /// Sends an event of the call with this [`request_id`](deftool_lang::tool::CallContext::request_id). Does nothing
    /// if the call has ended.
    pub fn send(&self, request_id: &str, event: CallEvent) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(request_id) {
            // The receiver is dropped only after its sender was removed.
            let _ = sender.send(event);
        }
    }

    pub(crate) fn subscribe(&self, request_id: &str) -> EventReceiver {
        let (sender, receiver) = unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request_id.to_owned(), sender);
        EventReceiver { events: self.clone(), request_id: request_id.to_owned(), receiver }
    }
}

/// Receives the events of one call until it is dropped.
pub(crate) struct EventReceiver {
    events: CallEvents,
    request_id: String,
    receiver: UnboundedReceiver<CallEvent>,
}

impl EventReceiver {
    pub(crate) async fn next(&mut self) -> CallEvent {
        match self.receiver.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn next_queued(&mut self) -> Option<CallEvent> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.events.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request_id);
    }
}
