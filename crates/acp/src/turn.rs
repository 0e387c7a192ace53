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
use deftool_lang::text::exact;
use deftool_lang::tool::call_title;
use deftool_worker::AlwaysAllowed;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::host::OpenedSession;
use crate::progress::ProgressSender;
use crate::updates::{MAX_TITLE, Updates};

/// The option of a permission request that executes the call.
const ALLOW: &str = "allow";

/// The option of a permission request that executes all calls of the tool in this session.
const ALLOW_ALWAYS: &str = "allow-always";

/// The state that a prompt changes.
pub(crate) struct Conversation {
    pub(crate) session: OpenedSession,
    /// The tools whose calls the user allowed for this session.
    pub(crate) allowed: AlwaysAllowed,
}

/// The connection of a session.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) session_id: String,
    pub(crate) connection: ConnectionTo<Client>,
    /// Whether the client shows notices.
    pub(crate) shows_notices: bool,
    /// The progress of calls.
    pub(crate) progress: ProgressSender,
}

/// A call that the user is asked to approve.
struct Asked {
    call_id: String,
    tool: String,
    arguments: Arc<Value>,
    /// The generation of the tools.
    generation: u64,
}

/// The answer of the user.
enum Answer {
    Once(Approval),
    /// Calls of the tool are allowed in this session.
    Always,
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

    fn update_if(&self, update: Option<SessionUpdate>) {
        if let Some(update) = update {
            self.update(update);
        }
    }

    /// Asks the user to approve a call.
    async fn approve(&self, call: Asked) -> (Asked, Answer) {
        let fields = ToolCallUpdateFields::new()
            .title(call_title(&call.tool, &call.arguments, MAX_TITLE))
            .raw_input(Value::clone(&call.arguments));
        let always = format!("Allow {} in this session", exact(&call.tool));
        let options = vec![
            PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new(ALLOW_ALWAYS, always, PermissionOptionKind::AllowAlways),
            PermissionOption::new("refuse", "Refuse", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(
            self.session_id.clone(),
            ToolCallUpdate::new(call.call_id.clone(), fields),
            options,
        );
        let refused = |reason: String| Answer::Once(Approval::Refused { reason });
        let answer = match self.connection.send_request(request).block_task().await {
            Ok(response) => match response.outcome {
                RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
                    ALLOW => Answer::Once(Approval::Allowed),
                    ALLOW_ALWAYS => Answer::Always,
                    _ => refused(String::new()),
                },
                RequestPermissionOutcome::Cancelled => {
                    refused(String::from("nobody answered the request for approval"))
                }
                _ => refused(String::new()),
            },
            Err(error) => refused(format!("the client did not ask the user: {}", error.message)),
        };
        (call, answer)
    }
}

/// Sends a message of the user, and waits for the end of the reply. `canceled` cancels the reply.
///
/// # Errors
/// If the request fails. The conversation contains the received part of the reply.
pub(crate) async fn send(
    conversation: &mut Conversation,
    peer: &Peer,
    message: Message,
    canceled: &CancellationToken,
) -> Result<StopReason, Error> {
    let Conversation { session, allowed } = conversation;
    let OpenedSession { worker: of_session, request, store, .. } = session;
    let worker = &of_session.worker;
    request.messages.push(message);
    request.messages = normalize_conversation(std::mem::take(&mut request.messages));
    store.store(&request.messages);
    let submitted = canceled.run_until_cancelled(worker.submit_when_ready(request.clone())).await;
    let Some(submitted) = submitted else { return Ok(StopReason::Cancelled) };
    let id = submitted.map_err(|error| failed(&error.to_string()))?;
    let mut events = worker.events(&id, 0).ok_or_else(|| failed("unknown request"))?;
    let mut progress = peer.progress.subscribe(&id);
    let mut updates = Updates::new(&id, &*of_session.kind_of);
    let mut approvals: FuturesUnordered<BoxFuture<(Asked, Answer)>> = FuturesUnordered::new();
    let mut is_canceled = false;
    loop {
        let event = tokio::select! {
            // Progress follows the start of its call.
            biased;
            () = canceled.cancelled(), if !is_canceled => {
                is_canceled = true;
                worker.cancel(&id);
                continue;
            }
            event = events.next() => event,
            Some((Asked { call_id, tool, generation, .. }, answer)) = approvals.next() => {
                let answer = match answer {
                    Answer::Once(answer) => answer,
                    Answer::Always => {
                        allowed.insert(tool, generation);
                        Approval::Allowed
                    }
                };
                worker.approve(&id, &call_id, answer);
                continue;
            }
            Some(progress) = progress.next() => {
                peer.update_if(updates.progress(&progress));
                continue;
            }
        };
        let Some(event) = event else { break };
        if matches!(&*event, Event::ToolFinished { .. }) {
            // The result replaces it.
            while let Some(progress) = progress.next_queued() {
                peer.update_if(updates.progress(&progress));
            }
        }
        peer.update_if(updates.of(&event));
        match &*event {
            Event::Approval { id: call_id, name, arguments, answer: None } => {
                let generation = worker.generation();
                if allowed.contains(name, generation) {
                    worker.approve(&id, call_id, Approval::Allowed);
                    continue;
                }
                let (call_id, tool) = (call_id.clone(), name.clone());
                let arguments = arguments.clone().unwrap_or_default();
                approvals.push(peer.approve(Asked { call_id, tool, arguments, generation }).boxed());
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
