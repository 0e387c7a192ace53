//! Messages to the client.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deftool_jsonrpc::{Error, Framing, Id, Message, write};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::protocol::CancelParams;

/// Maximum number of messages that wait for the client.
const MAX_QUEUE: usize = 16;

/// The client of a server. A message waits until there is room in the queue. Messages to a client that is gone are
/// dropped.
#[derive(Clone)]
pub(crate) struct Client {
    messages: mpsc::Sender<Message>,
    /// The requests of the server without a response.
    open: Arc<Mutex<OpenRequests>>,
    last_id: Arc<AtomicI64>,
}

type OpenRequests = HashMap<Id, oneshot::Sender<Result<Value, Error>>>;

impl Client {
    /// Starts a thread that writes the messages. Also returns a receiver that is closed when the thread ends: after the
    /// last handle was dropped, or when `output` failed.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(
        mut output: impl Write + Send + 'static,
        framing: Framing,
    ) -> std::io::Result<(Self, oneshot::Receiver<()>)> {
        let (messages, mut queue) = mpsc::channel::<Message>(MAX_QUEUE);
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new().name(String::from("deftool-rpc-writer")).spawn(move || {
            while let Some(message) = queue.blocking_recv() {
                if write(&mut output, framing, &message).is_err() {
                    break;
                }
            }
            drop(ended);
        })?;
        Ok((Self { messages, open: Arc::default(), last_id: Arc::default() }, end))
    }

    pub(crate) async fn send(&self, message: Message) {
        let _ = self.messages.send(message).await;
    }

    pub(crate) async fn notify(&self, method: &str, params: impl Serialize) {
        self.send(Message::Notification { method: method.to_owned(), params: to_json(params) }).await;
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
        self.send(Message::Request { id, method: method.to_owned(), params: to_json(params) }).await;
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
        let (client, params) = (self.client.clone(), CancelParams { id: self.id.clone() });
        tokio::spawn(async move { client.notify("$/cancelRequest", params).await });
    }
}

/// Converts a message to JSON. The types of the protocol have string keys and no failing serialiser.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
