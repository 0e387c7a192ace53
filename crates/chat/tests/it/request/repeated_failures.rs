//! A model that repeats a failing call is warned, and then the request ends.

use deftool_chat::Message;
use deftool_chat::request::{FailReason, FinalState, OnFailure};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{Play, Played, ScriptedReply, play, reply_with};

fn reports() -> Play {
    play().with(|config| {
        (config.on_tool_error, config.on_invalid_arguments) = (OnFailure::Report, OnFailure::Report);
        config.tool_budget = 20;
    })
}

/// Returns a play in which every call of `look` fails.
fn failing() -> Play {
    reports().answering(|_, name| match name {
        "look" => Err(ToolError::new(ToolErrorKind::Script, "boom")),
        _ => Ok(json!(1)),
    })
}

fn look(q: u32) -> ScriptedReply {
    reply_with("").call("look", json!({"q": q}))
}

/// Returns for each result in the conversation whether it contains a warning.
fn warnings(played: &Played) -> Vec<bool> {
    let results = played.conversation.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content),
        _ => None,
    });
    results.map(|content| serde_json::from_str::<Value>(content).unwrap()["warning"].is_string()).collect()
}

#[test]
fn the_third_identical_failure_adds_a_warning_and_the_fifth_ends_the_request() {
    for (journaled, restore) in [(false, false), (true, false), (false, true)] {
        let played = Play { restore, journaled, ..failing() }.run(&[look(1)]);
        let (reason, kind, detail) = played.failure();
        assert_eq!((reason, kind), (FailReason::ToolExecutionError, "repeated_failure"));
        assert_eq!(detail, "the model repeated a call that failed 5 times in a row: look: boom");
        assert_eq!(played.executed.len(), 5);
        assert_eq!(warnings(&played), [false, false, true, true, false], "journaled {journaled}");
        assert_eq!(played.outcome.tool_iterations, 4);
    }
}

#[test]
fn each_of_the_failing_calls_of_a_reply_counts() {
    let both = || look(1).call("look", json!({"q": 2}));
    for (replies, is_ended) in [
        (vec![both()], true),
        // A success is progress: the model tests each change.
        (vec![both().call("get_weather", json!({"location": "Paris"})); 6], false),
    ] {
        for journaled in [false, true] {
            let replies =
                if is_ended { replies.clone() } else { [&replies[..], &[reply_with("x")]].concat() };
            let played = Play { journaled, ..failing() }.run(&replies);
            assert_eq!(
                played.outcome.kind.as_deref() == Some("repeated_failure"),
                is_ended,
                "{:?}",
                played.outcome
            );
            assert_eq!(warnings(&played).contains(&true), is_ended);
        }
    }
}

#[test]
fn unreadable_and_unknown_calls_count() {
    for reply in [
        reply_with("").malformed("look", "{"),
        reply_with("").call("nothing", json!({})),
        reply_with("").call("get_weather", json!({"unit": 1})),
        reply_with("<tool_call>{name: look}</tool_call>"),
    ] {
        let played = reports().run(std::slice::from_ref(&reply));
        assert_eq!(played.failure().1, "repeated_failure", "{reply:?}");
        assert_eq!(played.requests.len(), 5);
    }
}

#[test]
fn another_call_a_success_or_other_arguments_begin_again() {
    let other = || reply_with("").call("get_weather", json!({"location": "Paris"}));
    for replies in [
        vec![look(1), look(1), look(2), look(1), look(1), look(2), look(1), reply_with("x")],
        vec![look(1), look(1), other(), look(1), look(1), other(), look(1), reply_with("x")],
    ] {
        let played = failing().run(&replies);
        assert_eq!(played.outcome.state, FinalState::Completed, "{:?}", played.outcome);
        assert!(!warnings(&played).contains(&true));
    }
    // The model had no answer between the calls of one reply.
    let four =
        look(1).call("look", json!({"q": 1})).call("look", json!({"q": 1})).call("look", json!({"q": 1}));
    let played = failing().run(&[four.clone(), four, reply_with("x")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert!(!warnings(&played).contains(&true));
}

/// What an MCP server returns with `isError` is a result, whatever the worker does with errors.
#[test]
fn an_error_result_is_always_returned_to_the_model() {
    for journaled in [false, true] {
        let answer = |_: usize, _: &str| Err(ToolError::new(ToolErrorKind::ErrorResult, "no such issue"));
        let play = play().answering(answer);
        let played = Play { journaled, ..play }.run(&[look(1), reply_with("none")]);
        assert_eq!(played.outcome.state, FinalState::Completed);
        let Message::Tool { content, .. } = played.history().last().unwrap() else { panic!() };
        assert_eq!(content, r#"{"error":{"kind":"error_result","message":"no such issue"}}"#);
    }
}
