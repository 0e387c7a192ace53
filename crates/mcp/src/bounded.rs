//! A transport that limits the number of open requests of a client, so that one that floods the server or does not read
//! its answers cannot fill the memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

/// Maximum number of open requests. At the limit, no further message is read.
const MAX_REQUESTS: usize = 128;

/// Limits the open requests of `inner`.
pub(crate) struct Bounded<T> {
    inner: T,
    open: Arc<OpenRequests>,
}

impl<T> Bounded<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, open: Arc::default() }
    }
}

/// The requests without a written answer.
#[derive(Default)]
struct OpenRequests {
    /// How often each id is open: a client may repeat an id.
    ids: Mutex<HashMap<RequestId, usize>>,
    ended: Notify,
}

impl OpenRequests {
    async fn wait_for_room(&self) {
        loop {
            let ended = self.ended.notified();
            if self.ids.lock().unwrap_or_else(PoisonError::into_inner).values().sum::<usize>() < MAX_REQUESTS
            {
                return;
            }
            ended.await;
        }
    }

    fn begin(&self, id: RequestId) {
        *self.ids.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default() += 1;
    }

    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = ids.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                ids.remove(id);
            }
        }
        self.ended.notify_one();
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let sent = self.inner.send(message);
        let open = Arc::clone(&self.open);
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                open.end(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.open.wait_for_room().await;
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => self.open.begin(request.id.clone()),
            // A canceled request gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(canceled) = &notification.notification
                    && let Some(id) = &canceled.params.request_id
                {
                    self.open.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
