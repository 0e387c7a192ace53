//! One request as a state machine.
//!
//! [`Run::next_step`] returns what the driver must do, repeatedly until the result arrives. The `on_` functions take
//! the inputs. Comments in `reply` number the rules of the tool loop.

use std::time::Duration;

use deftool_lang::schema::{ToolKind, ToolSet};
use deftool_lang::spec::Fallback;
use deftool_lang::tool::ToolCall;
use serde::{Deserialize, Serialize};

use super::bios::{BiosContext, BiosPart, BiosProvider};
use super::budget::Budget;
use super::config::{RequestOptions, RunConfig, RunStart};
use super::conversation::messages_to_send;
use super::event::{EVENT_VERSION, Event};
use super::hold_back::HoldBack;
use super::ids::IdGenerator;
use super::normalize::{INTERRUPTED, normalize_conversation};
use super::outcome::{FailReason, Failure, FinalState, FinishReason, Outcome, kind};
use super::repetition::LineDetector;
use super::said::Said;
use super::signal::Signal;
use crate::fallback::Forms;
use crate::{ChatEvent, ChatRequest, Message, Usage};

mod calls;
mod reply;

use calls::Batch;

/// The next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this request and pass the reply's events to [`Run::on_event`].
    Stream(ChatRequest),
    /// Run those of these calls that are not running yet, and pass each result to [`Run::on_tool_result`]. Abandon
    /// running calls that are not listed.
    AnswerCalls(Vec<PendingCall>),
    /// Nothing: the reply is still being received.
    Wait,
    /// Nothing: the request has ended. See [`Run::outcome`].
    Finished,
}

/// A call that must be answered now.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// The tool's own time limit, if any.
    pub timeout: Option<Duration>,
    /// Whether the user must approve the call first. The answer goes to [`Run::on_approval`].
    pub needs_approval: bool,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waiting for a reply.
    Running,
    /// A tool is running.
    ToolRunning,
    /// Finished: the model answered.
    Completed,
    /// Finished: the request failed.
    Failed,
    /// Finished: the request was canceled.
    Canceled,
}

/// A snapshot of a request's progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// The state.
    pub state: RequestState,
    /// Length of the emitted text, in characters.
    pub text_chars: usize,
    /// Time of the last input, in milliseconds since submit.
    pub last_progress_ms: u64,
    /// Units of the tool budget left.
    pub budget_left: u32,
    /// Number of replies whose normal calls were all answered.
    pub tool_iterations: u32,
    /// The running tool.
    pub running_tool: Option<String>,
    /// Total tokens so far, if the server reported them.
    pub usage: Option<Usage>,
}

/// The state machine of one request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    config: RunConfig,
    start: RunStart,
    /// The conversation, without system messages from the configuration. Every call in it is answered.
    conversation: Vec<Message>,
    phase: Phase,
    turn: u32,
    /// Digest of the tool set that the current turn was sent with.
    turn_tools: String,
    /// Start of the current turn's text.
    turn_text_start: usize,
    budget: Budget,
    tool_iterations: u32,
    ids: IdGenerator,
    hold_back: HoldBack,
    lines: LineDetector,
    text: String,
    text_chars: usize,
    raw_text: String,
    reasoning: String,
    signals: Vec<Signal>,
    usage: Option<Usage>,
    at_ms: u64,
    events: Vec<Event>,
    outcome: Option<Outcome>,
    /// Text and calls of earlier messages, read lazily. A restored run reads them again.
    #[serde(skip)]
    said: Said,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Phase {
    /// The next turn can be sent.
    Ready,
    /// The turn was returned to the driver. No part of its reply was received.
    Asked { request: ChatRequest },
    /// The reply is being received.
    Streaming,
    /// The request fails after the end of the reply is processed.
    Closing { failure: Failure },
    /// The calls of the reply are being answered.
    Calling(Batch),
    /// The request has ended.
    Finished,
}

impl Run {
    /// Creates the machine for a submitted request.
    pub fn new(mut config: RunConfig, mut start: RunStart) -> Self {
        let conversation = normalize_conversation(std::mem::take(&mut start.conversation));
        let RequestOptions { model, system_prompt: _, params, tools: _ } = start.options.clone();
        config.model = model.unwrap_or(config.model);
        config.params.extend(params);
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
            turn_tools: String::new(),
            turn_text_start: 0,
            budget: Budget::new(config.budget_unit, config.tool_budget),
            tool_iterations: 0,
            ids: IdGenerator::new(start.id_seed, &conversation),
            hold_back: HoldBack::new(None),
            lines: LineDetector::new(&config.repetition),
            text: String::new(),
            text_chars: 0,
            raw_text: String::new(),
            reasoning: String::new(),
            signals: Vec::new(),
            usage: None,
            at_ms: 0,
            events: vec![submitted],
            outcome: None,
            said: Said::default(),
            config,
            start,
            conversation,
        }
    }

    /// Whether [`Run::next_step`] will begin a turn, which uses the newest tools.
    pub fn begins_turn(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Returns what the driver must do now. Without an input in between, returns the same step again. `tools` and
    /// `bios` are only used when a turn begins; the turn keeps that tool set.
    pub fn next_step(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> Step {
        if let Phase::Ready = self.phase {
            let request = self.begin_turn(tools, bios);
            self.phase = Phase::Asked { request };
        }
        match &self.phase {
            Phase::Asked { request } => Step::Stream(request.clone()),
            Phase::Ready | Phase::Streaming | Phase::Closing { .. } => Step::Wait,
            Phase::Calling(batch) => Step::AnswerCalls(batch.pending()),
            Phase::Finished => Step::Finished,
        }
    }

    /// Returns the ids of the calls that must be answered now, as in [`Step::AnswerCalls`], and whether they need
    /// approval.
    pub fn open_calls(&self) -> impl Iterator<Item = (&str, bool)> {
        self.batch().into_iter().flat_map(Batch::open)
    }

    /// Returns one of the calls that must be answered now.
    pub fn pending_call(&self, call_id: &str) -> Option<PendingCall> {
        self.batch()?.pending_of(call_id)
    }

    /// Takes an event of the reply. `tools` is the tool set that the turn was sent with.
    pub fn on_event(&mut self, event: ChatEvent, tools: &ToolSet, at_ms: u64) {
        match self.phase {
            Phase::Asked { .. } => self.phase = Phase::Streaming,
            Phase::Streaming => {}
            Phase::Closing { .. } if matches!(event, ChatEvent::Ended { .. }) => {}
            Phase::Ready | Phase::Closing { .. } | Phase::Calling(_) | Phase::Finished => return,
        }
        self.advance_time(at_ms);
        if tools.digest() != self.turn_tools {
            self.finish_failed(Failure::new(
                FailReason::UnknownError,
                kind::TOOL_SET_CHANGED,
                "the tool set of the reply differs from the tool set of its request",
            ));
            return;
        }
        match event {
            ChatEvent::Text { text } => self.take_text(&text, tools),
            ChatEvent::Reasoning { text } => {
                if !text.is_empty() {
                    self.reasoning.push_str(&text);
                    self.events.push(Event::Reasoning { text });
                }
            }
            ChatEvent::ToolCallDelta { .. } | ChatEvent::Progress { .. } => {}
            ChatEvent::Ended { reply } => self.on_reply(&reply, tools),
        }
    }

    /// Cancels the request for its submitter.
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

    /// Fails the request while its reply is being received. Only [`ChatEvent::Ended`] is still processed, so that exit
    /// calls become signals. Fails immediately if no reply is being received.
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

    /// Whether the request only waits for [`ChatEvent::Ended`]; the rest of the reply is not needed.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Returns the events since the last call of this function.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The outcome, after the request has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
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
        &self.text
    }

    /// The signals so far.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The conversation without system messages from the configuration: the submitted messages, every answered call,
    /// and after the end the rest of the reply. It can be continued after any outcome: an interrupted reply contains
    /// [`super::INTERRUPTED`], and a call without a result has an error as its answer.
    pub fn conversation(&self) -> &[Message] {
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
            Phase::Ready
            | Phase::Asked { .. }
            | Phase::Streaming
            | Phase::Closing { .. }
            | Phase::Finished => None,
        }
    }

    fn advance_time(&mut self, at_ms: u64) {
        self.at_ms = self.at_ms.max(at_ms);
    }

    fn begin_turn(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> ChatRequest {
        let exit_tools_only = self.config.final_turn && self.budget.left() == 0;
        self.turn += 1;
        tools.digest().clone_into(&mut self.turn_tools);
        self.turn_text_start = self.text.len();
        self.hold_back = HoldBack::new(match self.config.fallback {
            // Without tools, text about calls is only text.
            Fallback::Auto | Fallback::On if tools.is_empty() => None,
            Fallback::Auto => Some(Forms { unmarked: false }),
            Fallback::On => Some(Forms { unmarked: true }),
            Fallback::Off => None,
        });
        self.lines = LineDetector::new(&self.config.repetition);
        self.events.push(Event::TurnStarted {
            turn: self.turn,
            tools: self.turn_tools.clone(),
            budget_left: self.budget.left(),
        });
        let context = BiosContext {
            part: BiosPart::Whole,
            worker: &self.config.worker,
            local_time: &self.start.local_time,
            zone: &self.start.zone,
            budget_left: self.budget.left(),
            budget_unit: self.budget.unit(),
            call_convention: self.config.fallback == Fallback::On,
            tools,
            exit_tools_only,
        };
        ChatRequest {
            model: self.config.model.clone(),
            messages: messages_to_send(
                &self.config,
                self.start.options.system_prompt.as_deref(),
                &self.conversation,
                bios,
                context,
            ),
            tools: tools.definitions(|tool| !exit_tools_only || tool.kind == ToolKind::Exit),
            params: self.config.params.clone(),
        }
    }

    fn emit_text(&mut self, text: String) {
        if self.hold_back.take_quoted() > 0 {
            self.events.push(Event::Warning {
                message: String::from(
                    "a call written as text was ignored because it quotes an earlier message",
                ),
            });
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            self.text_chars += text.chars().count();
            self.events.push(Event::Text { text });
        }
    }

    fn finish_failed(&mut self, failure: Failure) {
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

    /// Ends the request; nothing else does. Emits the text that is held back first.
    fn finish(&mut self, state: FinalState, finish_reason: FinishReason, failure: Option<Failure>) {
        if self.outcome.is_some() {
            return;
        }
        let rest = self.hold_back.release(|_| false);
        self.emit_text(rest);
        let (fail_reason, kind, detail) = match failure {
            Some(Failure { reason, kind, detail }) => (Some(reason), not_empty(kind), not_empty(detail)),
            None => (None, None, None),
        };
        let outcome = Outcome {
            state,
            finish_reason,
            fail_reason,
            kind,
            detail,
            text: self.text.clone(),
            signals: self.signals.clone(),
            usage: self.usage,
            tool_iterations: self.tool_iterations,
            reasoning: not_empty(self.reasoning.clone()),
            raw_text: (self.raw_text != self.text).then(|| self.raw_text.clone()),
        };
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            // Some calls were executed: the model must see which.
            Phase::Calling(batch) => self.append_batch(batch),
            Phase::Ready
            | Phase::Asked { .. }
            | Phase::Streaming
            | Phase::Closing { .. }
            | Phase::Finished => {
                let mut content = self.text.get(self.turn_text_start..).unwrap_or_default().trim().to_owned();
                if !content.is_empty() {
                    if state != FinalState::Completed {
                        content.push_str("\n\n");
                        content.push_str(INTERRUPTED);
                    }
                    self.conversation.push(Message::Assistant { content, tool_calls: Vec::new() });
                }
            }
        }
        self.events.push(Event::Finished(outcome.clone()));
        self.outcome = Some(outcome);
    }
}

fn not_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
