//! One request as a state machine.
//!
//! [`Run::next_step`] says what the driver must do and says it again until the answer comes; the `on_` functions
//! take what happened. Source: the tool loop's rules, numbered in `judge_reply` as they apply.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bios::{BiosContext, BiosPart, BiosProvider};
use super::budget::Budget;
use super::config::{Fallback, OnError, RunConfig, RunStart};
use super::conversation::{Answered, append_answered, messages_to_send};
use super::emission::{Checked, Partition, TextJudge, check, partition};
use super::event::{EVENT_VERSION, Event};
use super::hold_back::{Directive, Fault, HoldBack};
use super::ids::IdMaker;
use super::outcome::{FailReason, Failure, FinalState, FinishReason, Outcome, kind};
use super::repetition::{LineDetector, Loop};
use super::signal::Signal;
use crate::chat::fallback::Forms;
use crate::chat::{
    ChatEvent, ChatRequest, Message, MessageToolCall, RawArguments, Reply, ReplyStatus, ServerError,
    ServerErrorKind, Usage,
};
use crate::schema::{ToolKind, ToolSet};
use crate::tool::{ToolCall, ToolError, ToolErrorKind};

/// What the driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this and give the reply's events to [`Run::on_event`].
    Stream(ChatRequest),
    /// Run this call and give its result to [`Run::on_tool_result`].
    CallTool {
        /// The call.
        call: ToolCall,
        /// The tool's own time limit, if it has one.
        timeout: Option<Duration>,
    },
    /// Nothing: the reply is still coming.
    Wait,
    /// Nothing any more; see [`Run::outcome`].
    Finished,
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
    /// What others said in the conversation; made when it is needed.
    #[serde(skip)]
    said: Option<Vec<String>>,
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

/// The normal calls of one reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Batch {
    calls: Vec<BatchCall>,
    /// The call that is being answered.
    current: usize,
    /// When it began.
    since_ms: u64,
    /// How many calls the budget pays for.
    affordable: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BatchCall {
    id: String,
    name: String,
    task: Task,
    /// The answer as JSON text.
    answer: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Task {
    /// Run the tool.
    Run { arguments: serde_json::Map<String, Value>, timeout: Option<Duration> },
    /// Tell the model what is wrong with its arguments.
    Report { arguments: Value, detail: String },
}

impl Run {
    /// A request that was just submitted.
    pub fn new(config: RunConfig, mut start: RunStart) -> Self {
        let conversation = std::mem::take(&mut start.conversation);
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
            said: None,
            config,
            start,
            conversation,
        }
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
            Phase::Calling(batch) => match batch.calls.get(batch.current) {
                Some(BatchCall { id, name, task: Task::Run { arguments, timeout }, answer: _ }) => {
                    Step::CallTool {
                        call: ToolCall { id: id.clone(), name: name.clone(), arguments: arguments.clone() },
                        timeout: *timeout,
                    }
                }
                Some(BatchCall { task: Task::Report { .. }, .. }) | None => Step::Wait,
            },
            Phase::Finished => Step::Finished,
        }
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

    /// Takes the result of the call that [`Step::CallTool`] named; any other is ignored.
    pub fn on_tool_result(&mut self, call_id: &str, result: Result<Value, ToolError>, at_ms: u64) {
        let Phase::Calling(batch) = &self.phase else { return };
        if batch.calls.get(batch.current).is_none_or(|call| call.id != call_id) {
            return;
        }
        self.see(at_ms);
        match result {
            Err(error) if self.config.on_tool_error == OnError::Fail => {
                let detail = failure_detail(self.running_tool().unwrap_or_default(), &error);
                let failure = Failure::new(FailReason::ToolExecutionError, error.kind.as_str(), detail);
                self.tell_answer(&Err(error));
                self.finish_failed(failure);
            }
            answer => {
                self.answer_call(answer);
                self.begin_call();
            }
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

    /// The conversation without our system messages; after the end it lacks the last reply's text.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// The current turn, 1 for the first, and the digest of the tool set that it was sent with.
    pub fn turn(&self) -> (u32, &str) {
        (self.turn, &self.turn_tools)
    }

    /// The tool whose call is being answered.
    pub fn running_tool(&self) -> Option<&str> {
        match &self.phase {
            Phase::Calling(batch) => batch.calls.get(batch.current).map(|call| call.name.as_str()),
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
            Fallback::Auto => Some(Forms { unmarked: false }),
            Fallback::On => Some(Forms { unmarked: true }),
            Fallback::Off => None,
        });
        self.lines = LineDetector::new(&self.config.repetition);
        self.said = None;
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
            messages: messages_to_send(&self.config, &self.conversation, bios, context),
            tools: tools.definitions(|tool| !exit_tools_only || tool.kind == ToolKind::Exit),
            params: self.config.params.clone(),
        }
    }

    fn take_text(&mut self, text: &str, tools: &ToolSet) {
        // What follows a loop is left out, so that the outcome does not depend on how the text was cut.
        let looped = self.lines.push(text);
        let text = looped.as_ref().and_then(|(end, _)| text.get(..*end)).unwrap_or(text);
        self.raw_text.push_str(text);
        let mut judge = TextJudge { tools, conversation: &self.conversation, said: &mut self.said };
        let shown = self.hold_back.push(text, &mut judge);
        self.show(shown);
        if let Some((_, found)) = looped {
            self.finish_failed(loop_failure(found));
        }
    }

    /// Decides over a whole reply. The numbers are those of the tool loop's rules.
    fn judge_reply(&mut self, reply: &Reply, tools: &ToolSet) {
        self.count_tokens(reply.usage);
        let status = self.read_failed_generation(reply, tools);
        if self.outcome.is_some() {
            return;
        }
        let Partition { exit, normal, unknown } = partition(&reply.calls, tools);
        let mut judge = TextJudge { tools, conversation: &self.conversation, said: &mut self.said };
        let shown = self.hold_back.finish(&mut judge);
        self.show(shown);

        // 1. Signals, before anything can fail. Text is read for calls only where there is no structured one (3).
        for call in exit {
            self.signal(&call.name, &call.arguments);
        }
        let written = if normal.is_empty() && unknown.is_empty() { self.written_calls() } else { Vec::new() };
        let is_exit = |name: &str| tools.get(name).is_some_and(|tool| tool.kind == ToolKind::Exit);
        for (name, arguments) in written.iter().filter(|(name, _)| is_exit(name)) {
            self.signal(name, arguments);
        }
        let reads_text = !written.is_empty();
        let only_exit =
            |directive: &Directive| reads_text && directive.calls.iter().all(|call| is_exit(&call.name));

        // 2.–5. What can fail.
        let calls: Vec<(Option<&str>, &str, &RawArguments)> = if reads_text {
            written
                .iter()
                .filter(|(name, _)| !is_exit(name))
                .map(|(name, arguments)| (None, name.as_str(), arguments))
                .collect()
        } else {
            normal.iter().map(|call| (call.id.as_deref(), call.name.as_str(), &call.arguments)).collect()
        };
        let failure = status_failure(&status)
            .or_else(|| self.lines.finish().map(loop_failure))
            .or_else(|| {
                let names: Vec<String> = unknown.iter().map(|call| format!("`{}`", call.name)).collect();
                let detail = format!("the model called an unknown tool: {}", names.join(", "));
                (!names.is_empty())
                    .then(|| Failure::new(FailReason::ToolParseError, kind::UNKNOWN_TOOL, detail))
            })
            .or_else(|| if normal.is_empty() { self.hold_back.fault().map(fault_failure) } else { None })
            .or_else(|| (!calls.is_empty() && self.budget.affords(calls.len()) == 0).then(budget_failure));
        if let Some(failure) = failure {
            let rest = self.hold_back.release(only_exit);
            self.show(rest);
            self.finish_failed(failure);
            return;
        }
        let checked: Vec<Checked> =
            calls.iter().map(|(_, name, arguments)| check(name, arguments, tools)).collect();
        if let Some(failure) = self.invalid_failure(&checked) {
            let rest = self.hold_back.release(only_exit);
            self.show(rest);
            self.finish_failed(failure);
            return;
        }

        let rest = self.hold_back.release(|_| reads_text);
        self.show(rest);
        if calls.is_empty() {
            // 9.
            self.finish(FinalState::Completed, finish_reason(reply.finish_reason.as_deref()), None);
            return;
        }
        let calls = calls.into_iter().map(|(id, name, _)| (id, name)).zip(checked).collect();
        self.begin_batch(calls);
    }

    /// A call that the server itself could not parse is text, and may be a call written as text. Gives the status
    /// that holds afterwards.
    fn read_failed_generation(&mut self, reply: &Reply, tools: &ToolSet) -> ReplyStatus {
        let ReplyStatus::ServerError { error: ServerError { failed_generation: Some(text), .. } } =
            &reply.status
        else {
            return reply.status.clone();
        };
        self.take_text(text, tools);
        if self.outcome.is_none() {
            let mut judge = TextJudge { tools, conversation: &self.conversation, said: &mut self.said };
            let shown = self.hold_back.finish(&mut judge);
            self.show(shown);
            if self.hold_back.calls().next().is_some() {
                return ReplyStatus::Complete;
            }
        }
        reply.status.clone()
    }

    fn written_calls(&self) -> Vec<(String, RawArguments)> {
        self.hold_back.calls().map(|call| (call.name.clone(), call.arguments.clone())).collect()
    }

    fn invalid_failure(&self, checked: &[Checked]) -> Option<Failure> {
        if self.config.on_invalid_arguments == OnError::Report {
            return None;
        }
        let details: Vec<&str> = checked
            .iter()
            .filter_map(|call| match call {
                Checked::Valid { .. } => None,
                Checked::Invalid { arguments: _, detail } => Some(detail.as_str()),
            })
            .collect();
        (!details.is_empty())
            .then(|| Failure::new(FailReason::ToolParseError, kind::INVALID_ARGUMENTS, details.join("\n")))
    }

    fn begin_batch(&mut self, calls: Vec<((Option<&str>, &str), Checked)>) {
        let affordable = self.budget.affords(calls.len());
        let mut batch = Batch { calls: Vec::new(), current: 0, since_ms: self.at_ms, affordable };
        for ((server_id, name), checked) in calls {
            let id = self.ids.admit(server_id);
            let (task, arguments) = match checked {
                Checked::Valid { arguments, timeout } => {
                    let told = Value::Object(arguments.clone());
                    (Task::Run { arguments, timeout }, told)
                }
                Checked::Invalid { arguments, detail } => {
                    (Task::Report { arguments: arguments.clone(), detail }, arguments)
                }
            };
            self.events.push(Event::ToolCall { id: id.clone(), name: name.to_owned(), arguments });
            batch.calls.push(BatchCall { id, name: name.to_owned(), task, answer: None });
        }
        self.phase = Phase::Calling(batch);
        self.begin_call();
    }

    /// Begins the next call that a tool must answer, or ends the batch. Calls that were reported are answered on
    /// the way.
    fn begin_call(&mut self) {
        loop {
            let Phase::Calling(batch) = &mut self.phase else { return };
            let Some(call) = batch.calls.get(batch.current) else {
                self.end_batch();
                return;
            };
            if batch.current >= batch.affordable {
                self.finish_failed(budget_failure());
                return;
            }
            batch.since_ms = self.at_ms;
            match &call.task {
                Task::Run { .. } => {
                    let started = Event::ToolStarted { id: call.id.clone(), name: call.name.clone() };
                    self.events.push(started);
                    return;
                }
                Task::Report { arguments: _, detail } => {
                    let error = ToolError::new(ToolErrorKind::InvalidArguments, detail.clone());
                    self.answer_call(Err(error));
                }
            }
        }
    }

    /// Answers the current call.
    fn answer_call(&mut self, result: Result<Value, ToolError>) {
        self.tell_answer(&result);
        let Phase::Calling(batch) = &mut self.phase else { return };
        if let Some(call) = batch.calls.get_mut(batch.current) {
            call.answer = Some(match result {
                Ok(value) => value.to_string(),
                Err(error) => json!({"error": error_for_model(&error)}).to_string(),
            });
        }
        batch.current += 1;
        if self.budget.pay_call() {
            self.tell_budget();
        }
    }

    fn tell_answer(&mut self, result: &Result<Value, ToolError>) {
        let Phase::Calling(batch) = &self.phase else { return };
        let Some(call) = batch.calls.get(batch.current) else { return };
        let (value, error) = match result {
            Ok(value) => (Some(value.clone()), None),
            Err(error) => (None, Some(json!(error))),
        };
        self.events.push(Event::ToolFinished {
            id: call.id.clone(),
            name: call.name.clone(),
            ok: error.is_none(),
            result: value,
            error,
            elapsed_ms: self.at_ms - batch.since_ms,
        });
    }

    /// 7. and 8.: the history grows by calls and results, the budget shrinks, the next turn is due.
    fn end_batch(&mut self) {
        let Phase::Calling(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        let answered = batch.calls.into_iter().map(|BatchCall { id, name, task, answer }| {
            let arguments = match task {
                Task::Run { arguments, .. } => Value::Object(arguments),
                Task::Report { arguments: arguments @ Value::Object(_), .. } => arguments,
                // Arguments that are not an object make some servers refuse the conversation for ever.
                Task::Report { .. } => json!({}),
            };
            Answered {
                call: MessageToolCall::new(id, name, arguments.to_string()),
                content: answer.unwrap_or_default(),
            }
        });
        append_answered(
            &mut self.conversation,
            self.text.get(self.turn_text_start..).unwrap_or_default(),
            answered.collect(),
            self.config.parallel_tool_calls_supported,
        );
        self.tool_iterations += 1;
        if self.budget.pay_iteration() {
            self.tell_budget();
        }
    }

    fn tell_budget(&mut self) {
        self.events.push(Event::Budget { left: self.budget.left(), unit: self.budget.unit() });
    }

    fn signal(&mut self, name: &str, arguments: &RawArguments) {
        let signal = Signal::new(name, arguments, self.at_ms);
        self.signals.push(signal.clone());
        self.events.push(Event::Signal(signal));
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

    fn count_tokens(&mut self, usage: Option<Usage>) {
        if let Some(Usage { prompt_tokens, completion_tokens }) = usage {
            let sum = self.usage.get_or_insert_default();
            sum.prompt_tokens = sum.prompt_tokens.saturating_add(prompt_tokens);
            sum.completion_tokens = sum.completion_tokens.saturating_add(completion_tokens);
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
        self.phase = Phase::Finished;
        self.events.push(Event::Finished(outcome.clone()));
        self.outcome = Some(outcome);
    }
}

/// How a reply that is not whole fails its request.
fn status_failure(status: &ReplyStatus) -> Option<Failure> {
    let (reason, kind, detail) = match status {
        ReplyStatus::Complete => return None,
        ReplyStatus::CallTruncated => (
            FailReason::ToolParseError,
            kind::CALL_TRUNCATED,
            String::from("the reply ended inside the arguments of a tool call"),
        ),
        ReplyStatus::ServerError { error } => {
            let kind = match error.kind {
                ServerErrorKind::ContextOverflow => kind::CONTEXT_OVERFLOW,
                ServerErrorKind::Unavailable | ServerErrorKind::Unauthorized | ServerErrorKind::Http => {
                    kind::HTTP_ERROR
                }
                ServerErrorKind::Server => kind::SERVER_ERROR,
            };
            let code = error.code.map(|code| format!("{code}: ")).unwrap_or_default();
            (FailReason::UnknownError, kind, format!("{code}{}", error.message))
        }
        ReplyStatus::Incomplete => (
            FailReason::UnknownError,
            kind::STREAM_INCOMPLETE,
            String::from("the stream ended before the server said that the reply was over"),
        ),
        ReplyStatus::Empty => (
            FailReason::UnknownError,
            kind::EMPTY_STREAM,
            String::from("the server answered 200 with an empty stream"),
        ),
    };
    Some(Failure::new(reason, kind, detail))
}

fn fault_failure(fault: &Fault) -> Failure {
    match fault {
        Fault::Broken(why) => Failure::new(FailReason::ToolParseError, kind::MALFORMED_CALL, why),
        Fault::Unknown(why) => Failure::new(FailReason::ToolParseError, kind::UNKNOWN_TOOL, why),
    }
}

fn budget_failure() -> Failure {
    Failure::new(FailReason::ToolExecutionError, kind::BUDGET_EXHAUSTED, "tool budget exhausted")
}

fn loop_failure(found: Loop) -> Failure {
    let Loop { lines, chars, occurrences } = found;
    let what = if lines == 1 { String::from("a line") } else { format!("a cycle of {lines} lines") };
    Failure::new(
        FailReason::RepeatedLineLoop,
        "",
        format!("{what} of {chars} characters came {occurrences} times in a row"),
    )
}

fn failure_detail(tool: &str, error: &ToolError) -> String {
    let path = error.path.as_deref().unwrap_or_default();
    let details = error.details.as_deref().map(|details| format!("\n{details}")).unwrap_or_default();
    format!("{tool}{path}: {}{details}", error.message)
}

/// The error as the model gets it: without what is meant for a person.
fn error_for_model(error: &ToolError) -> Value {
    let ToolError { kind, message, path, details: _ } = error;
    match path {
        Some(path) => json!({"kind": kind, "message": message, "path": path}),
        None => json!({"kind": kind, "message": message}),
    }
}

fn finish_reason(server: Option<&str>) -> FinishReason {
    match server {
        Some("length" | "max_tokens") => FinishReason::MaxTokens,
        Some(_) | None => FinishReason::Stop,
    }
}

fn not_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
