//! The state of a request, its progress and its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use deftool_lang::text::append;
use deftool_lang::tool::{Attachment, ToolErrorKind};
use serde::{Deserialize, Serialize};

use super::batch::{Batch, CallPlan};
use super::failures::RepeatedFailures;
use super::model::{Budget, PendingCall, RequestState, RequestStatus};
use super::raw_text::RawText;
use crate::body::remove_rejected;
use crate::request::config::{RequestOptions, RunConfig, RunStart};
use crate::request::conversation::{SentMessages, append_answered, reply_text};
use crate::request::event::{EVENT_VERSION, Event};
use crate::request::ids::IdGenerator;
use crate::request::normalize::{INTERRUPTED, normalize_conversation};
use crate::request::outcome::{FailReason, Failure, FinalState, FinishReason, Outcome, Signal};
use crate::request::repetition::LineDetector;
use crate::request::text_calls::{HoldBack, MessageIndex};
use crate::{ChatRequest, Message, Opaque, Received, Usage};

/// The state machine of one request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub(super) config: RunConfig,
    pub(super) start: RunStart,
    /// The conversation, without system messages from the configuration. Every call in it is answered.
    pub(super) conversation: Vec<Arc<Message>>,
    /// The conversation as it was sent. A restored run creates it again.
    #[serde(skip)]
    pub(super) sent: SentMessages,
    pub(super) phase: Phase,
    pub(super) turn: u32,
    /// Digest of the tool set that the current turn was sent with. Shared with the set: each event compares it.
    pub(super) turn_tools: Arc<str>,
    /// Start of the current turn's text.
    pub(super) turn_text_start: usize,
    /// Start of the current turn's raw text.
    pub(super) turn_raw_start: usize,
    /// Start of the current turn's reasoning.
    pub(super) turn_reasoning_start: usize,
    pub(super) budget: Budget,
    pub(super) tool_iterations: u32,
    #[serde(default)]
    pub(super) failures: RepeatedFailures,
    pub(super) ids: IdGenerator,
    /// The time of the last delta of each structured call of the reply.
    pub(super) call_times: BTreeMap<usize, u64>,
    pub(super) hold_back: HoldBack,
    pub(super) lines: LineDetector,
    /// The emitted text, until the outcome contains it.
    pub(super) text: String,
    pub(super) text_chars: usize,
    pub(super) raw_text: RawText,
    pub(super) reasoning: String,
    /// What is sent again because of the current reply.
    #[serde(default)]
    pub(super) received: Received,
    /// Whether the last reply was empty and is requested once more.
    #[serde(default)]
    pub(super) was_empty: bool,
    pub(super) signals: Vec<Signal>,
    pub(super) usage: Option<Usage>,
    /// The time of the first text, reasoning or call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_token_ms: Option<u64>,
    pub(super) at_ms: u64,
    pub(super) events: Vec<Event>,
    /// The state after the last reply, until it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reply_state: Option<ReplyState>,
    pub(super) outcome: Option<Arc<Outcome>>,
    /// The texts and calls of earlier messages, indexed on demand. A restored run indexes them again.
    #[serde(skip)]
    pub(super) message_index: MessageIndex,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The next turn can be sent.
    Ready,
    /// The turn was returned to the driver. No part of its reply was received.
    Asked { request: Arc<ChatRequest> },
    /// The reply is being received.
    Streaming,
    /// The request fails after the end of the reply is processed.
    Closing { failure: Failure },
    /// The calls of the reply are being answered.
    Calling(Batch),
    /// The request has ended.
    Finished,
}

/// The state of a request after a reply, as far as its events do not contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyState {
    /// Total tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    /// Time of the first output of the model. The events may be later: text is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_token_ms: Option<u64>,
    /// The state of the generator of call ids.
    pub(super) ids: u64,
    /// The text of the reply as the server sent it, if it differs from the emitted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raw_text: Option<String>,
    /// The number of calls that the budget covers.
    pub(super) affordable: usize,
    pub(super) calls: Vec<PlannedCall>,
    /// The arguments of each call as the model wrote them, if they differ from those of its event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) written: Vec<Option<Arc<str>>>,
    /// What is sent again because of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) received: Option<Received>,
    /// Whether the reply is empty. It is requested once more and not part of the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_empty: bool,
}

/// The planned action for a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum PlannedCall {
    /// Run the tool.
    Run(CallPlan),
    /// Report the error to the model.
    Report {
        detail: String,
        #[serde(default = "invalid_arguments")]
        kind: ToolErrorKind,
    },
}

/// The kind of an error whose kind is not stored.
fn invalid_arguments() -> ToolErrorKind {
    ToolErrorKind::InvalidArguments
}

/// Returns a warning about images and audio of a stored conversation whose bytes are lost.
pub(super) fn lost_attachments<'m>(conversation: impl IntoIterator<Item = &'m Message>) -> Option<Event> {
    let attachments = conversation.into_iter().flat_map(Message::attachments);
    let lost: Vec<String> =
        attachments.filter(|known| known.bytes().is_none()).map(Attachment::line).collect();
    let message =
        format!("the model receives only a line of text for what was not stored: {}", lost.join(" "));
    (!lost.is_empty()).then_some(Event::Warning { message })
}

impl Run {
    /// Creates the machine for a submitted request.
    pub fn new(config: RunConfig, mut start: RunStart) -> Self {
        let conversation = normalize_conversation(std::mem::take(&mut start.conversation));
        let config = config.with_options(&start.options);
        let submitted = Event::Submitted {
            version: EVENT_VERSION,
            request_id: start.request_id.clone(),
            job_name: start.job_name.clone(),
            worker: config.worker.clone(),
            model: config.model.clone(),
            submitted_at_ms: start.submitted_at_ms,
        };
        Self {
            phase: Phase::Ready,
            turn: 0,
            turn_tools: Arc::default(),
            turn_text_start: 0,
            turn_raw_start: 0,
            turn_reasoning_start: 0,
            budget: Budget::new(config.budget_unit, config.tool_budget),
            tool_iterations: 0,
            failures: RepeatedFailures::default(),
            ids: IdGenerator::new(start.id_seed, &conversation),
            call_times: BTreeMap::new(),
            hold_back: HoldBack::new(None),
            lines: LineDetector::new(&config.repetition),
            text: String::new(),
            text_chars: 0,
            raw_text: RawText::default(),
            reasoning: String::new(),
            received: Received::default(),
            was_empty: false,
            sent: SentMessages::default(),
            signals: Vec::new(),
            usage: None,
            first_token_ms: None,
            at_ms: 0,
            events: std::iter::once(submitted).chain(lost_attachments(&conversation)).collect(),
            reply_state: None,
            outcome: None,
            message_index: MessageIndex::default(),
            config,
            start,
            conversation: conversation.into_iter().map(Arc::new).collect(),
        }
    }

    /// Returns the ids of the calls that must be answered now, as in
    /// [`Step::AnswerCalls`](super::Step::AnswerCalls), and whether they need approval.
    pub fn open_calls(&self) -> impl Iterator<Item = (&str, bool)> {
        self.batch().into_iter().flat_map(Batch::open)
    }

    /// Returns one of the calls that must be answered now.
    pub fn pending_call(&self, call_id: &str) -> Option<PendingCall> {
        self.batch()?.pending_of(call_id)
    }

    /// Cancels the request on behalf of its submitter.
    pub fn cancel(&mut self, at_ms: u64) {
        self.fail(Failure::new(FailReason::Canceled, "", ""), at_ms);
    }

    /// Fails the request for a reason outside this machine.
    pub fn fail(&mut self, failure: Failure, at_ms: u64) {
        if self.outcome.is_none() {
            self.advance_time(at_ms);
            // The first failure is kept.
            let failure = match std::mem::replace(&mut self.phase, Phase::Streaming) {
                Phase::Closing { failure } => failure,
                phase => {
                    self.phase = phase;
                    failure
                }
            };
            self.finish_failed(failure);
        }
    }

    /// Fails the request while its reply is being received. Only [`ChatEvent::Ended`](crate::ChatEvent::Ended) is still
    /// processed, so that exit calls become signals. Fails immediately if no reply is being received.
    pub fn close(&mut self, failure: Failure, at_ms: u64) {
        match self.phase {
            Phase::Streaming => {
                self.advance_time(at_ms);
                self.phase = Phase::Closing { failure };
            }
            Phase::Closing { .. } => {}
            Phase::Ready | Phase::Asked { .. } | Phase::Calling(_) | Phase::Finished => {
                self.fail(failure, at_ms);
            }
        }
    }

    /// Whether the request only waits for [`ChatEvent::Ended`](crate::ChatEvent::Ended); the rest of the reply is not
    /// needed.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Returns the events since the last call of this function.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The outcome, after the request has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_deref()
    }

    /// Returns a snapshot of the progress.
    pub fn status(&self) -> RequestStatus {
        let state = match (&self.outcome, &self.phase) {
            (Some(outcome), _) => match outcome.state {
                FinalState::Completed => RequestState::Completed,
                FinalState::Failed => RequestState::Failed,
                FinalState::Canceled => RequestState::Canceled,
            },
            (None, Phase::Calling(_)) => RequestState::ToolRunning,
            (
                None,
                Phase::Ready
                | Phase::Asked { .. }
                | Phase::Streaming
                | Phase::Closing { .. }
                | Phase::Finished,
            ) => RequestState::Running,
        };
        RequestStatus {
            state,
            text_chars: self.text_chars,
            last_progress_ms: self.at_ms,
            budget_left: self.budget.left(),
            tool_iterations: self.tool_iterations,
            running_tool: self.running_tool().map(str::to_owned),
            usage: self.usage,
        }
    }

    /// The request's id.
    pub fn request_id(&self) -> &str {
        &self.start.request_id
    }

    /// The request's own options.
    pub fn options(&self) -> &RequestOptions {
        &self.start.options
    }

    /// The job's name, or empty.
    pub fn job_name(&self) -> &str {
        &self.start.job_name
    }

    /// The configuration.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The text emitted so far.
    pub fn text(&self) -> &str {
        self.outcome.as_ref().map_or(&self.text, |outcome| &outcome.text)
    }

    /// The signals so far.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The conversation without system messages from the configuration: the submitted messages, every answered call,
    /// and after the end the rest of the reply. It can be continued after any outcome: an interrupted reply contains
    /// [`INTERRUPTED`], and a call without a result has an error as its answer.
    pub fn conversation(&self) -> &[Arc<Message>] {
        &self.conversation
    }

    /// The current turn, starting at 1, and the digest of its tool set.
    pub fn turn(&self) -> (u32, &str) {
        (self.turn, &self.turn_tools)
    }

    /// The tool whose call is being answered; the first one if there are several.
    pub fn running_tool(&self) -> Option<&str> {
        self.batch()?.tool()
    }

    fn batch(&self) -> Option<&Batch> {
        match &self.phase {
            Phase::Calling(batch) => Some(batch),
            _ => None,
        }
    }

    /// Drops the parts of earlier replies that only the server can read: it rejected them.
    pub fn forget_state(&mut self) {
        let source = self.config.source();
        for message in &mut self.conversation {
            if let Message::Assistant { received: Some(received), .. } = &**message
                && received.source == source
                && let Message::Assistant { received: Some(received), .. } = Arc::make_mut(message)
            {
                Arc::make_mut(received).parts = Opaque::default();
            }
        }
        self.sent = SentMessages::default();
    }

    /// Removes images and audio that the server rejected. A line of text remains of each.
    pub fn remove_attachments(&mut self, rejected: &[Attachment]) {
        for message in &mut self.conversation {
            remove_rejected(message, rejected);
        }
        self.sent = SentMessages::default();
    }

    pub(super) fn advance_time(&mut self, at_ms: u64) {
        self.at_ms = self.at_ms.max(at_ms);
    }

    pub(super) fn emit_text(&mut self, text: String) {
        if !text.is_empty() {
            self.raw_text.note_shown(self.text.len(), &text);
            append(&mut self.text, &text);
            self.text_chars += text.chars().count();
            self.events.push(Event::Text { text });
        }
    }

    /// Reports a whole call in the text of the reply that is not made.
    pub(super) fn warn_of_unread_call(&mut self) {
        if let Some(unread) = self.hold_back.take_unread() {
            self.events.push(Event::Warning { message: unread.warning() });
        }
    }

    pub(super) fn finish_failed(&mut self, failure: Failure) {
        let (state, reason) = match failure.reason {
            FailReason::Canceled => (FinalState::Canceled, FinishReason::Canceled),
            FailReason::WorkerRestarted
            | FailReason::ServerDied
            | FailReason::ConnectFailed
            | FailReason::HeadersTimeout
            | FailReason::StallTimeout
            | FailReason::ToolParseError
            | FailReason::ToolExecutionError
            | FailReason::RepeatedLineLoop
            | FailReason::UnknownError => (FinalState::Failed, FinishReason::Failed),
        };
        self.finish(state, reason, Some(failure));
    }

    /// Ends the request. Every end uses this function. First emits the text that is held back.
    pub(super) fn finish(
        &mut self,
        state: FinalState,
        finish_reason: FinishReason,
        failure: Option<Failure>,
    ) {
        if self.outcome.is_some() {
            return;
        }
        let rest = self.hold_back.release(|_| false);
        self.emit_text(rest);
        self.warn_of_unread_call();
        let (fail_reason, kind, detail) = match failure {
            Some(Failure { reason, kind, detail }) => (Some(reason), not_empty(kind), not_empty(detail)),
            None => (None, None, None),
        };
        self.note_reply();
        self.complete_conversation(state);
        let take = |text: &mut String| {
            // The outcome may be kept for a long time.
            text.shrink_to_fit();
            std::mem::take(text)
        };
        let outcome = Arc::new(Outcome {
            state,
            finish_reason,
            fail_reason,
            kind,
            detail,
            raw_text: self.raw_text.if_different(&self.text),
            text: take(&mut self.text),
            signals: self.signals.clone(),
            usage: self.usage,
            first_token_ms: self.first_token_ms,
            tool_iterations: self.tool_iterations,
            reasoning: not_empty(take(&mut self.reasoning)),
        });
        self.events.push(Event::Finished(Arc::clone(&outcome)));
        self.outcome = Some(outcome);
    }

    /// Stores what the end of the request does not contain of its last reply.
    fn note_reply(&mut self) {
        let is_stored = matches!(self.phase, Phase::Calling(_)) || self.received.is_empty();
        if !is_stored && !self.text.get(self.turn_text_start..).unwrap_or_default().trim().is_empty() {
            self.reply_state = Some(self.state_after_reply(&Batch { calls: Vec::new(), affordable: 0 }));
        }
    }

    /// Completes the conversation of a request that ends in `state`.
    pub(super) fn complete_conversation(&mut self, state: FinalState) {
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            // Some calls were executed: the model must see which.
            Phase::Calling(batch) => self.append_batch(batch),
            _ => {
                let text = reply_text(self.text.get(self.turn_text_start..).unwrap_or_default());
                if !text.is_empty() {
                    let content = match state {
                        FinalState::Completed => text.to_owned(),
                        FinalState::Failed | FinalState::Canceled => {
                            [text.trim_end(), INTERRUPTED].join("\n\n")
                        }
                    };
                    if state != FinalState::Completed {
                        self.received.parts = Opaque::default();
                    }
                    let received = self.received().map(Arc::new);
                    let message = Message::Assistant { content, tool_calls: Vec::new(), received };
                    self.conversation.push(Arc::new(message));
                }
            }
        }
    }

    /// Appends the calls of a reply to the conversation, each with its answer or an error.
    pub(super) fn append_batch(&mut self, batch: Batch) {
        let received = self.received().map(Arc::new);
        append_answered(
            &mut self.conversation,
            self.text.get(self.turn_text_start..).unwrap_or_default(),
            batch.into_answered(&self.config),
            received,
            self.config.parallel_tool_calls_supported,
        );
    }
}

impl Run {
    /// Returns what is sent again because of the current reply.
    pub(super) fn received(&self) -> Option<Received> {
        (!self.received.is_empty()).then(|| self.received.clone())
    }
}

fn not_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
