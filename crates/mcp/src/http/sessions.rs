//! The sessions of clients over HTTP. As those of the library, except that a call ends with its session, and that all
//! events of a call go to the stream of its request: the library sends log lines to the stream of the session.

use futures_util::stream::{PollNext, poll_fn, select_with_strategy};
use futures_util::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use tokio::sync::mpsc::unbounded_channel;

use crate::caller::CallStream;
use crate::membership::{CancelCalls, SessionTransport};

type Local = LocalSessionManager;

/// The sessions of a server.
#[derive(Default)]
pub(super) struct Sessions(Local);

impl SessionManager for Sessions {
    type Error = <Local as SessionManager>::Error;
    type Transport = SessionTransport<<Local as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.0.create_session().await?;
        Ok((id, SessionTransport::new(transport, CancelCalls::AtEndOfInput)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.0.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.0.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let (events, mut sent) = unbounded_channel();
        if let JsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(CallStream(events));
        }
        let sent = poll_fn(move |context| sent.poll_recv(context)).map(ServerSseMessage::from_message);
        let answers = self.0.create_stream(id, message).await?;
        // The events that were sent before an answer come before it.
        Ok(select_with_strategy(sent, answers, |()| PollNext::Left))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.0.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.resume(id, last_event_id).await
    }
}
