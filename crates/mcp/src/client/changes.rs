//! Changes of the tools that a server announces, in the order of its messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

/// Wait before the tools are listed again, so that many announcements cause one request.
const LIST_DELAY: Duration = Duration::from_millis(200);

/// The number of announced changes of the tools on one connection, and how many of them are listed.
#[derive(Clone)]
pub(super) struct Changes {
    announced: watch::Sender<u64>,
    listed: watch::Receiver<u64>,
    /// Notified when a call waits for the list.
    awaited: Arc<Notify>,
}

impl Changes {
    /// Returns the changes of a new connection. The lister sets the number of those that are listed; its end ends all waits.
    pub(super) fn new() -> (Self, watch::Sender<u64>) {
        let (lister, listed) = watch::channel(0);
        (Self { announced: watch::Sender::new(0), listed, awaited: Arc::default() }, lister)
    }

    /// Adds a change.
    pub(super) fn announce(&self) {
        self.announced.send_modify(|count| *count += 1);
    }

    /// Waits until there are changes to list. Returns the number of all.
    pub(super) async fn to_list(&self) -> u64 {
        let listed = *self.listed.borrow();
        // Never an error: this is a sender.
        let _ = self.announced.subscribe().wait_for(|count| *count > listed).await;
        tokio::select! {
            () = sleep(LIST_DELAY) => {}
            () = self.awaited.notified() => {}
        }
        *self.announced.borrow()
    }

    /// Waits until the changes that were announced so far are listed, or the connection ends.
    pub(super) async fn listed(&self) {
        let announced = *self.announced.borrow();
        if *self.listed.borrow() < announced {
            self.awaited.notify_one();
            let _ = self.listed.clone().wait_for(|listed| *listed >= announced).await;
        }
    }
}
