//! A request with its events.

use std::sync::Arc;

use deftool_chat::request::{Event, Outcome};

use crate::driver::{EventStream, RequestRecord, ResultError};

/// A request and its events. Dropping it cancels the request.
#[derive(Debug)]
pub struct RequestStream {
    id: String,
    record: Arc<RequestRecord>,
    events: EventStream,
}

impl RequestStream {
    pub(super) fn new(id: String, record: Arc<RequestRecord>) -> Self {
        let events = EventStream::new(Arc::clone(&record), 0);
        Self { id, record, events }
    }

    /// Returns the id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next event; `None` after `finished`.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.events.next().await
    }

    /// Returns the outcome, after the last event.
    ///
    /// # Errors
    /// When the request has not finished.
    pub fn outcome(&self) -> Result<Arc<Outcome>, ResultError> {
        self.record.outcome().ok_or(ResultError::NotReady)
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        self.record.cancel.cancel();
    }
}
