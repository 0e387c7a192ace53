//! Messages to the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deftool_jsonrpc::{Error, Framing, Id, Message, Notification, append};
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::output::Output;
use crate::protocol::CancelParams;

/// The client of a server.
#[derive(Clone)]
pub(crate) struct Client {
    output: Arc<Output>,
    framing: Framing,
    /// The requests of the server without a response.
    open: Arc<Mutex<OpenRequests>>,
    last_id: Arc<AtomicI64>,
}

type OpenRequests = HashMap<Id, oneshot::Sender<Result<Value, Error>>>;

impl Client {
    /// Starts to write to `output`. The token is canceled at the end: after [`Client::close`], or when `output` failed.
    pub(crate) fn start(
        output: impl AsyncWrite + Send + 'static,
        framing: Framing,
    ) -> (Self, CancellationToken) {
        let (output, end) = Output::start(output);
        (Self { output, framing, open: Arc::default(), last_id: Arc::default() }, end)
    }

    /// Ends the output after the messages that wait for the client.
    pub(crate) fn close(&self) {
        self.output.close();
    }

    /// Waits until the client has read enough for more messages.
    pub(crate) async fn room(&self) {
        self.output.room().await;
    }

    /// Sends a message, also without [`room`](Self::room).
    pub(crate) fn send(&self, message: &impl Serialize) {
        let mut bytes = Vec::new();
        self.append(&mut bytes, message);
        self.output.push(&bytes);
    }

    pub(crate) fn respond(&self, id: Id, result: Result<Value, Error>) {
        self.send(&Message::Response { id: Some(id), result });
    }

    /// Sends a notification when there is room.
    pub(crate) async fn notify(&self, method: &str, params: impl Serialize) {
        self.room().await;
        self.send(&Notification { method, params });
    }

    /// Adds a message to messages for [`send_batch`](Self::send_batch).
    pub(crate) fn append(&self, batch: &mut Vec<u8>, message: &impl Serialize) {
        if let Err(error) = append(batch, self.framing, message) {
            tracing::error!(%error, "cannot serialise a message");
        }
    }

    /// Sends the messages when there is room, and removes them from `batch`.
    pub(crate) async fn send_batch(&self, batch: &mut Vec<u8>) {
        self.room().await;
        self.output.push(batch);
        batch.clear();
    }

    /// Sends a request and waits for its response. Dropping the future cancels the request.
    ///
    /// # Errors
    /// The error of the client.
    pub(crate) async fn request(&self, method: &str, params: impl Serialize) -> Result<Value, Error> {
        let id = Id::Number(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, response) = oneshot::channel();
        self.open().insert(id.clone(), sender);
        let _open = OpenRequest { client: self, id: id.clone() };
        self.room().await;
        self.send(&Message::Request { id, method: method.to_owned(), params: to_json(params) });
        match response.await {
            Ok(response) => response,
            // The sender is removed only with a response or by this function.
            Err(_) => std::future::pending().await,
        }
    }

    /// Passes a response to the request that waits for it. Ignores others.
    pub(crate) fn on_response(&self, id: Option<&Id>, response: Result<Value, Error>) {
        let sender = id.and_then(|id| self.open().remove(id));
        if let Some(sender) = sender {
            let _ = sender.send(response);
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of the server that waits for its response.
struct OpenRequest<'c> {
    client: &'c Client,
    id: Id,
}

impl Drop for OpenRequest<'_> {
    /// Cancels the request, unless its response has arrived.
    fn drop(&mut self) {
        if self.client.open().remove(&self.id).is_none() {
            return;
        }
        let params = CancelParams { id: self.id.clone() };
        self.client.send(&Notification { method: "$/cancelRequest", params });
    }
}

/// Converts a message to JSON. The types of the protocol have string keys and no failing serialiser.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
