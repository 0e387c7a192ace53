//! One request as a state machine.
//!
//! [`Run::next_step`] says what the driver must do and says it again until the answer comes; the `on_` functions
//! take what happened. Source: the tool loop's rules, numbered in `reply` as they apply.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bios::{BiosContext, BiosPart, BiosProvider};
use super::budget::Budget;
use super::config::{RequestOptions, RunConfig, RunStart};
use super::conversation::messages_to_send;
use super::event::{EVENT_VERSION, Event};
use super::hold_back::HoldBack;
use super::ids::IdMaker;
use super::outcome::{FailReason, Failure, FinalState, FinishReason, Outcome, kind};
use super::repetition::LineDetector;
use super::said::Said;
use super::signal::Signal;
use super::valid::{INTERRUPTED, valid_conversation};
use crate::chat::fallback::Forms;
use crate::chat::{ChatEvent, ChatRequest, Message, Usage};
use crate::schema::{ToolKind, ToolSet};
use crate::spec::Fallback;
use crate::tool::ToolCall;

mod calls;
mod reply;

use calls::Batch;

/// What the driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this and give the reply's events to [`Run::on_event`].
    Stream(ChatRequest),
    /// Run these calls, those that are not running yet, and give each result to [`Run::on_tool_result`]. Calls that
    /// are not listed any more are given up.
    AnswerCalls(Vec<PendingCall>),
    /// Nothing: the reply is still coming.
    Wait,
    /// Nothing any more; see [`Run::outcome`].
    Finished,
}

/// A call that is to be answered now.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// The tool's own time limit, if it has one.
    pub timeout: Option<Duration>,
    /// Whether a person must be asked first; the answer goes to [`Run::on_approval`].
    pub needs_approval: bool,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// A reply is awaited.
    Running,
    /// A tool is running.
    ToolRunning,
    /// Over: the model answered.
    Completed,
    /// Over: it failed.
    Failed,
    /// Over: it was canceled.
    Canceled,
}

/// What can be told of a request at any time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestStatus {
    /// Where it stands.
    pub state: RequestState,
    /// Length of the text that was shown, in characters.
    pub text_chars: usize,
    /// When something last happened, in milliseconds since submit.
    pub last_progress_ms: u64,
    /// Units of the tool budget left.
    pub budget_left: u32,
    /// Replies whose normal calls were all answered.
    pub tool_iterations: u32,
    /// The tool that is running.
    pub running_tool: Option<String>,
    /// Tokens so far, if the server told them.
    pub usage: Option<Usage>,
}

/// One request: every decision and no IO.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    config: RunConfig,
    start: RunStart,
    /// Without the system messages of ours; every call in it is answered.
    conversation: Vec<Message>,
    phase: Phase,
    turn: u32,
    /// Digest of the tool set that the current turn was sent with.
    turn_tools: String,
    /// Where the current turn's text begins.
    turn_text_start: usize,
    budget: Budget,
    tool_iterations: u32,
    ids: IdMaker,
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
    /// What others said in the conversation, as far as it was read; a restored run reads it again.
    #[serde(skip)]
    said: Said,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Phase {
    /// A turn is to be sent.
    Ready,
    /// It was handed out and nothing of its reply has come.
    Asked { request: ChatRequest },
    /// Its reply is coming.
    Streaming,
    /// The calls of its reply are being answered.
    Calling(Batch),
    /// Over.
    Finished,
}

impl Run {
    /// A request that was just submitted.
    pub fn new(mut config: RunConfig, mut start: RunStart) -> Self {
        let conversation = valid_conversation(std::mem::take(&mut start.conversation));
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
            ids: IdMaker::new(start.id_seed, &conversation),
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

    /// Whether [`Run::next_step`] will begin a turn, which takes the newest tools.
    pub fn begins_turn(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// What the driver must do now. Asked again before anything happened, it says the same; `tools` and `bios`
    /// only matter when a turn begins, which is then pinned to that tool set.
    pub fn next_step(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> Step {
        if let Phase::Ready = self.phase {
            let request = self.begin_turn(tools, bios);
            self.phase = Phase::Asked { request };
        }
        match &self.phase {
            Phase::Asked { request } => Step::Stream(request.clone()),
            Phase::Ready | Phase::Streaming => Step::Wait,
            Phase::Calling(batch) => Step::AnswerCalls(batch.pending()),
            Phase::Finished => Step::Finished,
        }
    }

    /// The ids of the calls that are to be answered now, as in [`Step::AnswerCalls`], and whether a person must be asked
    /// first.
    pub fn open_calls(&self) -> impl Iterator<Item = (&str, bool)> {
        self.batch().into_iter().flat_map(Batch::open)
    }

    /// One of the calls that are to be answered now.
    pub fn pending_call(&self, call_id: &str) -> Option<PendingCall> {
        self.batch()?.pending_of(call_id)
    }

    /// Takes an event of the reply. `tools` is the set that the turn was sent with.
    pub fn on_event(&mut self, event: ChatEvent, tools: &ToolSet, at_ms: u64) {
        match self.phase {
            Phase::Asked { .. } => self.phase = Phase::Streaming,
            Phase::Streaming => {}
            Phase::Ready | Phase::Calling(_) | Phase::Finished => return,
        }
        self.see(at_ms);
        if tools.digest() != self.turn_tools {
            self.finish_failed(Failure::new(
                FailReason::UnknownError,
                kind::TOOL_SET_CHANGED,
                "the reply was given with another tool set than its request was sent with",
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
            ChatEvent::Ended { reply } => self.judge_reply(&reply, tools),
        }
    }

    /// The submitter gives up.
    pub fn cancel(&mut self, at_ms: u64) {
        self.fail(Failure::new(FailReason::Canceled, "", ""), at_ms);
    }

    /// Something outside this machine ends the request.
    pub fn fail(&mut self, failure: Failure, at_ms: u64) {
        if self.outcome.is_none() {
            self.see(at_ms);
            self.finish_failed(failure);
        }
    }

    /// The events since this was last asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What can be told of it now.
    pub fn status(&self) -> RequestStatus {
        let state = match (&self.outcome, &self.phase) {
            (Some(outcome), _) => match outcome.state {
                FinalState::Completed => RequestState::Completed,
                FinalState::Failed => RequestState::Failed,
                FinalState::Canceled => RequestState::Canceled,
            },
            (None, Phase::Calling(_)) => RequestState::ToolRunning,
            (None, Phase::Ready | Phase::Asked { .. } | Phase::Streaming | Phase::Finished) => {
                RequestState::Running
            }
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

    /// What it has of its own.
    pub fn options(&self) -> &RequestOptions {
        &self.start.options
    }

    /// The job's name, or empty.
    pub fn job_name(&self) -> &str {
        &self.start.job_name
    }

    /// What it was configured with.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The text that was shown so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signals so far.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The conversation without system messages of ours: what was submitted, every call that is answered, and once the
    /// request is over what else there is of it. It can be continued whatever the end was: words that were broken off say so
    /// ([`super::INTERRUPTED`]), and a call that has no result is answered with that.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// The current turn, 1 for the first, and the digest of the tool set that it was sent with.
    pub fn turn(&self) -> (u32, &str) {
        (self.turn, &self.turn_tools)
    }

    /// The tool whose call is being answered; of several the first.
    pub fn running_tool(&self) -> Option<&str> {
        self.batch()?.tool()
    }

    fn batch(&self) -> Option<&Batch> {
        match &self.phase {
            Phase::Calling(batch) => Some(batch),
            Phase::Ready | Phase::Asked { .. } | Phase::Streaming | Phase::Finished => None,
        }
    }

    fn see(&mut self, at_ms: u64) {
        self.at_ms = self.at_ms.max(at_ms);
    }

    fn begin_turn(&mut self, tools: &ToolSet, bios: &dyn BiosProvider) -> ChatRequest {
        let exit_tools_only = self.config.final_turn && self.budget.left() == 0;
        self.turn += 1;
        tools.digest().clone_into(&mut self.turn_tools);
        self.turn_text_start = self.text.len();
        self.hold_back = HoldBack::new(match self.config.fallback {
            // Without a tool there is nothing to call, and a text about calls is only that.
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

    fn show(&mut self, text: String) {
        if self.hold_back.take_quoted() > 0 {
            self.events.push(Event::Warning {
                message: String::from("a call written as text was not made: it stands in an earlier message"),
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

    /// The only way to the end. What still waits is shown first.
    fn finish(&mut self, state: FinalState, finish_reason: FinishReason, failure: Option<Failure>) {
        if self.outcome.is_some() {
            return;
        }
        let rest = self.hold_back.release(|_| false);
        self.show(rest);
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
            // Some of its calls were made: the model has to know which.
            Phase::Calling(batch) => self.append_batch(batch),
            Phase::Ready | Phase::Asked { .. } | Phase::Streaming | Phase::Finished => {
                let mut words = self.text.get(self.turn_text_start..).unwrap_or_default().trim().to_owned();
                if !words.is_empty() {
                    if state != FinalState::Completed {
                        words.push_str("\n\n");
                        words.push_str(INTERRUPTED);
                    }
                    self.conversation.push(Message::Assistant { content: words, tool_calls: Vec::new() });
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
