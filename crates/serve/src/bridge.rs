//! The journal of a worker whose requests run on Restate: passes the entries of each request to its handler.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deftool_chat::request::JournalEntry;
use deftool_record::{Durability, Journal, JournalError, JournaledRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Passes the entries of each request to the handler that drives it, which stores them in Restate.
#[derive(Debug, Default)]
pub struct RestateJournal {
    /// The handlers of this process, by the id of their request.
    handlers: Mutex<HashMap<String, mpsc::UnboundedSender<Item>>>,
}

/// What a worker writes to the journal of one request.
#[derive(Debug)]
pub(crate) enum Item {
    Begin(Box<JournaledRequest>),
    Entries(u64, Vec<JournalEntry>),
    /// The request waits until everything before is stored.
    Commit(oneshot::Sender<()>),
}

impl RestateJournal {
    /// Begins to pass the entries of a request to the returned receiver. The earlier receiver of the request, if any,
    /// ends.
    pub(crate) fn attach(&self, request_id: &str) -> mpsc::UnboundedReceiver<Item> {
        // Not bounded, but it contains no more than the worker keeps of the request.
        let (sender, receiver) = mpsc::unbounded_channel();
        self.handlers().insert(request_id.to_owned(), sender);
        receiver
    }

    /// Removes a request.
    pub(crate) fn detach(&self, request_id: &str) {
        self.handlers().remove(request_id);
    }

    /// Passes an item on. Returns whether a handler receives it.
    fn send(&self, request_id: &str, item: Item) -> bool {
        self.handlers().get(request_id).is_some_and(|handler| handler.send(item).is_ok())
    }

    fn handlers(&self) -> MutexGuard<'_, HashMap<String, mpsc::UnboundedSender<Item>>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for RestateJournal {
    fn begin(&self, request: JournaledRequest) {
        let id = request.session.request_id.clone();
        self.send(&id, Item::Begin(Box::new(request)));
    }

    fn append(&self, request_id: &str, at_ms: u64, entries: Vec<JournalEntry>) {
        // Separately, so that a step can end after a large image.
        let is_attachment = |entry: &JournalEntry| matches!(entry, JournalEntry::Attachment(_));
        let (attachments, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_attachment);
        let attachments = attachments.into_iter().map(|entry| vec![entry]);
        for entries in attachments.chain([others]).filter(|entries| !entries.is_empty()) {
            self.send(request_id, Item::Entries(at_ms, entries));
        }
    }

    fn commit(&self, request_id: &str, _: Durability) -> BoxFuture<'static, Result<(), JournalError>> {
        let (waiter, stored) = oneshot::channel();
        self.send(request_id, Item::Commit(waiter));
        // The handler ends when another worker continues its request.
        let moved = |_| JournalError(String::from("the request no longer runs in this process"));
        async move { stored.await.map_err(moved) }.boxed()
    }
}
