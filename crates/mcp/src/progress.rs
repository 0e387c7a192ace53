//! The progress of running calls, reported to the client that sent the call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The completed fraction, from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// The current activity.
    pub text: String,
}

/// Passes the progress that a tool reports to its call.
#[derive(Debug, Clone, Default)]
pub struct ProgressReports(Arc<Mutex<HashMap<String, UnboundedSender<Progress>>>>);

impl ProgressReports {
    /// Reports the progress of the call with this [`request_id`](deftool_lang::tool::CallContext::request_id). Does
    /// nothing if no client asked for it.
    pub fn send(&self, request_id: &str, progress: Progress) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(request_id) {
            // The receiver is dropped only after its sender was removed.
            let _ = sender.send(progress);
        }
    }

    pub(crate) fn subscribe(&self, request_id: &str) -> ProgressReceiver {
        let (sender, receiver) = unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request_id.to_owned(), sender);
        ProgressReceiver { reports: self.clone(), request_id: request_id.to_owned(), receiver }
    }
}

/// Receives the progress of one call until it is dropped.
pub(crate) struct ProgressReceiver {
    reports: ProgressReports,
    request_id: String,
    receiver: UnboundedReceiver<Progress>,
}

impl ProgressReceiver {
    pub(crate) async fn next(&mut self) -> Progress {
        match self.receiver.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn next_queued(&mut self) -> Option<Progress> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for ProgressReceiver {
    fn drop(&mut self) {
        self.reports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request_id);
    }
}
