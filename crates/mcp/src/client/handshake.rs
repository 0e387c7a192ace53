//! Answers to `initialize` that break the protocol.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{InitializeResult, JsonRpcMessage, ServerCapabilities, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;

/// A transport that repairs the answer to `initialize`. Only its protocol version is necessary to use the tools.
pub(super) struct LenientHandshake<T> {
    transport: T,
    is_done: bool,
    problem: Arc<OnceLock<String>>,
}

impl<T> LenientHandshake<T> {
    /// Wraps `transport`. The problem of a repaired answer is stored in `problem`, as a clause.
    pub(super) fn new(transport: T, problem: Arc<OnceLock<String>>) -> Self {
        Self { transport, is_done: false, problem }
    }

    fn repair(&mut self, result: &mut ServerResult) {
        // A result that is not what the protocol describes arrives as JSON.
        match result {
            ServerResult::CustomResult(custom) => {
                let Some((repaired, problem)) = repaired(&custom.0) else { return };
                *result = ServerResult::InitializeResult(repaired);
                let _ = self.problem.set(problem);
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
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.transport.receive().await?;
        if !self.is_done
            && let JsonRpcMessage::Response(response) = &mut message
        {
            self.repair(&mut response.result);
        }
        Some(message)
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
