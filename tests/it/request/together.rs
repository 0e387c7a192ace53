//! Calls of one emission that run at the same time, and calls that a person is asked about.

use deftool::request::{Approval, BudgetUnit, Event, FailReason, FinalState, OnFailure};
use deftool::tool::{ToolError, ToolErrorKind};
use serde_json::{Value, json};

use super::play::{Play, Played, play, says, weather};

fn together() -> Play {
    play().with(|config| config.parallel = true)
}

fn results(played: &Played) -> Vec<Value> {
    let contents = played.history().iter().filter_map(|message| match message {
        deftool::chat::Message::Tool { content, .. } => Some(serde_json::from_str(content).unwrap()),
        _ => None,
    });
    contents.collect()
}

fn names(played: &Played) -> Vec<String> {
    let name = |event: &Event| json!(event)["type"].as_str().unwrap().to_owned();
    played.events.iter().map(name).filter(|name| name.starts_with("tool_") || name == "approval").collect()
}

/// The last call is answered first; calls come and go in listed order all the same.
fn backwards(mut play: Play) -> Play {
    play.choose = Box::new(|count| count - 1);
    play
}

#[test]
fn parallel_calls_start_together_and_results_keep_the_listed_order() {
    let mut nth = 0;
    let play = backwards(together()).answering(move |_, name| {
        nth += 1;
        Ok(json!(format!("{name} {nth}")))
    });
    let calls = says("").call("look", json!({})).call("get_weather", weather()).call("look", json!({"b": 1}));
    let played = play.run(&[calls, says("done")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.executed(), ["look", "get_weather", "look"]);
    assert_eq!(results(&played), [json!("look 3"), json!("get_weather 2"), json!("look 1")]);
    let told = names(&played);
    assert_eq!(told[3..6], ["tool_started"; 3], "all start before the first ends: {told:?}");
}

#[test]
fn without_parallel_a_call_starts_when_the_one_before_it_is_answered() {
    let calls = says("").call("look", json!({})).call("look", json!({"b": 1}));
    let played = play().run(&[calls, says("done")]);
    let expected =
        ["tool_call", "tool_call", "tool_started", "tool_finished", "tool_started", "tool_finished"];
    assert_eq!(names(&played), expected);
}

#[test]
fn of_parallel_failures_the_first_in_listed_order_decides() {
    // Answered in the order 3, 2, 1: two of them fail.
    let play = backwards(together()).answering(|nth, _| match nth {
        2 => Ok(json!(2)),
        nth => Err(ToolError::new(ToolErrorKind::Script, format!("failure {nth}"))),
    });
    let calls = says("").call("look", json!({})).call("look", json!({"b": 1})).call("look", json!({"c": 1}));
    let played = play.run(&[calls, says("never")]);
    let (reason, kind, detail) = played.failure();
    assert_eq!((reason, kind, detail), (FailReason::ToolExecutionError, "script", "look: failure 3"));
    assert_eq!(played.requests.len(), 1);
}

#[test]
fn a_parallel_failure_gives_up_the_calls_after_it() {
    let fails = |nth: usize, _: &str| -> Result<Value, ToolError> {
        if nth == 1 { Err(ToolError::new(ToolErrorKind::Script, "no")) } else { Ok(json!(nth)) }
    };
    let calls = says("").call("look", json!({})).call("look", json!({"b": 1}));
    let played = together().answering(fails).run(&[calls.clone(), says("never")]);
    assert_eq!(played.failure().2, "look: no");
    assert_eq!(played.executed(), ["look"], "the second was not waited for");
    // The one in the middle fails first: the one before it is waited for, the one after it is not.
    let calls = calls.call("look", json!({"c": 1}));
    let mut asked = Vec::new();
    let mut play = together();
    play.choose = Box::new(move |count| {
        asked.push(count);
        assert_eq!(asked, [3, 1][..asked.len()]);
        usize::from(count == 3)
    });
    assert_eq!(play.answering(fails).run(&[calls, says("never")]).failure().2, "look: no");
}

#[test]
fn parallel_calls_beyond_a_budget_of_calls_are_not_started() {
    let play = together().with(|config| {
        config.tool_budget = 2;
        config.budget_unit = BudgetUnit::Call;
    });
    let calls = says("").call("look", json!({})).call("look", json!({"b": 1})).call("look", json!({"c": 1}));
    let played = play.run(&[calls, says("never")]);
    assert_eq!(played.executed().len(), 2);
    assert_eq!(played.failure().1, "budget_exhausted");
}

#[test]
fn parallel_calls_with_reported_arguments_keep_their_place() {
    let play = backwards(together()).with(|config| config.on_invalid_arguments = OnFailure::Report);
    let calls = says("")
        .call("look", json!({}))
        .call("get_weather", json!({"unit": 1}))
        .call("look", json!({"c": 1}));
    let played = play.run(&[calls, says("done")]);
    let results = results(&played);
    assert_eq!(results.len(), 3);
    assert_eq!(results[1]["error"]["kind"], "invalid_arguments");
    assert_eq!(played.executed(), ["look", "look"]);
}

#[test]
fn a_call_that_needs_approval_runs_once_it_is_allowed() {
    let played = play().run(&[says("").call("ask", json!({"path": "x"})), says("done")]);
    assert_eq!(played.executed(), ["ask"]);
    let expected = ["tool_call", "approval", "approval", "tool_started", "tool_finished"];
    assert_eq!(names(&played), expected);
    let asked = played.events.iter().find(|event| matches!(event, Event::Approval { .. })).unwrap();
    assert_eq!(json!(asked)["arguments"], json!({"path": "x"}));
}

#[test]
fn a_refusal_is_a_result_for_the_model_and_spends_the_iteration() {
    let mut refusing = play();
    refusing.approval = Approval::Refused { reason: String::from("not that file") };
    let played = refusing.run(&[says("").call("ask", json!({})).call("look", json!({})), says("then not")]);
    assert_eq!(played.outcome.state, FinalState::Completed);
    assert_eq!(played.executed(), ["look"]);
    let refused = json!({"refused": "the user did not allow this call", "reason": "not that file"});
    assert_eq!(results(&played)[0], refused);
    assert_eq!(played.outcome.tool_iterations, 1);
    assert!(played.events.iter().any(|event| matches!(event, Event::ToolFinished { ok: true, .. })));
}

#[test]
fn while_one_call_waits_for_approval_the_others_run_under_parallel() {
    let calls = says("").call("ask", json!({})).call("look", json!({}));
    let played = backwards(together()).run(&[calls, says("done")]);
    assert_eq!(played.executed(), ["look", "ask"]);
    assert_eq!(results(&played).len(), 2);
}
