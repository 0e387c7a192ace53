//! Parallel calls of one reply, and calls that need approval.

use deftool_chat::request::{Approval, BudgetUnit, Event, FailReason, FinalState, OnFailure};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{Play, Played, play, reply_with, weather};

fn parallel_play() -> Play {
    play().with(|config| config.parallel = true)
}

fn results(played: &Played) -> Vec<Value> {
    let contents = played.history().iter().filter_map(|message| match message {
        deftool_chat::Message::Tool { content, .. } => Some(serde_json::from_str(content).unwrap()),
        _ => None,
    });
    contents.collect()
}

fn names(played: &Played) -> Vec<String> {
    let name = |event: &Event| json!(event)["type"].as_str().unwrap().to_owned();
    played.events.iter().map(name).filter(|name| name.starts_with("tool_") || name == "approval").collect()
}

/// Answers the last call first. Calls and results keep their order.
fn backwards(mut play: Play) -> Play {
    play.choose = Box::new(|count| count - 1);
    play
}

#[test]
fn parallel_calls_start_at_once_and_results_keep_the_order() {
    let mut nth = 0;
    let play = backwards(parallel_play()).answering(move |_, name| {
        nth += 1;
        Ok(json!(format!("{name} {nth}")))
    });
    let calls =
        reply_with("").call("look", json!({})).call("get_weather", weather()).call("look", json!({"b": 1}));
    let played = play.run(&[calls, reply_with("done")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.executed(), ["look", "get_weather", "look"]);
    assert_eq!(results(&played), [json!("look 3"), json!("get_weather 2"), json!("look 1")]);
    let types = names(&played);
    assert_eq!(types[3..6], ["tool_started"; 3], "all start before the first ends: {types:?}");
}

#[test]
fn without_parallel_a_call_starts_after_the_previous_answer() {
    let calls = reply_with("").call("look", json!({})).call("look", json!({"b": 1}));
    let played = play().run(&[calls, reply_with("done")]);
    let expected =
        ["tool_call", "tool_call", "tool_started", "tool_finished", "tool_started", "tool_finished"];
    assert_eq!(names(&played), expected);
}

#[test]
fn the_first_parallel_failure_in_order_is_reported() {
    // Answered in the order 3, 2, 1. Two of them fail.
    let play = backwards(parallel_play()).answering(|nth, _| match nth {
        2 => Ok(json!(2)),
        nth => Err(ToolError::new(ToolErrorKind::Script, format!("failure {nth}"))),
    });
    let calls =
        reply_with("").call("look", json!({})).call("look", json!({"b": 1})).call("look", json!({"c": 1}));
    let played = play.run(&[calls, reply_with("never")]);
    let (reason, kind, detail) = played.failure();
    assert_eq!((reason, kind, detail), (FailReason::ToolExecutionError, "script", "look: failure 3"));
    assert_eq!(played.requests.len(), 1);
}

#[test]
fn a_parallel_failure_abandons_later_calls() {
    let fails = |nth: usize, _: &str| -> Result<Value, ToolError> {
        if nth == 1 { Err(ToolError::new(ToolErrorKind::Script, "no")) } else { Ok(json!(nth)) }
    };
    let calls = reply_with("").call("look", json!({})).call("look", json!({"b": 1}));
    let played = parallel_play().answering(fails).run(&[calls.clone(), reply_with("never")]);
    assert_eq!(played.failure().2, "look: no");
    assert_eq!(played.executed(), ["look"], "the second call was not awaited");
    // The middle call fails first. The call before it is awaited, the call after it is not.
    let calls = calls.call("look", json!({"c": 1}));
    let mut asked = Vec::new();
    let mut play = parallel_play();
    play.choose = Box::new(move |count| {
        asked.push(count);
        assert_eq!(asked, [3, 1][..asked.len()]);
        usize::from(count == 3)
    });
    assert_eq!(play.answering(fails).run(&[calls, reply_with("never")]).failure().2, "look: no");
}

#[test]
fn parallel_calls_beyond_a_budget_of_calls_are_not_started() {
    let play = parallel_play().with(|config| {
        config.tool_budget = 2;
        config.budget_unit = BudgetUnit::Call;
    });
    let calls =
        reply_with("").call("look", json!({})).call("look", json!({"b": 1})).call("look", json!({"c": 1}));
    let played = play.run(&[calls, reply_with("never")]);
    assert_eq!(played.executed().len(), 2);
    assert_eq!(played.failure().1, "budget_exhausted");
}

#[test]
fn parallel_calls_with_reported_arguments_keep_their_position() {
    let play = backwards(parallel_play()).with(|config| config.on_invalid_arguments = OnFailure::Report);
    let calls = reply_with("")
        .call("look", json!({}))
        .call("get_weather", json!({"unit": 1}))
        .call("look", json!({"c": 1}));
    let played = play.run(&[calls, reply_with("done")]);
    let results = results(&played);
    assert_eq!(results.len(), 3);
    assert_eq!(results[1]["error"]["kind"], "invalid_arguments");
    assert_eq!(played.executed(), ["look", "look"]);
}

#[test]
fn a_call_that_needs_approval_runs_after_approval() {
    let played = play().run(&[reply_with("").call("ask", json!({"path": "x"})), reply_with("done")]);
    assert_eq!(played.executed(), ["ask"]);
    let expected = ["tool_call", "approval", "approval", "tool_started", "tool_finished"];
    assert_eq!(names(&played), expected);
    let asked = played.events.iter().find(|event| matches!(event, Event::Approval { .. })).unwrap();
    assert_eq!(json!(asked)["arguments"], json!({"path": "x"}));
}

#[test]
fn a_denied_call_is_a_result_for_the_model_and_uses_the_iteration() {
    let mut refusing = play();
    refusing.approval = Approval::Refused { reason: String::from("not that file") };
    let played = refusing
        .run(&[reply_with("").call("ask", json!({})).call("look", json!({})), reply_with("then not")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.executed(), ["look"]);
    let refused = json!({"refused": "the user did not allow this call", "reason": "not that file"});
    assert_eq!(results(&played)[0], refused);
    assert_eq!(played.outcome.tool_iterations, 1);
    assert!(played.events.iter().any(|event| matches!(event, Event::ToolFinished { ok: true, .. })));
}

#[test]
fn with_parallel_other_calls_run_while_one_waits_for_approval() {
    let calls = reply_with("").call("ask", json!({})).call("look", json!({}));
    let played = backwards(parallel_play()).run(&[calls, reply_with("done")]);
    assert_eq!(played.executed(), ["look", "ask"]);
    assert_eq!(results(&played).len(), 2);
}
