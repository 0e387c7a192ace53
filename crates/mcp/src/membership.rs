//! A transport that marks the requests of a session, so that a call belongs to its session and ends with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::RoleServer;
use rmcp::model::{GetExtensions, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::turns::CallerId;

/// The session of a request, in its extensions.
#[derive(Clone)]
pub(crate) struct Membership {
    pub(crate) caller: CallerId,
    /// Canceled when the client ends the session.
    pub(crate) ended: CancellationToken,
}

/// The transport of one session.
pub(crate) struct SessionTransport<T> {
    inner: T,
    membership: Membership,
    _ended: DropGuard,
}

impl<T> SessionTransport<T> {
    pub(crate) fn new(inner: T) -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let ended = CancellationToken::new();
        let membership = Membership { caller: Arc::from(format!("session {number}")), ended: ended.clone() };
        Self { inner, membership, _ended: ended.drop_guard() }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for SessionTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.inner.receive().await;
        match &mut message {
            Some(JsonRpcMessage::Request(request)) => {
                request.request.extensions_mut().insert(self.membership.clone());
            }
            Some(_) => {}
            // The library waits some seconds for running calls, whose answers no client reads.
            None => self.membership.ended.cancel(),
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
