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

/// When the calls of a session are canceled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelCalls {
    /// With the end of the input: the client ended the session.
    AtEndOfInput,
    /// When the transport is dropped, a few seconds after the end of the input: requests may come from a pipe.
    AtDrop,
}

/// The transport of one session.
pub(crate) struct SessionTransport<T> {
    inner: T,
    membership: Membership,
    cancel: CancelCalls,
    _ended: DropGuard,
}

impl<T> SessionTransport<T> {
    pub(crate) fn new(inner: T, cancel: CancelCalls) -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let ended = CancellationToken::new();
        let membership = Membership { caller: Arc::from(format!("session {number}")), ended: ended.clone() };
        Self { inner, membership, cancel, _ended: ended.drop_guard() }
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
            // The library waits some seconds for running calls, whose answers no client reads.
            None if self.cancel == CancelCalls::AtEndOfInput => self.membership.ended.cancel(),
            Some(_) | None => {}
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
