//! Requests restored from a journal: calls that must not run again, and journals with entries that do not match.
//! `properties` has random requests.

use std::sync::Arc;

use deftool_chat::request::{
    Approval, BiosV1, BudgetUnit, Event, JournalEntry, OnFailure, PendingCall, RestoredRun, Resumption, Run,
    RunConfig, RunStart, Step,
};
use deftool_chat::{ChatEvent, Message};
use deftool_lang::schema::{Confirmation, ToolEntry, ToolKind, ToolSet};
use deftool_lang::spec::Effect;
use serde_json::{Value, json};

use super::play::{Play, definition, play, reply_with, tools};

/// Returns the journal of a request whose call of `look` is running. A second run of `look` can do harm.
fn journal() -> Vec<(u64, JournalEntry)> {
    let tools = tools();
    let mut play = play();
    let mut run = play.start();
    let mut events = Vec::new();
    run.next_step(&tools, &BiosV1);
    play.publish(&mut run, &mut events, 0);
    run.on_event(ChatEvent::Text { text: String::from("Hm. ") }, &tools, 10);
    run.on_event(ChatEvent::Ended { reply: reply_with("").call("look", json!({})).reply }, &tools, 20);
    play.publish(&mut run, &mut events, 20);
    play.journal
}

fn restore(journal: Vec<(u64, JournalEntry)>) -> RestoredRun {
    Play { journal, ..play() }.replayed_journal()
}

fn resume(restored: RestoredRun, asks: bool) -> (Run, Vec<Event>) {
    restored.resume(play().resumption(&tools(), asks), 500)
}

#[test]
fn the_user_decides_about_an_interrupted_call() {
    for (answer, runs) in [(Approval::Allowed, true), (Approval::Refused { reason: String::new() }, false)] {
        let (mut run, events) = resume(restore(journal()), true);
        assert!(matches!(events.last(), Some(Event::ToolStarted { .. })), "{events:?}");
        let new = run.take_events();
        let [Event::Resumed { .. }, Event::Warning { message }, Event::Approval { id, answer: None, .. }] =
            &new[..]
        else {
            panic!("{new:?}")
        };
        assert!(message.contains("`look` may have had an effect"), "{message}");
        let Step::AnswerCalls(calls) = run.next_step(&tools(), &BiosV1) else { panic!() };
        assert!(calls.len() == 1 && calls[0].needs_approval);
        run.on_approval(id, answer, 600);
        match run.next_step(&tools(), &BiosV1) {
            Step::AnswerCalls(calls) => assert!(runs && !calls[0].needs_approval),
            Step::Stream(request) => {
                let messages = serde_json::to_string(&request.messages).unwrap();
                assert!(!runs && messages.contains("the call may have had an effect"), "{messages}");
            }
            step => panic!("{step:?}"),
        }
    }
}

/// The server paused a reply: the next request contains it, also after the process ended before that request.
#[test]
fn a_paused_reply_is_restored() {
    let tools = tools();
    let mut play = play();
    let mut run = play.start();
    let mut events = Vec::new();
    run.next_step(&tools, &BiosV1);
    play.publish(&mut run, &mut events, 0);
    let mut paused = reply_with("").reply;
    paused.finish_reason = Some(String::from("pause_turn"));
    paused.opaque.items = vec![json!({"type": "server_tool_use", "id": "1"})];
    run.on_event(ChatEvent::Text { text: String::from("Hm. ") }, &tools, 10);
    run.on_event(ChatEvent::Ended { reply: paused }, &tools, 20);
    play.publish(&mut run, &mut events, 20);
    let (mut resumed, _) = resume(restore(play.journal), false);
    let [of_run, of_resumed] = [&mut run, &mut resumed].map(|run| {
        let Step::Stream(request) = run.next_step(&tools, &BiosV1) else { panic!() };
        serde_json::to_value(&request.messages).unwrap()
    });
    assert_eq!(of_run, of_resumed);
    let last = of_run.as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["content"]), (&json!("assistant"), &json!("Hm. ")));
    assert_eq!(last["received"]["items"][0]["type"], "server_tool_use");
}

/// The process ended after an empty reply, before it was requested once more.
#[test]
fn an_empty_reply_is_requested_only_once_more_after_a_restart() {
    let tools = tools();
    let mut play = play();
    let mut run = play.start();
    let mut events = Vec::new();
    run.next_step(&tools, &BiosV1);
    play.publish(&mut run, &mut events, 0);
    let mut reply = reply_with("").reply;
    reply.opaque.members.insert(String::from("reasoning_content"), json!("Hm."));
    run.on_event(ChatEvent::Ended { reply: reply.clone() }, &tools, 20);
    play.publish(&mut run, &mut events, 20);
    let (mut resumed, _) = resume(restore(play.journal), false);
    for run in [&mut run, &mut resumed] {
        let Step::Stream(request) = run.next_step(&tools, &BiosV1) else { panic!() };
        assert!(!request.messages.iter().any(|message| matches!(**message, Message::Assistant { .. })));
        assert_eq!(run.turn().0, 2);
        run.on_event(ChatEvent::Ended { reply: reply.clone() }, &tools, 700);
        assert_eq!(run.outcome().unwrap().kind.as_deref(), Some("empty_stream"));
        assert_eq!(run.outcome().unwrap().usage.unwrap().retries, 1);
    }
}

/// The bytes of an image were not stored, or its entry is damaged.
#[test]
fn a_lost_image_is_named() {
    let image = json!({"type": "image/png", "size": 8, "sha256": "00"});
    let message = json!({"role": "user", "content": "What is it?", "attachments": [image]});
    let start =
        RunStart { conversation: vec![serde_json::from_value(message).unwrap()], ..play().run_start() };
    let mut run = Run::new(play().config, start.clone());
    let events = run.take_events();
    let names =
        |event: &Event| matches!(event, Event::Warning { message } if message.contains("[image: image/png"));
    assert!(events.iter().any(names), "{events:?}");
    let entries = events.into_iter().map(|event| (0, JournalEntry::Event(event)));
    let restored = Run::restore(play().config, start, entries).unwrap();
    let (mut run, _) = restored.resume(play().resumption(&tools(), false), 500);
    assert!(run.take_events().iter().any(names));
}

#[test]
fn without_a_user_the_model_receives_an_error() {
    let (mut run, _) = resume(restore(journal()), false);
    let Step::Stream(request) = run.next_step(&tools(), &BiosV1) else { panic!() };
    let messages = serde_json::to_string(&request.messages).unwrap();
    assert!(messages.contains("interrupted") && messages.contains("was not run again"), "{messages}");
}

/// The process ended a second time, after the call got its error.
#[test]
fn an_interrupted_call_is_answered_once() {
    let mut play = Play { journal: journal(), ..play() };
    let (mut run, _) = resume(play.replayed_journal(), false);
    play.publish(&mut run, &mut Vec::new(), 500);
    let (mut run, _) = resume(restore(play.journal), false);
    assert!(matches!(run.next_step(&tools(), &BiosV1), Step::Stream(_)));
}

/// The process ended in the middle of a reply, which is requested again.
#[test]
fn nothing_of_an_incomplete_reply_remains() {
    let tools = tools();
    let mut play = play();
    let mut run = play.start();
    run.next_step(&tools, &BiosV1);
    for at_ms in [10, 12] {
        for event in
            [ChatEvent::Reasoning { text: String::from("a") }, ChatEvent::Text { text: String::from("b") }]
        {
            run.on_event(event, &tools, at_ms);
        }
        play.publish(&mut run, &mut Vec::new(), at_ms);
    }
    let (mut run, _) = resume(restore(play.journal), false);
    run.next_step(&tools, &BiosV1);
    assert_eq!(run.turn().0, 1);
    run.on_event(ChatEvent::Text { text: String::from("c") }, &tools, 600);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, &tools, 600);
    let Some(Event::Finished(outcome)) = run.take_events().pop() else { panic!() };
    assert_eq!((outcome.text.as_str(), outcome.first_token_ms), ("c", Some(10)));
}

#[test]
fn entries_that_do_not_match_are_rejected() {
    let event = |json: serde_json::Value| (0, serde_json::from_value::<JournalEntry>(json).unwrap());
    let turn = json!({"type": "turn_started", "turn": 1, "tools": "", "budget_left": 8});
    let call = json!({"type": "tool_call", "id": "call00000", "name": "look", "arguments": {}});
    let other = json!({
        "type": "submitted", "version": 1, "request_id": "r2", "job_name": "", "worker": "", "model": "",
        "submitted_at_ms": 0,
    });
    for (entries, expected) in [
        (
            vec![other],
            "entry 1 of the journal does not match the entries before it: it belongs to the request r2",
        ),
        (vec![turn.clone(), turn.clone()], "turn 1 begins before the previous one ends"),
        (vec![turn.clone(), call.clone()], "the state of the reply with the call call00000 is missing"),
        (
            vec![turn.clone(), json!({"ids": 0, "affordable": 1, "calls": []}), call],
            "entry 3 of the journal does not match the entries before it: unexpected call call00000",
        ),
        (vec![turn, json!({"type": "tool_started", "id": "x", "name": "look"})], "no call x is open"),
        (
            vec![json!({"type": "turn_started", "turn": 0, "tools": "", "budget_left": 8})],
            "turn 0 follows turn 0",
        ),
        (
            vec![json!({"type": "turn_started", "turn": u32::MAX, "tools": "", "budget_left": 8})],
            "turn 4294967295 follows turn 0",
        ),
    ] {
        let start = play().run_start();
        let restored = Run::restore(play().config, start, entries.into_iter().map(event));
        let error = restored.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A journal whose request was interrupted, and what holds when it continues. The defaults are those of [`stored`].
struct Change {
    journal: Vec<(u64, JournalEntry)>,
    /// The stored configuration.
    stored: RunConfig,
    /// The current configuration.
    current: RunConfig,
    tools: Vec<ToolEntry>,
}

fn tool(name: &str, parameters: &Value) -> ToolEntry {
    ToolEntry::new(ToolKind::Normal, definition(name, parameters), None).unwrap()
}

/// Returns a request whose call of `look` runs and whose call of `send` waits. Nothing has changed.
fn stored() -> Change {
    let open = json!({"type": "object"});
    let (mut look, send) = (tool("look", &open), tool("send", &open));
    look.effect = Effect::Pure;
    let tools = ToolSet::new([Arc::new(look), Arc::new(send)]);
    let mut play = play().with(|config| config.on_invalid_arguments = OnFailure::Report);
    let mut run = play.start();
    run.next_step(&tools, &BiosV1);
    play.publish(&mut run, &mut Vec::new(), 0);
    let reply = reply_with("").call("look", json!({})).call("send", json!({"to": "all"})).reply;
    run.on_event(ChatEvent::Ended { reply }, &tools, 20);
    play.publish(&mut run, &mut Vec::new(), 20);
    let mut look = tool("look", &open);
    look.effect = Effect::Pure;
    let (stored, current) = (play.config.clone(), play.config);
    Change { journal: play.journal, stored, current, tools: vec![look, tool("send", &open)] }
}

impl Change {
    /// Changes the stored plans of the calls, as JSON.
    fn plans(&mut self, change: impl Fn(&mut Value)) {
        for (_, entry) in &mut self.journal {
            let mut json = json!(entry);
            if json.get("affordable").is_some() {
                change(&mut json);
                *entry = serde_json::from_value(json).unwrap();
            }
        }
    }

    fn push(&mut self, event: Value) {
        self.journal.push((30, serde_json::from_value(event).unwrap()));
    }

    /// Continues the request without a user, lets each call return and refuses each approval. Returns what happens.
    fn resume(self) -> String {
        let Self { journal, stored, current, tools } = self;
        let tools = ToolSet::new(tools.into_iter().map(Arc::new));
        let restored = Run::restore(stored, play().run_start(), journal).unwrap();
        let now = Resumption { config: current, tools: &tools, asks: false };
        let mut run = restored.resume(now, 500).0;
        let mut happened = Vec::new();
        loop {
            happened.extend(run.take_events().into_iter().filter_map(|event| match event {
                Event::ToolStarted { name, .. } => Some(format!("runs {name}")),
                Event::Approval { name, answer: None, .. } => Some(format!("asks about {name}")),
                Event::Budget { left, .. } => Some(format!("budget {left}")),
                Event::ToolFinished { name, error: Some(error), .. } => {
                    Some(format!("answers {name} with {}", error["kind"].as_str().unwrap()))
                }
                Event::Finished(outcome) => Some(format!("fails: {}", outcome.kind.clone().unwrap())),
                _ => None,
            }));
            let Step::AnswerCalls(calls) = run.next_step(&tools, &BiosV1) else { break };
            for PendingCall { call, needs_approval, .. } in calls {
                if needs_approval {
                    run.on_approval(&call.id, Approval::Refused { reason: String::new() }, 600);
                } else {
                    // `look` started before the crash.
                    happened.extend((call.name == "look").then(|| String::from("runs look again")));
                    run.on_tool_result(&call.id, Ok(json!(1).into()), 600);
                }
            }
        }
        happened.join(", ")
    }
}

type Edit = fn(&mut Change);

/// Changes since the interruption, and what happens when the request continues. What may happen next follows from the
/// current project and configuration; a journal can only add limits.
const CASES: [(&str, Edit, &str); 17] = [
    ("no change", |_| {}, "runs look again, runs send, budget 7"),
    (
        "`:confirm` was added",
        |now| now.tools[1].confirm = Confirmation::Always,
        "runs look again, asks about send, budget 7",
    ),
    (
        "`:confirm` was added to an interrupted tool",
        |now| now.tools[0].confirm = Confirmation::Always,
        "asks about look, runs send, budget 7",
    ),
    (
        "an approval and a start are stored",
        |now| {
            now.tools[1].confirm = Confirmation::Always;
            now.tools[1].effect = Effect::Keyed;
            let id = now.journal.iter().rev().find_map(|(_, entry)| match entry {
                JournalEntry::Event(Event::ToolCall { id, name, .. }) if name == "send" => Some(id.clone()),
                _ => None,
            });
            let id = id.unwrap();
            now.plans(|reply| reply["calls"][1]["effect"] = json!("pure"));
            now.push(json!({"type": "approval", "id": id, "name": "send"}));
            now.push(json!({"type": "approval", "id": id, "name": "send", "answer": {"answer": "allowed"}}));
            now.push(json!({"type": "tool_started", "id": id, "name": "send"}));
        },
        "asks about send, runs look again, budget 7",
    ),
    (
        "the arguments are no longer valid",
        |now| now.tools[1] = tool("send", &json!({"properties": {"to": {"enum": ["me"]}}})),
        "runs look again, answers send with invalid_arguments, budget 7",
    ),
    (
        "an argument was renamed",
        |now| now.tools[1] = tool("send", &json!({"required": ["recipient"]})),
        "runs look again, answers send with invalid_arguments, budget 7",
    ),
    (
        "invalid arguments fail the request",
        |now| {
            now.tools[1] = tool("send", &json!({"required": ["recipient"]}));
            now.current.on_invalid_arguments = OnFailure::Fail;
        },
        "fails: invalid_arguments",
    ),
    (
        "the tool is gone",
        |now| drop(now.tools.pop()),
        "runs look again, answers send with unknown_tool, budget 7",
    ),
    (
        "the interrupted tool is gone",
        |now| drop(now.tools.remove(0)),
        "answers look with unknown_tool, runs send, budget 7",
    ),
    (
        "the effect became stricter",
        |now| now.tools[0].effect = Effect::Once,
        "answers look with interrupted, runs send, budget 7",
    ),
    (
        "the stored effect is stricter",
        |now| now.plans(|reply| reply["calls"][0]["effect"] = json!("once")),
        "answers look with interrupted, runs send, budget 7",
    ),
    (
        "the stored plan requires approval",
        |now| now.plans(|reply| reply["calls"][1]["needs_approval"] = json!(true)),
        "runs look again, asks about send, budget 7",
    ),
    (
        "the budget became smaller",
        |now| now.current.tool_budget = 2,
        "budget 2, runs look again, runs send, budget 1",
    ),
    (
        "the stored budget is smaller",
        |now| now.stored.tool_budget = 2,
        "runs look again, runs send, budget 1",
    ),
    (
        "the stored budget is larger",
        |now| {
            now.stored.tool_budget = 1000;
            now.push(json!({"type": "budget", "left": 999, "unit": "iteration"}));
        },
        "budget 8, runs look again, runs send, budget 7",
    ),
    (
        "the unit of the budget changed",
        |now| {
            now.current.budget_unit = BudgetUnit::Call;
            now.current.tool_budget = 1;
            now.plans(|reply| reply["affordable"] = json!(9));
        },
        "budget 1, runs look again, budget 0, fails: budget_exhausted",
    ),
    (
        "the budget is spent",
        |now| now.push(json!({"type": "budget", "left": 0, "unit": "call"})),
        "budget 0, fails: budget_exhausted",
    ),
];

#[test]
fn the_stricter_of_stored_and_current_applies() {
    for (name, change, expected) in CASES {
        let mut request = stored();
        change(&mut request);
        assert_eq!(request.resume(), expected, "{name}");
    }
}
