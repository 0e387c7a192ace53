//! The driver of these tests. It plays scripted replies and tool results, and checks the invariants after every step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{
    Approval, BiosV1, Event, FailReason, Failure, JournalEntry, Outcome, PendingCall, RestoredRun,
    Resumption, Run, RunConfig, RunStart, Step,
};
use deftool_chat::{ChatEvent, ChatRequest, Message, RawArguments, RawCall, Reply, ReplyStatus};
use deftool_lang::schema::{Confirmation, ToolEntry, ToolKind, ToolSet};
use deftool_lang::spec::Effect;
use deftool_lang::tool::ToolError;
use serde_json::{Map, Value, json};

pub(super) fn definition(name: &str, parameters: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": name, "parameters": parameters}})
}

pub(super) fn tools() -> ToolSet {
    let weather = json!({
        "type": "object",
        "properties": {"location": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["location"],
        "additionalProperties": false
    });
    let open = json!({"type": "object"});
    let entry = |kind, name: &str, parameters: &Value| {
        Arc::new(ToolEntry::new(kind, definition(name, parameters), None).unwrap())
    };
    let mut ask = ToolEntry::new(ToolKind::Normal, definition("ask", &open), None).unwrap();
    ask.confirm = Confirmation::Always;
    let limit = Some(Duration::from_secs(5));
    let mut get_weather =
        ToolEntry::new(ToolKind::Normal, definition("get_weather", &weather), limit).unwrap();
    get_weather.effect = Effect::Pure;
    get_weather.max_result = Some(1_000);
    ToolSet::new([
        Arc::new(ask),
        Arc::new(get_weather),
        entry(ToolKind::Normal, "look", &open),
        entry(ToolKind::Exit, "finish", &open),
    ])
}

pub(super) fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/fallback/{name}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A scripted reply.
#[derive(Debug, Clone)]
pub(super) struct ScriptedReply {
    pub(super) text: Vec<String>,
    pub(super) reasoning: String,
    pub(super) reply: Reply,
}

pub(super) fn reply_with(text: &str) -> ScriptedReply {
    ScriptedReply {
        text: vec![text.to_owned()],
        reasoning: String::new(),
        reply: Reply {
            status: ReplyStatus::Complete,
            calls: Vec::new(),
            lost_frames: 0,
            finish_reason: Some(String::from("stop")),
            finish_detail: None,
            usage: None,
            model: None,
            opaque: Box::default(),
        },
    }
}

impl ScriptedReply {
    pub(super) fn call(mut self, name: &str, arguments: Value) -> Self {
        let value = arguments.try_into().unwrap();
        let index = self.reply.calls.len();
        self.reply.calls.push(RawCall {
            index,
            id: Some(format!("call_{index}")),
            name: name.to_owned(),
            arguments: RawArguments::Object { value },
            written: None,
            opaque: Map::new(),
            repairs: Vec::new(),
        });
        self
    }

    pub(super) fn malformed(self, name: &str, text: &str) -> Self {
        self.malformed_as(name, text, false)
    }

    /// A call whose arguments are cut off at the end of the reply.
    pub(super) fn truncated(self, name: &str, text: &str) -> Self {
        self.malformed_as(name, text, true)
    }

    fn malformed_as(mut self, name: &str, text: &str, truncated: bool) -> Self {
        let error = String::from("EOF");
        let arguments = RawArguments::Malformed { text: text.to_owned(), error, truncated };
        let index = self.reply.calls.len();
        self.reply.calls.push(RawCall {
            index,
            id: None,
            name: name.to_owned(),
            arguments,
            written: None,
            opaque: Map::new(),
            repairs: Vec::new(),
        });
        self
    }

    pub(super) fn status(mut self, status: ReplyStatus) -> Self {
        self.reply.status = status;
        self
    }

    pub(super) fn cut(mut self, size: usize) -> Self {
        let whole: Vec<char> = self.text.concat().chars().collect();
        self.text = whole.chunks(size.max(1)).map(|chunk| chunk.iter().collect()).collect();
        self
    }
}

pub(super) fn weather() -> Value {
    json!({"location": "Paris"})
}

/// The result of a played request.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) outcome: Outcome,
    pub(super) events: Vec<Event>,
    pub(super) requests: Vec<Arc<ChatRequest>>,
    /// The messages of the last request, without the variable BIOS lines.
    pub(super) last_messages: Vec<Message>,
    /// Names and ids of the executed calls.
    pub(super) executed: Vec<(String, String)>,
    /// The conversation at the end.
    pub(super) conversation: Vec<Message>,
}

impl Played {
    pub(super) fn executed(&self) -> Vec<&str> {
        self.executed.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn failure(&self) -> (FailReason, &str, &str) {
        let Outcome { fail_reason, kind, detail, .. } = &self.outcome;
        (fail_reason.unwrap(), kind.as_deref().unwrap_or_default(), detail.as_deref().unwrap_or_default())
    }

    pub(super) fn signals(&self) -> Vec<(&str, &Value)> {
        self.outcome.signals.iter().map(|signal| (signal.tool_name.as_str(), &signal.arguments)).collect()
    }

    /// Returns the messages of the last request, without the variable BIOS lines.
    pub(super) fn history(&self) -> &[Message] {
        &self.last_messages
    }

    /// Returns the messages of a request.
    pub(super) fn messages(&self, request: usize) -> Vec<Message> {
        owned(&self.requests[request].messages)
    }
}

pub(super) type ToolAnswer = Box<dyn FnMut(usize, &str) -> Result<Value, ToolError>>;

/// Plays a request to its end.
pub(super) struct Play {
    pub(super) config: RunConfig,
    pub(super) conversation: Vec<Message>,
    pub(super) local_time: &'static str,
    pub(super) answer: ToolAnswer,
    /// Returns the index of the next call to answer, given the number of pending calls.
    pub(super) choose: Box<dyn FnMut(usize) -> usize>,
    /// The answer for calls that need approval: all calls of `ask`.
    pub(super) approval: Approval,
    /// Whether to serialise and deserialise the machine between any two inputs.
    pub(super) restore: bool,
    /// Whether to restore the machine from its journal between any two inputs that do not belong to a reply.
    pub(super) journaled: bool,
    /// The number of inputs and executions after which the process ends. It is then restored from its journal.
    pub(super) crash: Option<usize>,
    /// The entries of the journal, with their times.
    pub(super) journal: Vec<(u64, JournalEntry)>,
}

pub(super) fn play() -> Play {
    Play {
        config: RunConfig { model: String::from("m"), ..RunConfig::default() },
        conversation: vec![user("What is the weather?")],
        local_time: "2023-11-14T23:13:20",
        answer: Box::new(|_, _| Ok(json!({"temperature": 18}))),
        choose: Box::new(|_| 0),
        approval: Approval::Allowed,
        restore: false,
        journaled: false,
        crash: None,
        journal: Vec::new(),
    }
}

pub(super) fn owned(messages: &[Arc<Message>]) -> Vec<Message> {
    messages.iter().map(|message| Message::clone(message)).collect()
}

/// Returns the messages of a request without the variable BIOS lines.
pub(super) fn without_lines(request: &ChatRequest) -> Vec<Message> {
    let mut messages = owned(&request.messages);
    for message in &mut messages {
        if let Message::User { content, .. } | Message::Tool { content, .. } = message {
            let paragraphs = content.split("\n\n").filter(|text| !text.starts_with("Time at submit: "));
            *content = paragraphs.collect::<Vec<_>>().join("\n\n");
        }
    }
    messages
}

/// Returns the texts and calls of a conversation, without what is sent again because of its replies.
pub(super) fn plain(messages: &[Arc<Message>]) -> Vec<Message> {
    let mut messages = owned(messages);
    for message in &mut messages {
        if let Message::Assistant { received, .. } = message {
            *received = None;
        }
    }
    messages
}

pub(super) fn user(text: &str) -> Message {
    Message::user(text)
}

impl Play {
    pub(super) fn with(mut self, change: impl FnOnce(&mut RunConfig)) -> Self {
        change(&mut self.config);
        self
    }

    pub(super) fn prompt(mut self, text: &str) -> Self {
        self.conversation = vec![user(text)];
        self
    }

    pub(super) fn answering(
        mut self,
        answer: impl FnMut(usize, &str) -> Result<Value, ToolError> + 'static,
    ) -> Self {
        self.answer = Box::new(answer);
        self
    }

    pub(super) fn start(&self) -> Run {
        Run::new(self.config.clone(), self.run_start())
    }

    pub(super) fn run_start(&self) -> RunStart {
        RunStart {
            request_id: String::from("r1"),
            job_name: String::from("job"),
            conversation: self.conversation.clone(),
            options: deftool_chat::request::RequestOptions::default(),
            submitted_at_ms: 1_700_000_000_000,
            zone: String::from("Europe/Paris"),
            local_time: self.local_time.to_owned(),
            id_seed: 42,
        }
    }

    /// Moves the new events to `events` and to the journal.
    pub(super) fn publish(&mut self, run: &mut Run, events: &mut Vec<Event>, now: u64) {
        let reply = run.take_reply_state().map(JournalEntry::Reply);
        let new = run.take_events();
        self.journal.extend(reply.into_iter().map(|reply| (now, reply)));
        self.journal.extend(new.iter().cloned().map(|event| (now, JournalEntry::Event(event))));
        if let Some(Event::ToolStarted { id, .. }) = new.last() {
            let (call_id, log) = (id.clone(), String::from("info: started"));
            self.journal.push((now + 1, JournalEntry::Log { call_id, log }));
        }
        events.extend(new);
    }

    /// Returns the machine that the journal contains.
    pub(super) fn replayed_journal(&self) -> RestoredRun {
        let entries = serde_json::to_string(&self.journal).unwrap();
        let entries: Vec<(u64, JournalEntry)> = serde_json::from_str(&entries).unwrap();
        assert_eq!(entries, self.journal);
        Run::restore(self.config.clone(), self.run_start(), entries).unwrap()
    }

    /// Returns what the request continues with: nothing changed.
    pub(super) fn resumption<'t>(&self, tools: &'t ToolSet, asks: bool) -> Resumption<'t> {
        Resumption { config: self.config.clone(), tools, asks }
    }

    /// Ends the process if it is time. Returns whether it did; the machine is then restored from its journal.
    fn crashes(&mut self, run: &mut Run, events: &mut Vec<Event>, now: u64) -> bool {
        let Some(left) = self.crash else { return false };
        self.crash = left.checked_sub(1);
        if left > 0 {
            return false;
        }
        let restored = self.replayed_journal();
        (*run, *events) = restored.resume(self.resumption(&tools(), false), now);
        true
    }

    /// Plays `replies`. The last one is repeated.
    pub(super) fn run(mut self, replies: &[ScriptedReply]) -> Played {
        let tools = tools();
        let mut run = self.start();
        let (mut events, mut requests, mut executed) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = 0;
        let mut turns = 0;
        'steps: for _ in 0..1_200 {
            if self.journaled && !self.journal.is_empty() {
                let restored = self.replayed_journal();
                assert_eq!(restored.events, events);
                run = restored.run;
            }
            let step = run.next_step(&tools, &BiosV1);
            self.store(&mut run);
            assert_eq!(step, run.next_step(&tools, &BiosV1), "the second call must return the same step");
            self.publish(&mut run, &mut events, now);
            now += 10;
            match step {
                Step::Stream(request) => {
                    assert_answered(&without_lines(&request));
                    let script = &replies[turns.min(replies.len() - 1)];
                    requests.push(request);
                    let mut inputs = Vec::new();
                    if !script.reasoning.is_empty() {
                        inputs.push(ChatEvent::Reasoning { text: script.reasoning.clone() });
                    }
                    inputs.extend(script.text.iter().map(|text| ChatEvent::Text { text: text.clone() }));
                    inputs.push(ChatEvent::Ended { reply: script.reply.clone() });
                    for input in inputs {
                        if self.crashes(&mut run, &mut events, now) {
                            continue 'steps;
                        }
                        run.on_event(input, &tools, now);
                        self.store(&mut run);
                        self.publish(&mut run, &mut events, now);
                    }
                    turns += 1;
                }
                Step::AnswerCalls(pending) => {
                    assert!(self.config.parallel || pending.len() == 1, "one at a time: {pending:?}");
                    let which = (self.choose)(pending.len());
                    let PendingCall { call, timeout, needs_approval, effect } = &pending[which];
                    assert_eq!(*effect == Effect::Pure, call.name == "get_weather");
                    if *needs_approval {
                        run.on_tool_result(&call.id, Ok(json!("not asked yet").into()), now);
                        run.on_approval("wrong", Approval::Allowed, now);
                        self.store(&mut run);
                        run.on_approval(&call.id, self.approval.clone(), now);
                        self.store(&mut run);
                        run.on_approval(&call.id, Approval::Allowed, now);
                    } else {
                        let is_repeated = executed.contains(&(call.name.clone(), call.id.clone()));
                        assert!(!is_repeated || *effect == Effect::Pure, "executed twice");
                        assert_eq!(timeout.is_some(), call.name == "get_weather");
                        if !is_repeated {
                            executed.push((call.name.clone(), call.id.clone()));
                        }
                        if self.crashes(&mut run, &mut events, now) {
                            continue;
                        }
                        run.on_tool_result("wrong", Ok(json!("ignored").into()), now);
                        let answer = (self.answer)(executed.len(), &call.name);
                        run.on_approval(&call.id, Approval::Refused { reason: String::from("late") }, now);
                        run.on_tool_result(&call.id, answer.clone().map(Into::into), now);
                        self.store(&mut run);
                        run.on_tool_result(&call.id, answer.map(Into::into), now);
                    }
                    self.publish(&mut run, &mut events, now);
                }
                Step::Wait => panic!("unexpected wait: all inputs were passed"),
                Step::Finished => {
                    let outcome = run.outcome().unwrap().clone();
                    self.store(&mut run);
                    assert_eq!(run.text(), outcome.text);
                    assert_final(&mut run, &tools);
                    assert_events(&events, &outcome);
                    let conversation = owned(run.conversation());
                    assert_answered(&conversation);
                    let last_messages = requests.last().map_or_else(Vec::new, |last| without_lines(last));
                    return Played { outcome, events, requests, last_messages, executed, conversation };
                }
            }
        }
        panic!("no terminal state");
    }

    /// If `restore` is set, continues with a deserialised copy.
    fn store(&self, run: &mut Run) {
        if self.restore {
            *run = restored(run);
        }
    }
}

pub(super) fn restored(run: &Run) -> Run {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

/// Checks that every call in the history is answered directly after it and in order, and that ids are unique.
pub(super) fn assert_answered(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    for message in messages {
        match message {
            Message::Assistant { tool_calls, .. } => {
                assert!(open.is_empty(), "unanswered: {open:?}");
                open = tool_calls.iter().map(|call| call.id.as_str()).collect();
                for call in tool_calls {
                    assert!(seen.insert(&call.id), "duplicate id");
                    assert!(!call.id.trim().is_empty(), "a blank id");
                    assert!(serde_json::from_str::<Value>(&call.function.arguments).unwrap().is_object());
                    assert_ne!(call.function.name, "finish", "exit calls must not be in the history");
                }
            }
            Message::Tool { tool_call_id, content, .. } => {
                assert_eq!(open.remove(0), tool_call_id);
                assert!(!content.is_empty(), "an empty result");
            }
            Message::System { .. } | Message::User { .. } => assert!(open.is_empty(), "unanswered: {open:?}"),
        }
    }
    assert!(open.is_empty(), "unanswered: {open:?}");
}

/// Checks that nothing changes after the end.
pub(super) fn assert_final(run: &mut Run, tools: &ToolSet) {
    let before = run.outcome().cloned();
    run.on_event(ChatEvent::Text { text: String::from("late") }, tools, 99);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, tools, 99);
    run.on_tool_result("x", Ok(json!(1).into()), 99);
    run.cancel(99);
    run.fail(Failure::new(FailReason::ServerDied, "", ""), 99);
    assert_eq!(run.next_step(tools, &BiosV1), Step::Finished);
    assert_eq!(run.outcome().cloned(), before);
    assert!(run.take_events().is_empty());
}

pub(super) fn assert_events(events: &[Event], outcome: &Outcome) {
    assert!(matches!(events.first(), Some(Event::Submitted { .. })));
    assert_eq!(events.last(), Some(&Event::Finished(Arc::new(outcome.clone()))));
    let mut text = String::new();
    let mut signals = Vec::new();
    for event in events {
        match event {
            Event::Text { text: piece } => text.push_str(piece),
            Event::Signal(signal) => signals.push(signal.clone()),
            _ => {}
        }
        let json = serde_json::to_string(event).unwrap();
        assert_eq!(&serde_json::from_str::<Event>(&json).unwrap(), event);
    }
    assert_eq!(text, outcome.text, "the text events differ from the text");
    assert_eq!(signals, outcome.signals);
}
