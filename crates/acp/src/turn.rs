//! Prompts: each is one request of the worker.

use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionNotification, SessionUpdate, StopReason, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{Client, Error, ErrorCode};
use deftool_chat::Message;
use deftool_chat::request::{Approval, Event, FinalState, FinishReason, Outcome, normalize_conversation};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::host::OpenedSession;
use crate::updates::{Updates, title};

/// The option of a permission request that executes the call.
const ALLOW: &str = "allow";

/// The connection of a session.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) session_id: String,
    pub(crate) connection: ConnectionTo<Client>,
    /// Whether the client shows notices.
    pub(crate) shows_notices: bool,
}

impl Peer {
    /// Sends an update. The queue is not bounded, but it contains no more than the worker keeps of the request.
    pub(crate) fn update(&self, update: SessionUpdate) {
        if self.shows_notices || !matches!(update, SessionUpdate::Notice(_)) {
            // Fails only if the client is gone, which cancels the prompt.
            let _ =
                self.connection.send_notification(SessionNotification::new(self.session_id.clone(), update));
        }
    }

    /// Asks the user to approve a call. Returns its ID with the answer.
    async fn approve(&self, call_id: String, tool: String, arguments: Arc<Value>) -> (String, Approval) {
        let fields =
            ToolCallUpdateFields::new().title(title(&tool, &arguments)).raw_input(Value::clone(&arguments));
        let options = vec![
            PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("refuse", "Refuse", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(
            self.session_id.clone(),
            ToolCallUpdate::new(call_id.clone(), fields),
            options,
        );
        let refused = |reason: String| Approval::Refused { reason };
        let answer = match self.connection.send_request(request).block_task().await {
            Ok(response) => match response.outcome {
                RequestPermissionOutcome::Selected(selected) if &*selected.option_id.0 == ALLOW => {
                    Approval::Allowed
                }
                RequestPermissionOutcome::Cancelled => {
                    refused(String::from("nobody answered the request for approval"))
                }
                _ => refused(String::new()),
            },
            Err(error) => refused(format!("the client did not ask the user: {}", error.message)),
        };
        (call_id, answer)
    }
}

/// Sends a message of the user, and waits for the end of the reply. `canceled` cancels the reply.
///
/// # Errors
/// If the request fails. The conversation contains the received part of the reply.
pub(crate) async fn send(
    session: &mut OpenedSession,
    peer: &Peer,
    message: Message,
    canceled: &CancellationToken,
) -> Result<StopReason, Error> {
    let OpenedSession { worker, request, store, .. } = session;
    request.messages.push(message);
    request.messages = normalize_conversation(std::mem::take(&mut request.messages));
    store.store(&request.messages);
    let submitted = canceled.run_until_cancelled(worker.submit_when_ready(request.clone())).await;
    let Some(submitted) = submitted else { return Ok(StopReason::Cancelled) };
    let id = submitted.map_err(|error| failed(&error.to_string()))?;
    let mut events = worker.events(&id, 0).ok_or_else(|| failed("unknown request"))?;
    let mut updates = Updates::new(&id);
    let mut approvals: FuturesUnordered<BoxFuture<(String, Approval)>> = FuturesUnordered::new();
    let mut is_canceled = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some((call_id, answer)) = approvals.next() => {
                worker.approve(&id, &call_id, answer);
                continue;
            }
            () = canceled.cancelled(), if !is_canceled => {
                is_canceled = true;
                worker.cancel(&id);
                continue;
            }
        };
        let Some(event) = event else { break };
        if let Some(update) = updates.of(&event) {
            peer.update(update);
        }
        match &*event {
            Event::Approval { id, name, arguments, answer: None } => {
                let arguments = arguments.clone().unwrap_or_default();
                approvals.push(peer.approve(id.clone(), name.clone(), arguments).boxed());
            }
            // The previous turn is complete.
            Event::TurnStarted { turn, .. } if *turn > 1 => {
                store.store(&worker.conversation(&id).unwrap_or_default());
            }
            event => store.store_event(event),
        }
    }
    if let Some(messages) = worker.conversation(&id) {
        request.messages = messages;
    }
    store.store(&request.messages);
    let outcome = worker.take_result(&id).map_err(|error| failed(&error.to_string()))?;
    stop_reason(&outcome)
}

/// Returns the response to a prompt.
fn stop_reason(outcome: &Outcome) -> Result<StopReason, Error> {
    match (outcome.state, outcome.finish_reason) {
        (FinalState::Failed, _) => {
            let detail = outcome.detail.as_deref().unwrap_or("the request failed");
            Err(failed(detail))
        }
        (FinalState::Canceled, _) => Ok(StopReason::Cancelled),
        (FinalState::Completed, FinishReason::MaxTokens) => Ok(StopReason::MaxTokens),
        (FinalState::Completed, FinishReason::ContentFilter) => Ok(StopReason::Refusal),
        (FinalState::Completed, _) => Ok(StopReason::EndTurn),
    }
}

/// Returns an error with a message for the user.
pub(crate) fn failed(message: &str) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, message)
}
