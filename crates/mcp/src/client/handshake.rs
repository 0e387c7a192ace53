//! Messages that need attention in their order: answers to the first requests that break the protocol or come late, and
//! announced changes of the tools, which the library handles after a later answer.

use std::borrow::Cow;

use rmcp::RoleClient;
use rmcp::model::{
    InitializeResult, JsonRpcMessage, JsonRpcResponse, ProtocolVersion, RequestId, ServerCapabilities,
    ServerNotification, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;

use super::answer::Warn;
use super::changes::Changes;

/// The newest protocol, which has no handshake.
pub(super) const NEWEST_PROTOCOL: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// A transport that repairs the answer to `initialize`, of which only the protocol version is necessary to use the tools,
/// and uses late answers: a server that starts slowly answers `server/discover` when the client has already asked for
/// `initialize` instead. A server with the newer protocol then refuses `initialize`, so its late answer takes the place of
/// that refusal; other late answers are dropped.
pub(super) struct LenientHandshake<T> {
    transport: T,
    is_done: bool,
    /// The requests so far. The last one is waited for.
    requests: Vec<RequestId>,
    changes: Changes,
    warn: Warn,
}

impl<T> LenientHandshake<T> {
    /// Wraps `transport`. `changes` gets the announced ones. `warn` receives the problem of a repaired answer.
    pub(super) fn new(transport: T, changes: Changes, warn: Warn) -> Self {
        Self { transport, is_done: false, requests: Vec::new(), changes, warn }
    }

    /// Returns whether a message answers a request that nobody waits for any more.
    fn is_late(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let answered = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let Some((_, given_up)) = self.requests.split_last() else { return false };
        // Some servers answer with the number as a string.
        answered.is_some_and(|id| given_up.iter().any(|request| request.to_string() == id.to_string()))
    }

    /// Returns the answer to `initialize` that a late answer to `server/discover` contains.
    fn initialized_by(&self, late: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let JsonRpcMessage::Response(JsonRpcResponse { result: ServerResult::DiscoverResult(found), .. }) =
            late
        else {
            return None;
        };
        let version = found.supported_versions.iter().find(|version| **version == NEWEST_PROTOCOL)?;
        let result = InitializeResult::new(found.capabilities).with_protocol_version(version.clone());
        Some(JsonRpcMessage::response(ServerResult::InitializeResult(result), self.requests.last()?.clone()))
    }

    fn repair(&mut self, result: &mut ServerResult) {
        // A result that is not what the protocol describes arrives as JSON.
        match result {
            ServerResult::CustomResult(custom) => {
                let Some((repaired, problem)) = repaired(&custom.0) else { return };
                *result = ServerResult::InitializeResult(repaired);
                (self.warn)(problem);
            }
            ServerResult::InitializeResult(_) | ServerResult::DiscoverResult(_) => {}
            _ => return,
        }
        // Later results are not answers to `initialize`.
        self.is_done = true;
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LenientHandshake<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if !self.is_done
            && let JsonRpcMessage::Request(request) = &message
        {
            self.requests.push(request.id.clone());
        }
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let mut message = self.transport.receive().await?;
            if let JsonRpcMessage::Notification(received) = &message
                && let ServerNotification::ToolListChangedNotification(_) = received.notification
            {
                self.changes.announce();
            }
            if self.is_done {
                return Some(message);
            }
            if self.is_late(&message) {
                let Some(answer) = self.initialized_by(message) else { continue };
                self.is_done = true;
                return Some(answer);
            }
            if let JsonRpcMessage::Response(response) = &mut message {
                self.repair(&mut response.result);
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.transport.close()
    }
}

/// Returns an answer with the protocol version of `answer`, and the problem of `answer`.
fn repaired(answer: &Value) -> Option<(InitializeResult, String)> {
    let version = serde_json::from_value(answer.get("protocolVersion")?.clone()).ok()?;
    let error = serde_json::from_value::<InitializeResult>(answer.clone()).err()?;
    let result = InitializeResult::new(ServerCapabilities::default()).with_protocol_version(version);
    Some((
        result,
        format!(
            "breaks the protocol in its answer to `initialize`, which is used without the bad part: {error}"
        ),
    ))
}
