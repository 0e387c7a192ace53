//! Progress of running calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The [`call_id`](deftool_lang::tool::CallContext::call_id) of the call.
    pub call_id: String,
    /// The completed fraction, from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// The current activity.
    pub text: String,
}

/// Passes the progress of tools to the prompt that called them.
#[derive(Debug, Clone, Default)]
pub struct ProgressSender(Arc<Mutex<HashMap<String, UnboundedSender<Progress>>>>);

impl ProgressSender {
    /// Sends the progress of a call of this request. Does nothing if the request is not a running prompt.
    pub fn send(&self, request_id: &str, progress: Progress) {
        if let Some(sender) = self.senders().get(request_id) {
            // A tool can report progress a limited number of times. The receiver is dropped after its sender was removed.
            let _ = sender.send(progress);
        }
    }

    pub(crate) fn subscribe(&self, request_id: &str) -> ProgressReceiver {
        let (sender, receiver) = unbounded_channel();
        self.senders().insert(request_id.to_owned(), sender);
        ProgressReceiver { sender: self.clone(), request_id: request_id.to_owned(), receiver }
    }

    fn senders(&self) -> MutexGuard<'_, HashMap<String, UnboundedSender<Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the progress of one request until it is dropped.
pub(crate) struct ProgressReceiver {
    sender: ProgressSender,
    request_id: String,
    receiver: UnboundedReceiver<Progress>,
}

impl ProgressReceiver {
    /// Waits for progress; `None` never comes before the end of the request.
    pub(crate) async fn next(&mut self) -> Option<Progress> {
        self.receiver.recv().await
    }

    pub(crate) fn next_queued(&mut self) -> Option<Progress> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for ProgressReceiver {
    fn drop(&mut self) {
        self.sender.senders().remove(&self.request_id);
    }
}
