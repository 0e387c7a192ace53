//! A request that makes progress while its events are read.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use deftool_chat::request::{Event, Outcome};
use deftool_script::prefetch;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::driver::{EventStream, RequestRecord, ResultError};

/// A request and its events. The request makes progress only while an event is awaited, in the task that awaits it.
/// Dropping the stream cancels the request.
pub struct RequestStream {
    id: String,
    record: Arc<RequestRecord>,
    events: EventStream,
    /// Runs the request. `None`: it has ended.
    driver: Option<BoxFuture<'static, ()>>,
}

impl RequestStream {
    pub(super) fn new(id: String, record: Arc<RequestRecord>, driver: BoxFuture<'static, ()>) -> Self {
        let events = EventStream::new(Arc::clone(&record), 0);
        Self { id, record, events, driver: Some(driver) }
    }

    /// Returns the id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next event; `None` after `finished`.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Returns the outcome, after the last event.
    ///
    /// # Errors
    /// When the request has not finished.
    pub fn outcome(&self) -> Result<Arc<Outcome>, ResultError> {
        self.record.outcome().ok_or(ResultError::NotReady)
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        if let Some(event) = self.events.try_next() {
            return Poll::Ready(Some(event));
        }
        if let Some(driver) = &mut self.driver {
            prefetch(&**driver);
            if driver.poll_unpin(context).is_ready() {
                self.driver = None;
            }
        }
        match self.events.try_next() {
            None if self.driver.is_some() => Poll::Pending,
            event => Poll::Ready(event),
        }
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        let Some(driver) = self.driver.take() else { return };
        self.record.cancel.cancel();
        // Without a runtime, no further request can be submitted.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(driver);
        }
    }
}

impl std::fmt::Debug for RequestStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestStream").field("id", &self.id).finish_non_exhaustive()
    }
}
