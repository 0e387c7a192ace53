//! Requests restored from a journal: calls that must not run again, and journals with entries that do not match.
//! `properties` has random requests.

use deftool_chat::ChatEvent;
use deftool_chat::request::{Approval, BiosV1, Event, JournalEntry, RestoredRun, Run, Step};
use serde_json::json;

use super::play::{Play, play, reply_with, tools};

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

#[test]
fn the_user_decides_about_an_interrupted_call() {
    for (answer, runs) in [(Approval::Allowed, true), (Approval::Refused { reason: String::new() }, false)] {
        let (mut run, events) = restore(journal()).resume(true, 500);
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
            step => assert!(!runs && matches!(step, Step::Stream(_)), "{step:?}"),
        }
    }
}

#[test]
fn without_a_user_the_model_receives_an_error() {
    let (mut run, _) = restore(journal()).resume(false, 500);
    let Step::Stream(request) = run.next_step(&tools(), &BiosV1) else { panic!() };
    let messages = serde_json::to_string(&request.messages).unwrap();
    assert!(messages.contains("interrupted") && messages.contains("was not run again"), "{messages}");
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
    ] {
        let start = play().run_start();
        let restored = Run::restore(play().config, start, entries.into_iter().map(event));
        let error = restored.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A journal can be damaged.
#[test]
fn any_number_of_a_turn_is_accepted() {
    let turn = json!({"type": "turn_started", "turn": 0, "tools": "", "budget_left": 8});
    let entry = serde_json::from_value(turn).unwrap();
    let mut run = restore(vec![(0, entry)]).resume(false, 0).0;
    assert!(matches!(run.next_step(&tools(), &BiosV1), Step::Stream(_)));
}
