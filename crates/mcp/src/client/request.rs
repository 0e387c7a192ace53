//! Requests to a server whose results are read as JSON: one item that breaks the protocol does not invalidate the rest.

use futures_util::FutureExt;
use rmcp::model::{CancelledNotificationParam, ClientRequest, RequestId};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;

/// Sends a request, and returns its result. Dropping the future cancels the request on the server.
///
/// # Errors
/// If the server answers with an error, or the connection is lost.
pub(super) async fn request(peer: &Peer<RoleClient>, request: ClientRequest) -> Result<Value, ServiceError> {
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut open = OpenRequest { peer, id: Some(sent.id.clone()) };
    let result = sent.await_response().await;
    open.id = None;
    // A result that is not what the protocol describes arrives as JSON.
    serde_json::to_value(result?).map_err(|_| ServiceError::UnexpectedResponse)
}

/// A request without an answer. Its drop cancels it on the server.
struct OpenRequest<'p> {
    peer: &'p Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let reason = Some(String::from("the call was canceled"));
            // The first poll queues the message; nothing waits until it is sent.
            let _ =
                self.peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).now_or_never();
        }
    }
}
